"""The pump: an answer's bytes from the destination to the client, each chunk as it comes, where there is waiting to do.

It moves bytes and nothing else; what they mean is the passage's business. Nothing is woken for a chunk, unless the
client takes less than comes.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from kinference.errors import ClientGone, UpstreamCut, UpstreamTimeout
from kinference.gateway.access_log import End
from kinference.gateway.flow import Flow
from kinference.ids import Seconds
from kinference.ports import UpstreamAnswer


class Relayed(Protocol):
    """An answer of which some may have gone its way."""

    end: End
    answer: UpstreamAnswer
    flow: Flow
    keep_alive: Seconds
    rest: bytes | None
    has_poured: bool

    def stop(self) -> None:
        """It is over."""
        ...

    def good_end(self) -> End:
        """What its end is where all of it went its way."""
        ...


class Pump:
    """One answer's `Sink`, from where its relay is to its end."""

    def __init__(self, relay: Relayed) -> None:
        self._relay, self._answer, self._flow, self._keep_alive = relay, relay.answer, relay.flow, relay.keep_alive
        self.take: Callable[[bytes], bool] = relay.flow.take
        self._silence: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """Relay to the end, whatever the end is. Raises nothing but its own cancellation."""
        relay = self._relay
        if self._flow.passage.can_keep_alive:
            self._listen(self._keep_alive)
        try:
            relay.end = await self._pump()
        except ClientGone:
            pass  # its end is the default one
        finally:
            if self._silence is not None:
                self._silence.cancel()
            relay.stop()

    async def _pump(self) -> End:
        passage, rest, is_cut = self._flow.passage, self._relay.rest, False
        try:
            await self._pour()
        except (UpstreamCut, UpstreamTimeout):
            self._flow.failure = None  # where it was that, it has been raised
            if not passage.is_whole(cut=True):
                return await self._break_off()
            is_cut = True
        if rest := passage.close() if rest is None else rest:
            await self._write(rest)
        if not passage.is_whole(cut=is_cut):
            return await self._break_off()
        await self._flow.exchange.finish()
        return self._relay.good_end()

    async def _pour(self) -> None:
        await self.ready()
        if self._relay.has_poured:
            return
        if (whole := self._answer.arrived()) is None:
            await self._answer.pour(self)
        elif not self.take(whole):
            await self.ready()

    async def ready(self) -> None:
        flow = self._flow
        if flow.failure is not None:
            raise flow.failure
        if flow.is_behind:
            await flow.exchange.drained()
            flow.catch_up()

    async def _write(self, out: bytes) -> None:
        self._flow.send(out)
        await self.ready()

    async def _break_off(self) -> End:
        exchange, farewell = self._flow.exchange, self._flow.passage.farewell()
        if farewell is None:
            exchange.abort()
        else:
            await self._write(farewell)
            await exchange.finish()
        return End.UPSTREAM_CUT

    def _listen(self, pause: Seconds) -> None:
        """Listen for silence."""
        self._silence = asyncio.get_running_loop().call_later(pause, self._speak_up)

    def _speak_up(self) -> None:
        self._listen(self._flow.speak_up(self._keep_alive))
