"""The client's body on its way in: counted against our own limit and the picker's, and held for a second attempt."""

import asyncio
from collections.abc import AsyncIterator, Callable

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

    async def receive(self, exchange: Exchange) -> None:
        """Take it in. Raises BudgetExceeded at our limit and RetryLater at the picker's, at once when the declared
        length is over it, and IdleTimeout.
        """
        if (whole := exchange.arrived()) is not None:
            self._take(whole)
        else:
            self._expect(content_length(exchange.headers) or 0)
            await self._gather(exchange.body())
        self.whole = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()

    async def _gather(self, chunks: AsyncIterator[bytes]) -> None:
        idle, loop = self._limits.idle, asyncio.get_running_loop()
        try:
            async with asyncio.timeout(idle) as patience:
                async for chunk in chunks:
                    self._take(chunk)
                    patience.reschedule(loop.time() + idle)
        except TimeoutError:
            raise IdleTimeout(f"request body stood still for {idle:g} s") from None

    def _expect(self, declared: int) -> None:
        self._check(declared)
        self._count(self._picker.make_room, declared)

    def _take(self, chunk: bytes) -> None:
        size = len(chunk)
        self._check(self._counted + size)
        self._count(self._picker.hold, size)
        self._counted += size
        self._pieces.append(chunk)

    @staticmethod
    def _count(count: Callable[[int], None], size: int) -> None:
        try:
            count(size)
        except BudgetExceeded as error:  # all bodies together are too much, which is not this one's fault
            raise RetryLater("too much is buffered at the moment") from error

    def _check(self, total: int) -> None:
        if total > self._limits.bytes_max:
            raise BudgetExceeded(f"request body over the limit of {self._limits.bytes_max} bytes")

    def placed(self) -> None:
        """Have it counted no longer; harmless when it is not."""
        counted, self._counted = self._counted, 0
        self._picker.let_go(counted)

    def release(self) -> None:
        """No further attempt will be made: a long answer need not hold on to a long question."""
        self.whole = b""
