"""The supervisor: keeps one probe and one scrape going for every endpoint of the fleet."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from random import Random
from typing import TypeAlias

from kinference.core.fleet import Endpoint, EndpointSpec, Fleet
from kinference.fleet.options import WatchOptions
from kinference.fleet.probes import Probe
from kinference.fleet.scrape import Scrape
from kinference.ids import Address, ObjectRef, Seconds
from kinference.ports import Clock, Upstream

Companion: TypeAlias = Callable[[asyncio.TaskGroup, Endpoint], Iterable[asyncio.Task[None]]]

_log = logging.getLogger(__name__)


class _Member:
    """The tasks of one endpoint, and what they were started for."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.spec: EndpointSpec = endpoint.spec
        self.probed = asyncio.Event()
        self.tasks: tuple[asyncio.Task[None], ...] = ()

    def watches(self, endpoint: Endpoint) -> bool:
        return self.endpoint is endpoint and self.spec == endpoint.spec

    def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        self.probed.set()


class FleetWatcher:
    """Feeds the fleet with what its endpoints say. Each has tasks of its own: a slow one delays no other."""

    def __init__(
        self, fleet: Fleet, upstream: Upstream, clock: Clock, rng: Random, options: WatchOptions | None = None
    ) -> None:
        self._fleet, self._upstream, self._clock, self._rng = fleet, upstream, clock, rng
        self._options = options or WatchOptions()
        self._members: dict[tuple[ObjectRef, Address], _Member] = {}
        self._changed = asyncio.Event()
        self._changed.set()
        self._reconciled = asyncio.Event()
        self._companion: Companion = _no_companion

    def accompany(self, companion: Companion) -> None:
        """Have these tasks run as well for every endpoint, for as long as it is watched."""
        self._companion = companion

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._changed.wait()
                self._changed.clear()
                self._follow(group)
                self._reconciled.set()

    def reconcile(self) -> None:
        """The fleet's endpoints may have changed: watch those that are there now."""
        self._reconciled.clear()
        self._changed.set()

    async def settle(self) -> None:
        """Wait until every endpoint has been probed once. Bounded: a probe has its timeout."""
        await self._reconciled.wait()
        for member in tuple(self._members.values()):
            await member.probed.wait()

    def _follow(self, group: asyncio.TaskGroup) -> None:
        present = {(endpoint.spec.pool, endpoint.spec.address): endpoint for endpoint in self._fleet.endpoints()}
        for key, member in tuple(self._members.items()):
            endpoint = present.get(key)
            if endpoint is None or not member.watches(endpoint):
                self._members.pop(key).stop()
        new = [key for key in present if key not in self._members]
        for place, key in enumerate(new):
            wait = self._options.first_probe_after(place)
            self._members[key] = self._start(group, present[key], wait)

    def _start(self, group: asyncio.TaskGroup, endpoint: Endpoint, wait: Seconds) -> _Member:
        member = _Member(endpoint)
        probe = Probe(self._fleet, self._upstream, self._clock, endpoint.spec, self._options)
        scrape = Scrape(self._fleet, self._upstream, self._clock, endpoint, self._options)

        async def probe_once() -> None:
            try:
                await probe.step()
            finally:
                member.probed.set()

        member.tasks = (
            group.create_task(_repeat(probe_once, self._probe_pause, wait)),
            group.create_task(_repeat(scrape.step, lambda: self._scrape_pause(scrape), wait)),
            *self._companion(group, endpoint),
        )
        return member

    def _probe_pause(self) -> Seconds:
        options = self._options
        pause = self._rng.uniform(options.probe_pause_min, options.probe_pause_max)
        return max(pause, options.probe_pause_least(len(self._members)) * self._rng.uniform(0.9, 1.1))

    def _scrape_pause(self, scrape: Scrape) -> Seconds:
        """Spread by a tenth, so that engines are not asked in step."""
        pause = self._options.scrape_pause(len(self._members), scrape.is_failing)
        return pause * self._rng.uniform(0.9, 1.1)


def _no_companion(_group: asyncio.TaskGroup, _endpoint: Endpoint) -> Iterable[asyncio.Task[None]]:
    return ()


async def _repeat(step: Callable[[], Awaitable[None]], pause: Callable[[], Seconds], wait: Seconds) -> None:
    await asyncio.sleep(wait)
    while True:
        try:
            await step()
        except Exception:  # noqa: BLE001 - the root of a task that must outlive one bad answer
            _log.exception("watching an endpoint failed")
        await asyncio.sleep(pause())
