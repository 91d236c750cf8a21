"""The client's body on its way in: counted against our own limit and the picker's, and held for a second attempt."""

import asyncio
from collections.abc import AsyncIterator

import msgspec

from kinference.errors import BudgetExceeded, IdleTimeout, RetryLater
from kinference.gateway.headers import content_length
from kinference.ids import Seconds
from kinference.ports import Picker
from kinference.wire.exchange import Exchange


class BodyLimits(msgspec.Struct, frozen=True):
    """What one body may take."""

    bytes_max: int
    idle: Seconds
    """How long an upload may stand still."""


class HeldBody:
    """A request body. Held because only the picker's own copy is patched, and a retry must start from the original.

    The picker counts it from its first byte until it is placed, however slowly it comes in.
    """

    def __init__(self, limits: BodyLimits, picker: Picker) -> None:
        self._limits, self._picker = limits, picker
        self._pieces: list[bytes] = []
        self._counted = 0
        self.whole = b""
        """All of it, once it has arrived."""

    def take_arrived(self, exchange: Exchange) -> bool:
        """Take it in at once, where all of it is here; else it is yet to be received. Raises as `receive` does."""
        whole = exchange.arrived()
        if whole is None:
            return False
        self._count(whole)
        self.whole = whole
        return True

    async def receive(self, exchange: Exchange) -> None:
        """Take it in as it comes. Raises BudgetExceeded at our limit and RetryLater at the picker's, at once when the
        declared length is over it, and IdleTimeout.
        """
        self._expect(content_length(exchange.headers) or 0)
        await self._gather(exchange.body())
        self.whole = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()

    async def _gather(self, chunks: AsyncIterator[bytes]) -> None:
        idle, loop = self._limits.idle, asyncio.get_running_loop()
        try:
            async with asyncio.timeout(idle) as patience:
                async for chunk in chunks:
                    self._count(chunk)
                    self._pieces.append(chunk)
                    patience.reschedule(loop.time() + idle)
        except TimeoutError:
            raise IdleTimeout(f"request body stood still for {idle:g} s") from None

    def _expect(self, declared: int) -> None:
        if declared > self._limits.bytes_max:
            raise self._too_long()
        try:
            self._picker.make_room(declared)
        except BudgetExceeded as error:
            raise _no_room() from error

    def _count(self, chunk: bytes) -> None:
        counted = self._counted + len(chunk)
        if counted > self._limits.bytes_max:
            raise self._too_long()
        try:
            self._picker.hold(len(chunk))
        except BudgetExceeded as error:
            raise _no_room() from error
        self._counted = counted

    def _too_long(self) -> BudgetExceeded:
        return BudgetExceeded(f"request body over the limit of {self._limits.bytes_max} bytes", "body_max_bytes")

    def placed(self) -> None:
        """Have it counted no longer; harmless when it is not."""
        counted, self._counted = self._counted, 0
        if counted:
            self._picker.let_go(counted)

    def release(self) -> None:
        """No further attempt will be made: a long answer need not hold on to a long question."""
        self.whole = b""


def _no_room() -> RetryLater:
    """All bodies together are too much, which is not this one's fault."""
    return RetryLater("too much is buffered at the moment", limit="buffer_max_bytes")
