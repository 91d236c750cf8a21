"""The pump: an answer's bytes from the destination to the client, each chunk as it comes.

It moves bytes and nothing else; what they mean is the passage's business. Nothing is woken for a chunk, unless the
client takes less than comes.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from kinference.errors import ClientGone, UpstreamCut, UpstreamTimeout
from kinference.gateway.access_log import End
from kinference.gateway.flow import Flow
from kinference.ids import Seconds
from kinference.ports import UpstreamAnswer

_CLIENT_CLOSED: Final = End.CLIENT_CLOSED
"""Read once: Python 3.11 finds a member of an enum by a hook of its metaclass, at ten times the price of a constant."""


def _untold(_flow: Flow, _end: End) -> None:
    pass


class Relay:
    """One answer's relay, from after its head to its end: its `Sink`. `end` is true at any moment, also after a
    cancellation.
    """

    end = _CLIENT_CLOSED
    _rest: bytes | None = None
    """What the passage still held at the end of the answer."""
    _has_poured = False
    """Whether all of the answer went its way."""

    def __init__(
        self, answer: UpstreamAnswer, flow: Flow, keep_alive: Seconds, over: Callable[[Flow, End], None] = _untold
    ) -> None:
        """`over` is told the end."""
        self._answer, self.flow, self._keep_alive, self._over = answer, flow, keep_alive, over
        self.take = flow.take
        self._silence: asyncio.TimerHandle | None = None

    def at_once(self) -> bool:
        """Relay an answer that is all here, to a client that takes it all. False where `run` is to go on."""
        whole = self._answer.arrived()
        if whole is None:
            return False
        if not self.take(whole):
            self._has_poured = True
            return False
        return self.finish()

    def finish(self) -> bool:
        """All of the answer went its way. False where `run` is to go on."""
        self._has_poured = True
        passage = self.flow.passage
        self._rest = rest = passage.close()
        if rest or not passage.is_whole(cut=False):
            return False
        try:
            self.flow.exchange.finish()
        except ClientGone:
            pass  # its end is the default one
        else:
            self.end = self._good_end()
        self.stop()
        return True

    def stop(self) -> None:
        """Nobody is there for the rest."""
        if self.flow.has_all and self.end is _CLIENT_CLOSED:
            self.end = self._good_end()
        self._over(self.flow, self.end)

    async def run(self) -> None:
        """Relay to the end from where it is, whatever the end is. Raises nothing but its own cancellation."""
        if self.flow.passage.can_keep_alive:
            self._listen(self._keep_alive)
        try:
            self.end = await self._pump()
        except ClientGone:
            pass  # its end is the default one
        finally:
            if self._silence is not None:
                self._silence.cancel()
            self.stop()

    async def _pump(self) -> End:
        passage, is_cut = self.flow.passage, False
        try:
            await self._pour()
        except (UpstreamCut, UpstreamTimeout):
            self.flow.failure = None  # where it was that, it has been raised
            if not passage.is_whole(cut=True):
                return await self._break_off()
            is_cut = True
        if rest := passage.close() if self._rest is None else self._rest:
            await self._write(rest)
        if not passage.is_whole(cut=is_cut):
            return await self._break_off()
        await self.flow.exchange.finish()
        return self._good_end()

    async def _pour(self) -> None:
        await self.ready()
        if self._has_poured:
            return
        if (whole := self._answer.arrived()) is None:
            await self._answer.pour(self)
        elif not self.take(whole):
            await self.ready()

    async def ready(self) -> None:
        flow = self.flow
        if flow.failure is not None:
            raise flow.failure
        if flow.is_behind:
            await flow.exchange.drained()
            flow.catch_up()

    async def _write(self, out: bytes) -> None:
        self.flow.send(out)
        await self.ready()

    async def _break_off(self) -> End:
        exchange, farewell = self.flow.exchange, self.flow.passage.farewell()
        if farewell is None:
            exchange.abort()
        else:
            await self._write(farewell)
            await exchange.finish()
        return End.UPSTREAM_CUT

    def _good_end(self) -> End:
        return End.UPSTREAM_ERROR if self.flow.passage.has_failed() else End.OK

    def _listen(self, pause: Seconds) -> None:
        """Listen for silence."""
        self._silence = asyncio.get_running_loop().call_later(pause, self._speak_up)

    def _speak_up(self) -> None:
        self._listen(self.flow.speak_up(self._keep_alive))
