"""Gemini's other kind of stream: one JSON array whose elements are the events, for clients that do not ask for
`alt=sse`. What makes the events does not know of it.
"""

from collections.abc import Iterable
from typing import Final
from urllib.parse import parse_qs

from kinference.errors import UpstreamCut
from kinference.gateway.passage import Passage
from kinference.ids import Seconds
from kinference.shapes.json_text import is_complete
from kinference.shapes.sse import Event, EventTooLong, SseReader
from kinference.shapes.usage import Usage

CONTENT_TYPE: Final = (b"content-type", b"application/json; charset=UTF-8")
_STREAMS: Final = ":streamGenerateContent"


def wants_array(path: str, query: str) -> bool:
    """Whether a client asked for a stream of Gemini's and not for events."""
    if not path.endswith(_STREAMS):
        return False
    asked = parse_qs(query)
    return "sse" not in (*asked.get("alt", ()), *asked.get("$alt", ()))


def array_of(events: bytes) -> bytes:
    """A whole stream of events as a whole array."""
    elements = _Elements()
    return elements.of(SseReader().feed(events)) + elements.end()


class _Elements:
    """The elements of one array, as they come."""

    def __init__(self) -> None:
        self._next = b"["

    def of(self, events: Iterable[Event]) -> bytes:
        """Some more of it."""
        written = bytearray()
        for event in events:
            if event.data:
                written += self._next + event.data
                self._next = b",\r\n"
        return bytes(written)

    def end(self) -> bytes:
        """The end of it."""
        return b"[]" if self._next == b"[" else b"]"


class ArrayPassage:
    """A passage of events on its way to a client that wants an array."""

    can_keep_alive = False

    def __init__(self, events: Passage) -> None:
        self._events = events
        self._reader, self._elements = SseReader(), _Elements()

    def feed(self, chunk: bytes, now: Seconds) -> bytes:
        return self._written(self._events.feed(chunk, now))

    def close(self) -> bytes:
        rest = self._written(self._events.close())
        if not self.is_whole(cut=False):
            return rest  # what stands unfinished is no element
        tail = self._reader.tail()
        last = [tail] if tail is not None and is_complete(tail.data.decode("utf-8", "replace")) else []
        return rest + self._elements.of(last) + self._elements.end()

    def is_whole(self, *, cut: bool) -> bool:
        return self._events.is_whole(cut=cut)

    def has_failed(self) -> bool:
        return self._events.has_failed()

    def farewell(self) -> bytes | None:
        last = self._events.farewell()
        return None if last is None else self._elements.of(SseReader().feed(last)) + self._elements.end()

    def keep_alive(self) -> bytes:
        return b""

    def usage(self) -> Usage | None:
        return self._events.usage()

    def estimated_tokens(self) -> int:
        return self._events.estimated_tokens()

    def gaps(self) -> tuple[int, ...]:
        return self._events.gaps()

    def _written(self, events: bytes) -> bytes:
        try:
            return self._elements.of(self._reader.feed(events))
        except EventTooLong as error:
            raise UpstreamCut(str(error)) from error
