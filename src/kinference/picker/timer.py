"""The one task that reclaims what is due, on our own initiative."""

import asyncio
from math import inf

from kinference.ids import Seconds
from kinference.picker.desk import Desk
from kinference.ports import Clock


class ReclaimTimer:
    """Sleeps until the nearest deadline of a desk. Runs until it is cancelled."""

    def __init__(self, desk: Desk, clock: Clock) -> None:
        self._desk, self._clock = desk, clock
        self._asleep_until: Seconds = -inf
        self._earlier = asyncio.Event()
        desk.on_deadline(self._announce)

    async def run(self) -> None:
        """Reclaim for ever, some at a time, so that other work gets its turn in between."""
        while True:
            self._desk.expire()
            deadline = self._desk.deadline()
            self._asleep_until = inf if deadline is None else deadline
            await self._sleep()

    async def _sleep(self) -> None:
        self._earlier.clear()
        delay = self._asleep_until - self._clock.now()
        try:
            async with asyncio.timeout(None if delay == inf else max(0.0, delay)):
                await self._earlier.wait()
        except TimeoutError:
            pass

    def _announce(self, deadline: Seconds) -> None:
        if deadline < self._asleep_until:
            self._earlier.set()
