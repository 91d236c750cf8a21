"""Server-sent events, both ways: a reader that is fed bytes cut anywhere and gives whole events, and a writer."""

import re
from typing import Final

from kinference.structs import Frozen

EVENT_BYTES_MAX: Final = 16 << 20
CR: Final = ord("\r")
LF: Final = ord("\n")
"""As numbers: whether bytes have a number among them Python tells in a third of the time that it takes for bytes."""

# A line end, then the blank line's own. A lone CR ends a line only when no LF follows. The second one may be a CR whose
# LF has yet to arrive, so that a complete event never waits for it.
_BLANK_LINE: Final = re.compile(rb"(?:\r\n|\r(?!\n)|\n)(?:\r\n|\r|\n)")
_LINE_END: Final = re.compile(rb"\r\n|\r|\n")
_TEXT: Final = re.compile(rb"[^\r\n]")
_BOM: Final = b"\xef\xbb\xbf"


class EventTooLong(ValueError):
    """One event went over the reader's bound, or is no event at all."""


class BadFrame(EventTooLong):
    """The same in a stream of frames: bytes that are none, or not as they were sent."""


class Event(Frozen, frozen=True):
    """One block of the stream. A lone comment, which keeps a connection alive, is an event without name or data."""

    event: str
    """What its `event:` line says, "" when it has none."""
    data: bytes
    """Its `data:` lines, joined by LF."""
    raw: bytes
    """All its bytes, line ends included: joined with the others' and the tail's they are the stream."""


class SseReader:
    """Takes a stream apart. Decodes nothing, so a character that arrives in two pieces stays whole."""

    def __init__(self, event_bytes_max: int = EVENT_BYTES_MAX) -> None:
        self._event_bytes_max = event_bytes_max
        self._buffer = bytearray()
        self._scanned = 0  # no blank line begins before here
        self._blank = 0  # nothing but blank lines before here
        self._at_start = True
        self._after_cr = False  # the last event ended in CR: a LF that comes next still belongs to it
        self.is_between_events = True
        """Whether what is fed next begins an event."""

    def pass_over(self) -> None:
        """Whole events were read elsewhere, so that what is fed next no longer begins the stream."""
        self._at_start = False

    def feed(self, chunk: bytes) -> list[Event]:
        """Every event that this chunk completes. Raises EventTooLong."""
        if not chunk:
            return []
        if self.is_between_events:
            if _is_plain(chunk):
                return self._plain(chunk)
            if not self._at_start and _is_one_by_crlf(chunk):
                return [Event("", chunk[6:-4], chunk)]
        buffer = self._buffer
        buffer += chunk
        if self._after_cr:
            self._scanned = int(buffer.startswith(b"\n"))
        events: list[Event] = []
        begin, blank, position = 0, self._blank, self._scanned
        while match := _BLANK_LINE.search(buffer, position):
            position = match.end()
            if _TEXT.search(buffer, blank, position):  # else blank lines alone, which go with the next event
                events.append(self._event(bytes(buffer[begin:position])))
                begin = position
            blank = position
        self._after_cr = begin == len(buffer) and buffer.endswith(b"\r")
        del buffer[:begin]
        self.is_between_events = not buffer and not self._after_cr
        self._blank = blank - begin
        self._scanned = max(position - begin, len(buffer) - len(b"\r\n"))
        self._bound(len(buffer))
        return events

    def _plain(self, chunk: bytes) -> list[Event]:
        if len(chunk) > self._event_bytes_max or (self._at_start and chunk.startswith(_BOM)):
            return [self._event(text + b"\n\n") for text in chunk[:-2].split(b"\n\n")]
        self._at_start = False
        if chunk.startswith(b"data: ") and chunk.find(b"\n") == len(chunk) - 2:
            return [Event("", chunk[6:-2], chunk)]
        return [
            Event("", text[6:], text + b"\n\n")
            if text.startswith(b"data: ") and LF not in text  # one line of data, as nearly all are
            else self._event(text + b"\n\n")
            for text in chunk[:-2].split(b"\n\n")
        ]

    def tail(self) -> Event | None:
        """What is left when the stream has ended: an event whose blank line never came; None when nothing is."""
        return self._event(bytes(self._buffer)) if self._buffer else None

    def _event(self, raw: bytes) -> Event:
        self._bound(len(raw))
        text = raw
        if self._at_start:
            text, self._at_start = raw.removeprefix(_BOM), False
        if text.startswith(b"data: ") and text.find(b"\n") == len(text) - 2 and CR not in text:
            return Event("", text[6:-2], raw)  # one line of data, as nearly all are
        if text.startswith(b"event: ") and CR not in text:
            named = text.find(b"\n")
            if text.startswith(b"data: ", named + 1) and text.find(b"\n", named + 1) == len(text) - 2:
                return Event(text[7:named].decode(errors="replace"), text[named + 7 : -2], raw)
        name = b""
        values: list[bytes] = []
        for line in _LINE_END.split(text):
            field, _, value = line.partition(b":")
            if field == b"data":
                values.append(value.removeprefix(b" "))
            elif field == b"event":
                name = value.removeprefix(b" ")
        return Event(name.decode(errors="replace"), b"\n".join(values), raw)

    def _bound(self, event_bytes: int) -> None:
        if event_bytes > self._event_bytes_max:
            raise EventTooLong(f"one event over {self._event_bytes_max} bytes")


def _is_plain(chunk: bytes) -> bool:
    """Whether it is whole events and nothing else, ended as nearly all engines end them."""
    return chunk.endswith(b"\n\n") and not chunk.startswith(b"\n") and CR not in chunk and chunk.find(b"\n\n\n") < 0


def _is_one_by_crlf(chunk: bytes) -> bool:
    """Whether it is one event of one line of data and nothing else, as Google ends them."""
    last = len(chunk) - 4
    return chunk.startswith(b"data: ") and chunk.find(b"\r") == last == chunk.find(b"\r\n\r\n") == chunk.find(b"\n") - 1


def emit(event: str, data: bytes) -> bytes:
    """The bytes of one event; a name of "" writes no `event:` line."""
    name = f"event: {event}\n".encode() if event else b""
    return name + b"".join(b"data: " + line + b"\n" for line in _LINE_END.split(data)) + b"\n"


def comment(text: str) -> bytes:
    """A line that readers of events pass over."""
    return b": %b\n\n" % _LINE_END.sub(b" ", text.encode("utf-8", "replace"))
