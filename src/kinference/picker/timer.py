"""The one task that reclaims what is due, on our own initiative."""

import asyncio
from collections.abc import Callable
from math import inf

from kinference.ids import Seconds
from kinference.picker.desk import Desk
from kinference.picker.trim import trim
from kinference.ports import Clock

TRIM_BYTES = 32 * 1024 * 1024
"""Reclaimed since the last time: it pays to ask the allocator for them."""


class ReclaimTimer:
    """Sleeps until the nearest deadline of a desk. Runs until it is cancelled."""

    def __init__(self, desk: Desk, clock: Clock, trim: Callable[[], None] = trim) -> None:
        self._desk, self._clock, self._trim = desk, clock, trim
        self._reclaimed = 0
        self._asleep_until: Seconds = -inf
        self._earlier = asyncio.Event()
        desk.on_deadline(self._announce)

    async def run(self) -> None:
        """Reclaim for ever, some at a time, so that other work gets its turn in between."""
        while True:
            held = self._desk.buffered_bytes
            self._desk.expire()
            self._reclaimed += held - self._desk.buffered_bytes
            deadline = self._desk.deadline()
            self._asleep_until = inf if deadline is None else deadline
            if self._reclaimed >= TRIM_BYTES and self._asleep_until > self._clock.now():
                self._reclaimed = 0
                self._trim()
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
