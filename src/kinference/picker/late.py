"""What could not be placed at once, for a caller in this process."""

import asyncio
from collections.abc import Awaitable

from kinference.picker.choosing import Pending
from kinference.picker.desk import Desk
from kinference.picker.held import HeldPick
from kinference.ports import Placed


def late(desk: Desk, pending: Pending) -> Placed | Awaitable[Placed]:
    """It, as soon as it can be. Held from now on, whenever that is awaited: admission may let it go in any call."""
    woken = asyncio.Event()
    placed: Placed | HeldPick[Placed] = desk.hold_on(pending, woken.set)
    return _placed(desk, placed, woken) if isinstance(placed, HeldPick) else placed


async def _placed(desk: Desk, held: HeldPick[Placed], woken: asyncio.Event) -> Placed:
    placed: Placed | HeldPick[Placed] = held
    while isinstance(placed, HeldPick):
        try:
            await woken.wait()
        except BaseException:
            desk.give_up(placed)
            raise
        woken.clear()
        placed = desk.resume(placed)
    return placed
