"""Keeps one follower going for every pool whose endpoints are discovered."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from kinference.core.fleet import EndpointSpec, Fleet
from kinference.fleet.discovery.following import DiscoveryStatus, Following, Surroundings
from kinference.fleet.discovery.source import Source
from kinference.ids import ObjectRef, Seconds
from kinference.observe.metrics import DISCOVERY_AGE, DISCOVERY_ENDPOINTS, DISCOVERY_FAILURES, Metrics
from kinference.ports import Clock

SETTLE_MAX: Seconds = 10.0
SOURCES_TOLD: Final = 4
_POLL: Seconds = 0.01


@dataclass(frozen=True, slots=True)
class Wanted:
    """One pool that is to be discovered."""

    template: EndpointSpec
    """Every endpoint of the pool but for its address."""
    asked: Hashable
    """What is configured: another is another source, the same one goes on."""
    source: Callable[[], Source]


class _Member:
    def __init__(self, asked: Hashable, following: Following) -> None:
        self.asked, self.following = asked, following
        self.task: asyncio.Task[None] | None = None
        self.failures_shown = 0

    def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()
        self.following.release()


class Discoveries:
    """All pools that are discovered."""

    def __init__(
        self,
        fleet: Fleet,
        clock: Clock,
        rng: Random,
        changed: Callable[[], None],
        sleep: Callable[[Seconds], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._around = Surroundings(fleet, clock, rng, sleep, changed)
        self._members: dict[ObjectRef, _Member] = {}
        self._changed = asyncio.Event()

    def configure(self, wanted: Iterable[Wanted]) -> None:
        """Follow these and no others. A pool whose source is another keeps its endpoints until that one tells."""
        pools = {one.template.pool: one for one in wanted}
        for ref in [ref for ref in self._members if ref not in pools or self._members[ref].asked != pools[ref].asked]:
            self._members.pop(ref).stop()
        for ref, one in pools.items():
            if ref in self._members:
                self._members[ref].following.respecify(one.template)
            else:
                following = Following(self._around, one.template, one.source())
                self._members[ref] = _Member(one.asked, following)
        self._changed.set()

    async def run(self) -> None:
        """Follow them until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                for member in self._members.values():
                    if member.task is None:
                        member.task = group.create_task(member.following.run())
                await self._changed.wait()
                self._changed.clear()

    async def settle(self) -> None:
        """Wait until every source has told or failed once, for so long at most."""
        deadline = self._around.clock.now() + SETTLE_MAX
        while any(not one.following.is_settled for one in self._members.values()):
            if self._around.clock.now() >= deadline:
                return
            await asyncio.sleep(_POLL)

    def statuses(self) -> Sequence[DiscoveryStatus]:
        """How each fares, by pool."""
        return [self._members[ref].following.status() for ref in sorted(self._members)]

    def why_none(self) -> str | None:
        """Why the pools may have no endpoint; None where none is discovered."""
        told = [f"pool {one.pool} by {one.source}: {one.error or 'it tells of none'}" for one in self.statuses()]
        return "; ".join(told[:SOURCES_TOLD]) or None

    def publish(self, metrics: Metrics) -> None:
        """Show it as it is now."""
        for ref, member in self._members.items():
            status = member.following.status()
            metrics.gauge(DISCOVERY_ENDPOINTS, status.endpoints, str(ref))
            if status.told_s_ago is not None:
                metrics.gauge(DISCOVERY_AGE, status.told_s_ago, str(ref))
            metrics.count(DISCOVERY_FAILURES, str(ref), amount=status.failures - member.failures_shown)
            member.failures_shown = status.failures
