"""The pump: an answer's bytes from the destination to the client, each chunk as it comes.

It moves bytes and nothing else; what they mean is the passage's business. Nothing is woken for a chunk, unless the
client takes less than comes.
"""

import asyncio

from kinference.errors import ClientGone, UpstreamCut, UpstreamTimeout
from kinference.gateway.access_log import End
from kinference.gateway.flow import Flow
from kinference.ids import Seconds
from kinference.ports import UpstreamAnswer


class Relay:
    """One answer's relay, from after its head to its end: its `Sink`. `end` is true at any moment, also after a
    cancellation.
    """

    end = End.CLIENT_CLOSED

    def __init__(self, answer: UpstreamAnswer, flow: Flow, keep_alive: Seconds) -> None:
        self._answer, self._flow, self._keep_alive = answer, flow, keep_alive
        self.take = flow.take
        self._silence: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """Relay to the end, whatever the end is. Raises nothing but its own cancellation."""
        if self._flow.passage.can_keep_alive:
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
        passage = self._flow.passage
        try:
            whole = self._answer.arrived()
            if whole is None:
                await self._answer.pour(self)
            elif not self.take(whole):
                await self.ready()
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
        await self._flow.exchange.finish()
        return self._good_end()

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

    def _good_end(self) -> End:
        return End.UPSTREAM_ERROR if self._flow.passage.has_failed() else End.OK

    def _listen(self, pause: Seconds) -> None:
        """Listen for silence."""
        self._silence = asyncio.get_running_loop().call_later(pause, self._speak_up)

    def _speak_up(self) -> None:
        self._listen(self._flow.speak_up(self._keep_alive))
