"""The pump: an answer's bytes from the destination to the client, each chunk as it comes.

The loop moves bytes and nothing else; what they mean is the passage's business.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import msgspec

from kinference.errors import ClientGone, UpstreamCut, UpstreamTimeout
from kinference.gateway.access_log import End
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
    """One answer's relay, from after its head to its end. `end` is true at any moment, also after a cancellation."""

    def __init__(self, pipe: Pipe, on_first_byte: Callable[[Seconds], None]) -> None:
        self._pipe = pipe
        self._on_first_byte = on_first_byte
        self._is_writing = False
        self._speaking: asyncio.Lock | None = None
        self._quiet_since = pipe.clock.now()
        self._has_all = False  # what the client was sent ends the stream, after which SDKs leave without a word
        self.first_byte_at: Seconds | None = None
        self.end = End.CLIENT_CLOSED

    async def run(self) -> None:
        """Relay to the end, whatever the end is. Raises nothing but its own cancellation."""
        try:
            if self._pipe.passage.can_keep_alive:
                await self._accompanied()
            else:
                self.end = await self._pump()
        except ClientGone:
            self.end = End.CLIENT_CLOSED
        finally:
            if self.end is End.CLIENT_CLOSED and self._has_all:
                self.end = self._good_end()

    async def _accompanied(self) -> None:
        """Pump, and speak up whenever the stream is silent for long. Few streams ever are, so a timer comes first."""
        keepers: list[asyncio.Task[None]] = []
        async with asyncio.TaskGroup() as tasks:
            silence = asyncio.get_running_loop().call_later(
                self._pipe.keep_alive, lambda: keepers.append(tasks.create_task(self._keep_alive()))
            )
            try:
                with suppress(ClientGone):  # its end is the default one
                    self.end = await self._pump()
            finally:
                silence.cancel()
                for keeper in keepers:
                    keeper.cancel()

    async def _pump(self) -> End:
        passage, clock = self._pipe.passage, self._pipe.clock
        try:
            async for chunk in self._pipe.answer.chunks():
                now = self._quiet_since = clock.now()
                if self.first_byte_at is None:
                    self.first_byte_at = now
                    self._on_first_byte(now)
                if out := passage.feed(chunk, now):
                    await self._write(out)
                self._has_all = passage.is_whole(cut=True)
        except (UpstreamCut, UpstreamTimeout):
            if is_whole := passage.is_whole(cut=True):
                await self._write_rest()
            return await self._finish(is_whole)
        await self._write_rest()
        return await self._finish(passage.is_whole(cut=False))

    async def _finish(self, is_whole: bool) -> End:
        exchange = self._pipe.exchange
        if is_whole:
            await exchange.finish()
            return self._good_end()
        farewell = self._pipe.passage.farewell()
        if farewell is None:
            exchange.abort()
        else:
            await self._write(farewell)
            await exchange.finish()
        return End.UPSTREAM_CUT

    def _good_end(self) -> End:
        return End.UPSTREAM_ERROR if self._pipe.passage.has_failed() else End.OK

    async def _write_rest(self) -> None:
        if rest := self._pipe.passage.close():
            await self._write(rest)

    async def _write(self, chunk: bytes) -> None:
        if self._speaking is not None:
            async with self._speaking:
                pass  # a keep-alive is on its way out
        self._is_writing = True
        await self._pipe.exchange.write(chunk)
        self._is_writing = False

    async def _keep_alive(self) -> None:
        """Say something whenever the stream has been silent for long, so that no proxy in between gives it up."""
        clock, patience = self._pipe.clock, self._pipe.keep_alive
        self._speaking = asyncio.Lock()
        while True:
            await asyncio.sleep(max(self._quiet_since + patience - clock.now(), 0))
            if clock.now() - self._quiet_since < patience:
                continue
            self._quiet_since = clock.now()
            if self._is_writing:
                continue  # the client takes nothing, so that it would not get this either
            if words := self._pipe.passage.keep_alive():
                try:
                    async with self._speaking:
                        await self._pipe.exchange.write(words)
                except ClientGone:
                    return  # the pump learns of it by itself
