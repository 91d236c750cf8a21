"""The pump: an answer's bytes from the destination to the client, each chunk as it comes.

It moves bytes and nothing else; what they mean is the passage's business. Nothing is woken for a chunk, unless the
client takes less than comes.
"""

import asyncio
from collections.abc import Callable

import msgspec

from kinference.errors import ClientGone, UpstreamCut, UpstreamTimeout
from kinference.gateway.access_log import End
from kinference.gateway.flow import Flow
from kinference.gateway.passage import Passage
from kinference.ids import Seconds
from kinference.ports import Clock, UpstreamAnswer
from kinference.wire.exchange import Exchange


class Pipe(msgspec.Struct, frozen=True):
    """Both ends of one relay and what lies between."""

    exchange: Exchange
    answer: UpstreamAnswer
    passage: Passage
    clock: Clock
    keep_alive: Seconds


class Relay:
    """One answer's relay, from after its head to its end: its `Sink`. `end` is true at any moment, also after a
    cancellation.
    """

    end = End.CLIENT_CLOSED

    def __init__(self, pipe: Pipe, on_first_byte: Callable[[Seconds], None]) -> None:
        self._answer, self._keep_alive = pipe.answer, pipe.keep_alive
        self._exchange, self._passage = pipe.exchange, pipe.passage
        self._flow = Flow(pipe.exchange, pipe.passage, pipe.clock, on_first_byte)
        self.take = self._flow.take
        self._silence: asyncio.TimerHandle | None = None

    @property
    def first_byte_at(self) -> Seconds | None:
        """When the first of it came; None when none has."""
        return self._flow.first_byte_at

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
            if self._flow.has_all and self.end is End.CLIENT_CLOSED:
                self.end = self._good_end()

    async def _pump(self) -> End:
        passage = self._passage
        try:
            await self._answer.pour(self)
        except (UpstreamCut, UpstreamTimeout):
            self._flow.failure = None  # where it was that, it has been raised
            if not passage.is_whole(cut=True):
                return await self._break_off()
            is_cut = True
        else:
            is_cut = False
        if rest := passage.close():
            await self._write(rest)
        if not passage.is_whole(cut=is_cut):
            return await self._break_off()
        await self._exchange.finish()
        return self._good_end()

    async def ready(self) -> None:
        flow = self._flow
        if flow.failure is not None:
            raise flow.failure
        if flow.is_behind:
            await self._exchange.drained()
            flow.catch_up()

    async def _write(self, out: bytes) -> None:
        self._flow.send(out)
        await self.ready()

    async def _break_off(self) -> End:
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
        self._listen(self._flow.speak_up(self._keep_alive))
