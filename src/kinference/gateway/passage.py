"""What of an answer goes to the client, and what is learned as it passes. Decides only: `relay` moves the bytes.

Two kinds of answer, one interface: a stream of events, which can be closed with an error of the client's own dialect,
and anything else, which can only be broken off.
"""

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from kinference.errors import UpstreamCut
from kinference.gateway.itl import InterTokenGaps
from kinference.ids import Seconds
from kinference.shapes.json_text import dumps, loads
from kinference.shapes.scan import BadBody
from kinference.shapes.sse import Event, EventTooLong, SseReader, emit
from kinference.shapes.usage import Usage, read_usage
from kinference.shapes.watch import Kind, StreamWatcher
from kinference.vocabulary import Api

BROKEN_CODE: Final = "upstream_closed"
BROKEN_MESSAGE: Final = "the destination closed its answer before the end"
UNARY_KEPT_MAX: Final = 8 * 1024 * 1024
"""A longer unary answer is relayed without reading its usage."""
BYTES_PER_TOKEN: Final = 4
"""For estimates, where the destination counted nothing."""
_EVENT_END: Final = b"\n\n"
_EVENT_ENDS: Final[tuple[bytes, ...]] = (b"\n\n", b"\n\r\n", b"\r\r")
_END_BYTES_MAX: Final = 3


class Counted(Protocol):
    """What an answer is accounted by."""

    def usage(self) -> Usage | None:
        """What the destination counted."""
        ...

    def estimated_tokens(self) -> int:
        """Completion tokens, for when the destination did not count them."""
        ...

    def gaps(self) -> tuple[int, ...]:
        """The inter-token histogram, empty without a gap."""
        ...


class Passage(Counted, Protocol):
    """One answer on its way through."""

    can_keep_alive: bool
    """Whether there ever is something to say while it is silent."""

    def feed(self, chunk: bytes, now: Seconds) -> bytes:
        """Take a chunk in; what goes out for it now. Raises UpstreamCut for what cannot be an answer."""
        ...

    def close(self) -> bytes:
        """The destination ended its answer: what was still held."""
        ...

    def is_whole(self, *, cut: bool) -> bool:
        """Whether what came is all of an answer, given whether it was cut off."""
        ...

    def has_failed(self) -> bool:
        """Whether the destination itself reported an error inside its answer."""
        ...

    def farewell(self) -> bytes | None:
        """What tells the client that the answer broke off; None when only breaking the connection can."""
        ...

    def keep_alive(self) -> bytes:
        """What tells the client that the answer is still coming; b"" when nothing may be said now."""
        ...


class PlainPassage:
    """An answer in one piece."""

    can_keep_alive = False

    def __init__(self, api: Api) -> None:
        self._api = api
        self._kept: list[bytes] = []
        self._bytes = 0

    def feed(self, chunk: bytes, now: Seconds) -> bytes:  # noqa: ARG002 - a whole answer has no tempo
        self._bytes += len(chunk)
        self._kept.append(chunk)
        if self._bytes > UNARY_KEPT_MAX:
            self._kept.clear()
        return chunk

    def close(self) -> bytes:
        return b""

    def is_whole(self, *, cut: bool) -> bool:
        return not cut

    def has_failed(self) -> bool:
        return False

    def farewell(self) -> bytes | None:
        return None

    def keep_alive(self) -> bytes:
        return b""

    def usage(self) -> Usage | None:
        return read_usage(self._api, b"".join(self._kept))

    def estimated_tokens(self) -> int:
        return 0 if self._api is Api.OPENAI_EMBEDDINGS else self._bytes // BYTES_PER_TOKEN

    def gaps(self) -> tuple[int, ...]:
        return ()


class EventPassage:
    """A stream of server-sent events.

    Bytes go out as they come in, also in the middle of an event. Only where the client must not see the usage that we
    asked for do whole events go out.
    """

    can_keep_alive = True

    def __init__(self, api: Api, *, hide_usage: bool) -> None:
        self._api, self._hide_usage = api, hide_usage
        self._reader, self._watcher = SseReader(), StreamWatcher(api)
        self._skimmer = self._watcher.skimmer
        self._gaps = InterTokenGaps()
        self._events = 0
        self._sent_end = _EVENT_END  # a stream begins as if after an event

    def feed(self, chunk: bytes, now: Seconds) -> bytes:
        if self._reader.is_between_events:
            if self._events and self._skimmer.is_one_more(chunk):
                self._events += 1
                self._watcher.content_events += 1
                self._gaps.came(1, now)
                self._sent_end = _EVENT_END
                return chunk
        else:
            cut = chunk.find(_EVENT_END) + len(_EVENT_END)
            if len(_EVENT_END) <= cut < len(chunk):  # the rest of one event, and behind it what may be skimmed
                out = self._fed(chunk[:cut], now) + self._fed(chunk[cut:], now)
                return out if self._hide_usage else chunk
        return self._fed(chunk, now)

    def _fed(self, chunk: bytes, now: Seconds) -> bytes:
        skimmed = self._skimmed(chunk, now) if self._reader.is_between_events else 0
        if skimmed and skimmed == len(chunk):
            self._sent_end = _EVENT_END
            return chunk
        try:
            events = self._reader.feed(chunk[skimmed:] if skimmed else chunk)
        except EventTooLong as error:
            raise UpstreamCut(str(error)) from error
        kinds = self._watched(events, now)
        if self._hide_usage:
            shown = [event.raw for event, kind in zip(events, kinds, strict=True) if kind is not Kind.USAGE]
            return b"".join((chunk[:skimmed], *shown))
        self._sent_end = (chunk if len(chunk) >= _END_BYTES_MAX else self._sent_end + chunk)[-_END_BYTES_MAX:]
        return chunk

    def _skimmed(self, chunk: bytes, now: Seconds) -> int:
        """Take note of the ordinary events that lead a chunk. Returns how many bytes of it they are."""
        size, events, contents = self._watcher.skim(chunk)
        if events:
            if not self._events:
                self._reader.pass_over()
            self._events += events
            if contents:
                self._gaps.came(contents, now)
        return size

    def _watched(self, events: Sequence[Event], now: Seconds) -> Sequence[Kind]:
        """Take note of what a chunk completed."""
        kinds = [self._watcher.watch(event) for event in events]
        self._events += len([event for event in events if event.data])
        if contents := kinds.count(Kind.CONTENT):
            self._gaps.came(contents, now)
        return kinds

    def close(self) -> bytes:
        tail = self._reader.tail()
        if tail is None:
            return b""
        kind = self._watcher.watch_tail(tail)
        return tail.raw if self._hide_usage and kind is not Kind.USAGE else b""

    def is_whole(self, *, cut: bool) -> bool:  # noqa: ARG002 - what counts is what the stream itself says of its end
        return self._watcher.is_complete or self._watcher.is_failed

    def has_failed(self) -> bool:
        return self._watcher.is_failed

    def farewell(self) -> bytes | None:
        """An error in the client's dialect, and none of the signs of a good end."""
        gap = b"" if self._is_between_events() else b"\n\n"
        if self._api is Api.OPENAI_RESPONSES:
            return gap + _responses_farewell(self._events, self._watcher.begun)
        return gap + _FAREWELLS.get(self._api, _openai_farewell)()

    def keep_alive(self) -> bytes:
        if self._api is Api.GEMINI or not self._is_between_events():  # whose clients read every line as data
            return b""
        return emit("ping", b'{"type":"ping"}') if self._api is Api.ANTHROPIC_MESSAGES else b": keep-alive\n\n"

    def _is_between_events(self) -> bool:
        return self._sent_end.endswith(_EVENT_ENDS)

    def usage(self) -> Usage | None:
        return self._watcher.usage

    def estimated_tokens(self) -> int:
        return self._watcher.content_events

    def gaps(self) -> tuple[int, ...]:
        return self._gaps.counts()


def _openai_farewell() -> bytes:
    error = {"message": BROKEN_MESSAGE, "type": "server_error", "param": None, "code": BROKEN_CODE}
    return emit("", msgspec.json.encode({"error": error}))


def _anthropic_farewell() -> bytes:
    error = {"type": "api_error", "message": BROKEN_MESSAGE}
    return emit("error", msgspec.json.encode({"type": "error", "error": error}))


def _responses_farewell(events: int, begun: bytes) -> bytes:
    """The response as it began, and failed. Numbered as the next event: those of a Responses stream count from 0."""
    try:
        told = loads(begun)
    except BadBody:
        told = None
    response = told.get("response") if isinstance(told, dict) else None
    error = {"code": "server_error", "message": BROKEN_MESSAGE}  # of the few codes that its clients take
    outcome = {"object": "response", "status": "failed", "error": error, "output": []}
    failed = (response if isinstance(response, dict) else {}) | outcome
    event = {"type": "response.failed", "sequence_number": events, "response": failed}
    return emit("response.failed", dumps(event))


def _gemini_farewell() -> bytes:
    return emit("", msgspec.json.encode({"error": {"code": 502, "message": BROKEN_MESSAGE, "status": "UNAVAILABLE"}}))


_FAREWELLS: Final = {Api.ANTHROPIC_MESSAGES: _anthropic_farewell, Api.GEMINI: _gemini_farewell}
