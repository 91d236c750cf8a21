"""The beginning of a destination's answer, read before the client hears of it: a stream that begins with an error is an
error, and one that never begins is no answer.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable
from typing import Final, Self

import msgspec

from kinference.errors import UpstreamCut
from kinference.gateway.beginning import HELD_MAX, Beginning, Overture
from kinference.gateway.verdict import ErrorAnswer
from kinference.ids import Seconds
from kinference.ports import Follower, Headers, Sink, UpstreamAnswer
from kinference.shapes.answers import Counted, Failed, Started
from kinference.shapes.silence import Silence
from kinference.shapes.sse import Event, EventTooLong
from kinference.shapes.translate import DESTINATIONS
from kinference.vocabulary import Api

_NOTHING_STATUS: Final = 502
_STOP: Final = re.compile(rb'"finishReason"\s*:\s*"STOP"')
_JSON: Final = ((b"content-type", b"application/json"),)


class _Late(Exception):
    """There is more to come, and not now."""


class Opening(UpstreamAnswer):
    """An answer of which the beginning can be read ahead; the rest follows it. What came compressed though nobody asked
    for it comes out plain where it has to be read.
    """

    status = 0
    headers: Headers = ()

    def __init__(self, answer: UpstreamAnswer, *, is_read: bool) -> None:
        """`is_read`: the answer is to be translated, so that it has to be plain whatever its head says."""
        self._answer = answer
        self._chunks = answer.chunks()
        self._beginning = beginning = Beginning(answer.headers, is_read=is_read)
        self._held = beginning.held
        self._coming: asyncio.Task[bytes | None] | None = None
        self._is_whole = False
        self._overture: Overture | None = None
        self._until: Seconds = 0.0  # when its client has to hear something
        self.status, self.headers, self.is_stream = answer.status, beginning.headers, beginning.is_stream

    @property
    def is_ready(self) -> bool:
        return bool(self._held) or (self._coming is None and self._answer.is_ready)

    def arrived(self) -> bytes | None:
        return self._held.popleft() if self._is_whole and len(self._held) == 1 else None

    def chunks(self) -> AsyncIterator[bytes]:
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while not self._held:
            if self._coming is None:
                chunk = await anext(self._chunks)
            else:
                late, self._coming = await self._coming, None
                if late is None:
                    raise StopAsyncIteration
                chunk = late
            if self._beginning.is_over():
                return chunk
            self._hold(chunk)
        return self._held.popleft()

    async def pour(self, sink: Sink) -> None:
        while self._held or self._coming is not None or not self._beginning.is_over():
            chunk = self._held.popleft() if self._held else await anext(self, None)
            if chunk is None:
                return
            if not sink.take(chunk):
                await sink.ready()
        await self._answer.pour(sink)

    def close(self) -> Awaitable[None]:
        coming, self._coming = self._coming, None
        return self._answer.close() if coming is None else self._close_while(coming)

    async def _close_while(self, coming: asyncio.Task[bytes | None]) -> None:
        try:
            coming.cancel()
            await asyncio.wait((coming,))  # awaited itself, its end would look like ours
            if not coming.cancelled():
                coming.exception()  # whatever it was, nobody waits for it any more
        finally:
            await self._answer.close()

    def begin_at_once(self, taken: bytes | None = None) -> bool:
        """Take an answer in one piece that is all here, and may have been `taken` already. False where there is
        something to wait for; raises as `begin` does.
        """
        whole = taken
        if whole is None and not self.is_stream:
            whole = self._answer.arrived()
        if whole is None:
            return False
        self._is_whole = True
        self._begin_with(whole or None)
        return True

    async def begin(self) -> None:
        """Wait for the first chunk of an answer in one piece. Raises as `chunks` does, and UpstreamCut."""
        self._begin_with(await anext(self._chunks, None))

    def _begin_with(self, chunk: bytes | None) -> None:
        self._beginning.begin_with(chunk)
        self.headers = self._beginning.headers

    # --- a stream --------------------------------------------------------------------------------

    def begin_stream(self, api: Api, patience: Seconds) -> None:
        """Begin to look for the first event of a stream of this shape. Its client waits for so long."""
        self._overture = Overture(api)
        self._until = asyncio.get_running_loop().time() + patience

    def follow(self, follower: Follower) -> bool:
        return self._answer.follow(follower)

    def leave(self) -> None:
        self._answer.leave()

    def hear(self, chunk: bytes) -> Overture:
        """Some of a stream has come that has begun, and is held. Returns what it has said so far."""
        overture = self._overture
        assert overture is not None, "it was begun"
        try:
            overture.take(len(chunk), self._hold(chunk))
        except UpstreamCut as failure:
            overture.failure = failure
        return overture

    @property
    def is_plain(self) -> bool:
        """Whether what comes now is passed on as it comes."""
        return self._beginning.is_over()

    def next_held(self) -> bytes | None:
        """What is passed on next of what was held; None where that was all."""
        return self._held.popleft() if self._held else None

    async def first_event(self, api: Api, patience: Seconds) -> Event | None:
        """The first event of a stream that says something of its answer; None when none has come after so long, or too
        much else has before it. Raises UpstreamCut where the stream ends before, or is none, and UpstreamTimeout.
        """
        if self._overture is None:
            self.begin_stream(api, patience)
        overture = self._overture
        assert overture is not None, "it was begun"
        while not overture.is_over:
            try:
                chunk = await self._next_in_time()
            except _Late:
                return None
            if chunk is None:
                overture.end()
            else:
                self.hear(chunk)
        if overture.failure is not None:
            raise overture.failure
        return overture.first

    async def is_nothing(self, api: Api) -> bool:
        """Whether a stream that has begun ends well and has nothing in it. Whoever asks waits until something is said,
        and no longer than for the first event. Raises as `first_event` does.
        """
        silence, read, held = Silence(api), tuple(self._held), 0
        try:
            for piece in read:
                silence.take(piece)
            while not (silence.is_broken or silence.is_whole) and held < HELD_MAX:
                chunk = await self._next_in_time()
                if chunk is None:
                    silence.end()
                    break
                held += len(chunk)
                for piece in self._hold(chunk):
                    silence.take(piece)
        except (_Late, EventTooLong):
            return False
        return silence.is_whole

    async def _next_in_time(self) -> bytes | None:
        """The next chunk; None at the end. Raises _Late where its client cannot wait for it, and as `chunks` does."""
        if self._answer.is_ready:
            return await self._next()
        self._coming = asyncio.create_task(self._next())
        left = self._until - asyncio.get_running_loop().time()
        done, _ = await asyncio.wait((self._coming,), timeout=max(left, 0))
        if not done:
            raise _Late
        chunk, self._coming = self._coming.result(), None
        return chunk

    async def _next(self) -> bytes | None:
        return await anext(self._chunks, None)

    def _hold(self, chunk: bytes) -> list[bytes]:
        pieces = self._beginning.hold(chunk)
        self.headers = self._beginning.headers
        return pieces


def nothing() -> ErrorAnswer:
    """What a stream that ends well and has nothing in it should have been."""
    told = {"message": "the answer is empty", "type": "server_error", "param": None, "code": "empty_upstream_response"}
    return ErrorAnswer(_NOTHING_STATUS, _JSON, msgspec.json.encode({"error": told}))


def error_in(event: Event, api: Api) -> ErrorAnswer | None:
    """The error that an event of a stream is, as the answer that it should have been; None when it is none."""
    if api is Api.GEMINI and _STOP.search(event.raw) is not None and _is_nothing(event):
        told = {"error": {"code": _NOTHING_STATUS, "message": "the answer is empty", "status": "INTERNAL"}}
        return ErrorAnswer(_NOTHING_STATUS, _JSON, msgspec.json.encode(told))
    if b"rror" not in event.raw and b"xception" not in event.raw:
        return None
    pieces = DESTINATIONS[api].stream().feed(event)
    failed = next((piece for piece in pieces if isinstance(piece, Failed)), None)
    if failed is None:
        return None
    has_body = api not in (Api.OPENAI_RESPONSES, Api.BEDROCK_CONVERSE)
    told = {"error": {"message": failed.message, "type": failed.kind or "server_error", "param": None, "code": None}}
    return ErrorAnswer(failed.status, _JSON, event.data if has_body else msgspec.json.encode(told))


def _is_nothing(event: Event) -> bool:
    """Whether a stream of Gemini's begins with its good end and had nothing to say: it does so now and then, and the
    next try is an answer.
    """
    pieces = DESTINATIONS[Api.GEMINI].stream().feed(event)
    return all(isinstance(piece, Started | Counted) and not piece.counts.completion for piece in pieces)
