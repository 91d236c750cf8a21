"""What could not be placed at once, for a caller in this process."""

import asyncio
from collections.abc import Generator

from kinference.picker.choosing import Pending
from kinference.picker.desk import Desk
from kinference.picker.held import HeldPick
from kinference.ports import Placed


class Late:
    """It, as soon as it can be. Held from now on, whenever it is awaited: admission may let it go in any call."""

    def __init__(self, desk: Desk, pending: Pending) -> None:
        self._desk, self._woken = desk, asyncio.Event()
        self._held: HeldPick[Placed] | None = desk.hold_on(pending, self._woken.set)

    def __await__(self) -> Generator[None, None, Placed]:
        return self._placed().__await__()

    async def _placed(self) -> Placed:
        placed: Placed | HeldPick[Placed] | None = self._held
        assert placed is not None, "awaited once, and not closed"
        try:
            while isinstance(placed, HeldPick):
                await self._woken.wait()
                self._woken.clear()
                self._held = None
                placed = self._desk.resume(placed)
                self._held = placed if isinstance(placed, HeldPick) else None
        finally:
            self.close()
        return placed

    def close(self) -> None:
        """Nobody waits for it any more."""
        held, self._held = self._held, None
        if held is not None:
            self._desk.give_up(held)
