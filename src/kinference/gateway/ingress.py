"""The client's body on its way in: passed on as it arrives, counted, and held for a second attempt."""

from collections.abc import AsyncIterator

import msgspec

from kinference.errors import BudgetExceeded, IdleTimeout
from kinference.gateway.patience import Begun
from kinference.ids import Seconds
from kinference.wire.pieces import Pieces, cut, join


class BodyLimits(msgspec.Struct, frozen=True):
    """What one body may take."""

    bytes_max: int
    piece_bytes_max: int
    """Larger chunks go on in pieces."""
    idle: Seconds
    """How long an upload may stand still."""


class HeldBody:
    """A request body. Held because only the picker's own copy is patched, and a retry must start from the original.

    Large pieces are handed on as the very objects that are held, so that a picker in the same process shares them.
    """

    def __init__(self, limits: BodyLimits, declared: int | None) -> None:
        self._limits = limits
        self.declared = declared
        self._held = Pieces(limits.piece_bytes_max)
        self.is_over = (declared or 0) > limits.bytes_max
        """Whether it went over its own limit, or says that it will."""

    def __len__(self) -> int:
        return self._held.size

    async def arriving(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Pass on what comes in. Raises BudgetExceeded at the limit, at once when the declared length is over it, and
        IdleTimeout.
        """
        self._check(self.declared or 0)
        while True:
            begun = Begun(_next(chunks))
            chunk = begun.result if begun.is_done else await self._in_time(begun)
            if chunk is None:
                return
            self._check(self._held.size + len(chunk))
            for piece in cut(chunk, self._limits.piece_bytes_max):
                self._held.append(piece)
                yield piece

    async def again(self) -> AsyncIterator[bytes]:
        """The whole body once more."""
        for piece in self._held.pieces():
            yield piece

    def whole(self) -> bytes:
        """The whole body, once it has arrived."""
        return join(self._held.pieces())

    def release(self) -> None:
        """No further attempt will be made: a long answer need not hold on to a long question."""
        self._held = Pieces(self._limits.piece_bytes_max)

    async def _in_time(self, chunk: Begun[bytes | None]) -> bytes | None:
        try:
            return await chunk.within(self._limits.idle)
        except TimeoutError:
            raise IdleTimeout(f"request body stood still for {self._limits.idle:g} s") from None

    def _check(self, total: int) -> None:
        if total > self._limits.bytes_max:
            self.is_over = True
            raise BudgetExceeded(f"request body over the limit of {self._limits.bytes_max} bytes")


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)
