"""What could not be placed at once, for a caller in this process."""

import asyncio

from kinference.picker.choosing import Pending
from kinference.picker.desk import Desk
from kinference.picker.held import HeldPick
from kinference.ports import Placed


async def late(desk: Desk, pending: Pending) -> Placed:
    """Wait until it can be."""
    woken = asyncio.Event()
    placed: Placed | HeldPick[Placed] = desk.hold_on(pending, woken.set)
    while isinstance(placed, HeldPick):
        try:
            await woken.wait()
        except BaseException:
            desk.give_up(placed)
            raise
        woken.clear()
        placed = desk.resume(placed)
    return placed
