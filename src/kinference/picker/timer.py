"""The one task that reclaims what is due, on our own initiative."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from math import inf

from kinference.ids import Seconds
from kinference.picker.desk import Desk
from kinference.picker.trim import trim
from kinference.ports import Clock
from kinference.wire.patience import Patience

TRIM_BYTES = 32 * 1024 * 1024
"""Let go of since the last time: it pays to ask the allocator for them."""
TRIM_APART: Seconds = 10.0
"""So rarely, while requests come and go: it costs some milliseconds, and they would use the memory again."""
TRIM_LEAST_BYTES = 1024 * 1024
TRIM_LEAST_ITEMS = 256
"""Less, down to these, pays where it was reclaimed: nobody is at work there."""
TRIM_LATE: Seconds = 1.0
"""After the last was reclaimed; by then calls that were cut have been woken and have let go, too."""


class ReclaimTimer:
    """Sleeps until the nearest deadline of a desk. Runs until it is cancelled.

    What begins during a sleep is due no sooner than the shortest of the limits after it began. So no sleep is longer
    than that, and nobody has to wake the timer: requests come by the thousand and hardly any is ever due. Only Picks
    that are held do.
    """

    def __init__(self, desk: Desk, clock: Clock, trim: Callable[[], None] = trim) -> None:
        self._desk, self._clock, self._trim = desk, clock, trim
        self._until: Seconds = inf
        self._sooner = asyncio.Event()
        desk.on_hold(self._announce)
        self._reclaimed = 0
        """Of all kinds, since the last quiet time."""
        self._reclaimed_at: Seconds = -inf
        self._trimmed_at: Seconds = -inf

    async def run(self) -> None:
        """Reclaim for ever, some at a time, so that other work gets its turn in between."""
        while True:
            reclaimed = self._desk.expire()
            now, deadline = self._clock.now(), self._desk.deadline()
            if reclaimed:
                self._reclaimed, self._reclaimed_at = self._reclaimed + reclaimed, now
            until = now + self._desk.limits.shortest_ttl
            if deadline is not None and deadline < until:
                until = deadline
            if until > now:
                until = min(until, self._trim_in_time(now))
            await self._sleep(until, max(0.0, until - now))

    def _trim_in_time(self, now: Seconds) -> Seconds:
        """Give memory back, or say when to look again."""
        late = self._reclaimed_at + TRIM_LATE
        if self._reclaimed and now < late:
            return late
        reclaimed, self._reclaimed = self._reclaimed, 0
        surplus = self._desk.surplus_bytes
        if reclaimed:
            pays = surplus >= TRIM_LEAST_BYTES or reclaimed >= TRIM_LEAST_ITEMS
        else:
            pays = surplus >= TRIM_BYTES and now >= self._trimmed_at + TRIM_APART
        if pays:
            self._trimmed_at = now
            self._desk.pack()
            self._trim()
        return inf

    async def _sleep(self, until: Seconds, delay: Seconds) -> None:
        self._until = until
        self._sooner.clear()
        with suppress(TimeoutError):
            async with Patience(delay):
                await self._sooner.wait()

    def _announce(self, deadline: Seconds) -> None:
        if deadline < self._until:
            self._sooner.set()
