"""The one task that reclaims what is due, on our own initiative."""

import asyncio
from collections.abc import Callable
from math import inf

from kinference.ids import Seconds
from kinference.picker.desk import Desk
from kinference.picker.trim import trim
from kinference.ports import Clock

TRIM_BYTES = 32 * 1024 * 1024
"""Reclaimed since the last time: it pays to ask the allocator for them at once."""
TRIM_LEAST_BYTES = 1024 * 1024
TRIM_LATE: Seconds = 1.0
"""Less, down to this, is asked for when nothing more was reclaimed for so long."""


class ReclaimTimer:
    """Sleeps until the nearest deadline of a desk. Runs until it is cancelled.

    What begins during a sleep is due no sooner than the shortest of the limits after it began. So no sleep is longer
    than that, and nobody has to wake the timer: requests come by the thousand and hardly any is ever due. Only Picks
    that are held do.
    """

    def __init__(self, desk: Desk, clock: Clock, trim: Callable[[], None] = trim) -> None:
        self._desk, self._clock, self._trim = desk, clock, trim
        self._reclaimed = 0
        self._until: Seconds = inf
        self._sooner = asyncio.Event()
        desk.on_hold(self._announce)
        self._reclaimed_at: Seconds = -inf

    async def run(self) -> None:
        """Reclaim for ever, some at a time, so that other work gets its turn in between."""
        while True:
            held = self._desk.buffered_bytes
            self._desk.expire()
            reclaimed = held - self._desk.buffered_bytes
            self._reclaimed += reclaimed
            now, deadline = self._clock.now(), self._desk.deadline()
            if reclaimed:
                self._reclaimed_at = now
            until = now + self._desk.limits.shortest_ttl
            if deadline is not None and deadline < until:
                until = deadline
            if until > now:
                until = min(until, self._trim_in_time(now))
            await self._sleep(until, max(0.0, until - now))

    def _trim_in_time(self, now: Seconds) -> Seconds:
        """Give memory back, or say when to look again."""
        late = self._reclaimed_at + TRIM_LATE
        if self._reclaimed >= TRIM_BYTES or (self._reclaimed >= TRIM_LEAST_BYTES and late <= now):
            self._reclaimed = 0
            self._trim()
        return late if self._reclaimed >= TRIM_LEAST_BYTES else inf

    async def _sleep(self, until: Seconds, delay: Seconds) -> None:
        self._until = until
        self._sooner.clear()
        try:
            async with asyncio.timeout(delay):
                await self._sooner.wait()
        except TimeoutError:
            pass

    def _announce(self, deadline: Seconds) -> None:
        if deadline < self._until:
            self._sooner.set()
