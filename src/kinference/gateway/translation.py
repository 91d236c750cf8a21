"""Answers of destinations that speak another API than the client: what leads back, and the passage of a stream."""

from typing import Final

import msgspec

from kinference.errors import UpstreamCut, UpstreamTimeout
from kinference.gateway.itl import InterTokenGaps
from kinference.gateway.passage import BROKEN_CODE, BROKEN_MESSAGE, BYTES_PER_TOKEN
from kinference.ids import Seconds
from kinference.observe.metrics import GATEWAY_FAILURES, Metrics
from kinference.ports import UpstreamAnswer
from kinference.shapes.answers import Counts, Frame
from kinference.shapes.dialects import Reader
from kinference.shapes.lost import header, more
from kinference.shapes.scan import BadBody, decode
from kinference.shapes.sse import EventTooLong
from kinference.shapes.translate import Return, Way, WayBack, plan, reader_of, translated, unasked
from kinference.shapes.usage import Usage
from kinference.shapes.way_back import (
    StreamTranslation,
    gather_answer,
    losses_of,
    read_answer,
    write_answer,
    write_stream,
)
from kinference.vocabulary import Api

WHOLE_MAX: Final = 64 * 1024 * 1024
"""The longest answer that is translated in one piece."""
STREAM_MAX: Final = 256 * 1024 * 1024
"""And the longest stream: what is still to be told at its end is kept, and no model writes a third of that."""
TOO_LONG: Final = "too_long"
"""How a longer one is counted."""


_MODEL_IN_PATH: Final = frozenset({Api.GEMINI, Api.BEDROCK_CONVERSE, Api.VERTEX_ANTHROPIC, Api.VERTEX_GEMINI})


class _Named(msgspec.Struct):
    model: str = ""


_NAMED: Final = msgspec.json.Decoder(_Named)


def way_back(original: bytes, sent: bytes, way: Way) -> WayBack:
    """What a picker elsewhere did to the client's body, done again for what it tells. Raises BadBody."""
    planned = plan(original, msgspec.structs.replace(way, model=_model(sent) or way.model, yields=True))
    return WayBack(planned.back, header(planned.losses))


def known_way_back(found: WayBack, api: Api, model: str) -> WayBack:
    """What a picker in the same process told, for a request for this model at a destination of this API: where its
    body does not name the model, the answer has the client's own name for it.
    """
    if api not in _MODEL_IN_PATH:
        return found
    return msgspec.structs.replace(found, back=msgspec.structs.replace(found.back, model=model))


def in_chat(body: bytes, way: Way) -> tuple[bytes, WayBack]:
    """A client's body for an engine without the client's API, and how the answer comes back. Raises BadBody."""
    return translated(body, msgspec.structs.replace(way, model=_model(body) or way.model, yields=True))


def own_way_back(body: bytes, way: Way, *, wants_usage: bool) -> WayBack:
    """How an answer in the client's own API comes to be what it asked for, where it is a stream and the client wants it
    whole or the other way round. Raises UpstreamCut where it cannot.
    """
    try:
        found = unasked(body, way, wants_usage=wants_usage)
    except BadBody:
        found = None
    if found is None:
        asked, came = ("a stream", "none") if way.streams else ("an answer in one piece", "a stream")
        raise UpstreamCut(f"the destination was asked for {asked} and sent {came}")
    return found


def _model(body: bytes) -> str:
    try:
        return decode(_NAMED, body).model
    except BadBody:
        return ""


def usage_of(counts: Counts, model: str) -> Usage:
    """The counts as they are reported."""
    return Usage(counts.prompt, counts.completion, counts.cached, model)


async def read_whole(answer: UpstreamAnswer, metrics: Metrics) -> bytes:
    """All of an answer. Raises UpstreamCut, also for a length over all bounds, and UpstreamTimeout, in words for its
    client, who is not told where a provider is.
    """
    body = bytearray()
    try:
        async for chunk in answer.chunks():
            body += chunk
            if len(body) > WHOLE_MAX:
                break
    except UpstreamCut as error:
        raise UpstreamCut("the destination broke its answer off") from error
    except UpstreamTimeout as error:
        raise UpstreamTimeout("the destination fell silent in the middle of its answer") from error
    if len(body) > WHOLE_MAX:
        metrics.count(GATEWAY_FAILURES, TOO_LONG)
        raise UpstreamCut(f"an answer over {WHOLE_MAX} bytes cannot be translated")
    return bytes(body)


class WholeTranslation:
    """All of an answer, and what it is accounted by. Raises NoAnswer where it is none."""

    def __init__(self, back: Return, body: bytes, *, is_stream: bool = False) -> None:
        """`is_stream`: it came as a stream that its client did not ask for."""
        self._back = back
        self._answer = gather_answer(back, body) if is_stream else read_answer(back, body)
        self._losses = losses_of(back, self._answer)

    def written(self, frame: Frame) -> bytes:
        """The body for the client, who may have asked for a stream."""
        write = write_stream if self._back.is_streaming else write_answer
        return write(self._back, self._answer, frame)

    def warnings(self, before: str) -> str:
        """What is told of the request's losses, and of the answer's."""
        return more(before, self._losses)

    def usage(self) -> Usage | None:
        counts = self._answer.counts
        return None if counts.is_unknown else usage_of(counts, self._back.model)

    def estimated_tokens(self) -> int:
        return 0 if self._answer.vectors else len(self.written(Frame())) // BYTES_PER_TOKEN

    def gaps(self) -> tuple[int, ...]:
        return ()


class TranslatedPassage:
    """A stream of another API on its way through, event by event."""

    can_keep_alive = True

    def __init__(self, back: Return, frame: Frame) -> None:
        self._back = back
        self._reader: Reader = reader_of(back)
        self._translation = StreamTranslation(back, frame)
        self._gaps = InterTokenGaps()
        self._token_at: Seconds | None = None
        self._bytes = 0

    def feed(self, chunk: bytes, now: Seconds) -> bytes:
        self._bytes += len(chunk)
        if self._bytes > STREAM_MAX:
            raise UpstreamCut(f"a stream over {STREAM_MAX} bytes cannot be translated")
        before = self._translation.content_pieces
        try:
            written = [self._translation.feed(event) for event in self._reader.feed(chunk)]
        except EventTooLong as error:
            raise UpstreamCut(str(error)) from error
        if self._translation.content_pieces > before:
            if self._token_at is not None:
                self._gaps.add((now - self._token_at) * 1000)
            self._token_at = now
        return b"".join(written)

    def close(self) -> bytes:
        tail = self._reader.tail()
        rest = self._translation.feed(tail) if tail is not None else b""
        return rest + self._translation.close()

    def is_whole(self, *, cut: bool) -> bool:  # noqa: ARG002 - what counts is what the stream itself says of its end
        return self._translation.is_whole

    def has_failed(self) -> bool:
        return self._translation.is_failed

    def farewell(self) -> bytes | None:
        return self._translation.fail(BROKEN_MESSAGE, BROKEN_CODE)

    def keep_alive(self) -> bytes:
        return self._translation.keep_alive()

    def usage(self) -> Usage | None:
        counts = self._translation.counts
        return None if counts.is_unknown else usage_of(counts, self._back.model)

    def estimated_tokens(self) -> int:
        return self._translation.content_pieces

    def gaps(self) -> tuple[int, ...]:
        return self._gaps.counts()
