"""The pump: an answer's bytes from the destination to the client, each chunk as it comes.

It moves bytes and nothing else; what they mean is the passage's business. A chunk goes through in the very call that
brings it: nothing is woken for it, unless the client takes less than comes.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import msgspec

from kinference.errors import ClientGone, UpstreamCut, UpstreamTimeout
from kinference.gateway.access_log import End
from kinference.gateway.passage import Passage
from kinference.ids import Seconds
from kinference.ports import Clock, Sink, UpstreamAnswer
from kinference.wire.exchange import Exchange


class Pipe(msgspec.Struct, frozen=True):
    """Both ends of one relay and what lies between."""

    exchange: Exchange
    answer: UpstreamAnswer
    passage: Passage
    clock: Clock
    keep_alive: Seconds


class Relay(Sink):
    """One answer's relay, from after its head to its end. `end` is true at any moment, also after a cancellation."""

    end = End.CLIENT_CLOSED

    def __init__(self, pipe: Pipe, on_first_byte: Callable[[Seconds], None]) -> None:
        self._answer, self._keep_alive = pipe.answer, pipe.keep_alive
        self._exchange, self._passage, self._clock = pipe.exchange, pipe.passage, pipe.clock
        self._on_first_byte = on_first_byte
        self._is_behind = False
        """Whether the client has yet to take what was sent."""
        self._has_all = False
        """Whether what it was sent ends the stream, after which SDKs leave without a word."""
        self._failure: ClientGone | UpstreamCut | None = None
        self._silence: asyncio.TimerHandle | None = None
        self._quiet_since = self._clock.now()
        self.first_byte_at: Seconds | None = None

    async def run(self) -> None:
        """Relay to the end, whatever the end is. Raises nothing but its own cancellation."""
        if self._passage.can_keep_alive:
            self._listen(self._keep_alive)
        try:
            self.end = await self._pump()
        except ClientGone:
            pass  # its end is the default one
        finally:
            if self._silence is not None:
                self._silence.cancel()
            if self._has_all and self.end is End.CLIENT_CLOSED:
                self.end = self._good_end()

    async def _pump(self) -> End:
        passage = self._passage
        try:
            await self._answer.pour(self)
        except (UpstreamCut, UpstreamTimeout):
            if is_whole := passage.is_whole(cut=True):
                await self._write_rest()
            return await self._finish(is_whole)
        await self._write_rest()
        return await self._finish(passage.is_whole(cut=False))

    def take(self, chunk: bytes) -> bool:
        now = self._quiet_since = self._clock.now()
        if self.first_byte_at is None:
            self.first_byte_at = now
            self._on_first_byte(now)
        try:
            if out := self._passage.feed(chunk, now):
                self._send(out)
        except (ClientGone, UpstreamCut) as failure:  # whoever brings the chunk is not who waits for the end
            self._failure = failure
            return False
        if not self._is_behind:
            self._has_all = self._passage.is_whole(cut=True)
        return not self._is_behind

    async def ready(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._is_behind:
            await self._exchange.drained()
            self._is_behind = False
            self._has_all = self._passage.is_whole(cut=True)

    def _send(self, out: bytes) -> None:
        self._is_behind = not self._exchange.send(out)

    async def _write_rest(self) -> None:
        if rest := self._passage.close():
            await self._write(rest)

    async def _write(self, out: bytes) -> None:
        self._send(out)
        await self.ready()

    async def _finish(self, is_whole: bool) -> End:
        if is_whole:
            await self._exchange.finish()
            return self._good_end()
        farewell = self._passage.farewell()
        if farewell is None:
            self._exchange.abort()
        else:
            await self._write(farewell)
            await self._exchange.finish()
        return End.UPSTREAM_CUT

    def _good_end(self) -> End:
        return End.UPSTREAM_ERROR if self._passage.has_failed() else End.OK

    def _listen(self, pause: Seconds) -> None:
        """Listen for silence."""
        self._silence = asyncio.get_running_loop().call_later(pause, self._speak_up)

    def _speak_up(self) -> None:
        """Say something where the stream has been silent for long, so that no proxy in between gives it up."""
        now = self._clock.now()
        left = self._quiet_since + self._keep_alive - now
        if left <= 0:
            left, self._quiet_since = self._keep_alive, now
            # A client that takes nothing would not get this either.
            if not self._is_behind and (words := self._passage.keep_alive()):
                with suppress(ClientGone):  # the pump learns of it by itself
                    self._send(words)
        self._listen(left)
