import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from kinference.core.fleet import Endpoint, Fleet
from kinference.fleet.options import WatchOptions
from kinference.fleet.watch import Companion, FleetWatcher
from tests.unit.fleet.fakes import (
    HERE,
    POOL,
    FakeAnswer,
    FakeUpstream,
    ManualClock,
    fleet_of,
    models,
    spec,
    vllm_metrics,
)

FAST = WatchOptions(
    probe_pause_min=0.001,
    probe_pause_max=0.002,
    probe_timeout=0.05,
    scrape_interval=0.001,
    scrapes_per_second_max=10_000,
)
THERE = "10.0.0.2:8000"


@asynccontextmanager
async def watching(
    fleet: Fleet, upstream: FakeUpstream, companion: Companion | None = None
) -> AsyncIterator[FleetWatcher]:
    watcher = FleetWatcher(fleet, upstream, ManualClock(), Random(1), FAST)
    if companion is not None:
        watcher.accompany(companion)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(watcher.run())
        await watcher.settle()
        yield watcher
        running.cancel()


def healthy(upstream: FakeUpstream, address: str = HERE) -> None:
    upstream.engine(address, health=FakeAnswer(200), models=models("m"), metrics=vllm_metrics(running=1))


async def until_asked(upstream: FakeUpstream, url: str) -> None:
    """Wait for the next answer of a page."""
    asked = asyncio.Event()
    upstream.answered = lambda answered: asked.set() if answered == url else None
    await asked.wait()


async def test_once_settled_every_endpoint_has_had_its_first_probe() -> None:
    fleet, upstream = fleet_of(spec(), spec(THERE)), FakeUpstream()
    healthy(upstream)
    async with watching(fleet, upstream):
        assert [endpoint.ready for endpoint in fleet.endpoints()] == [True, False]


async def test_an_endpoint_that_hangs_delays_no_other() -> None:
    fleet, upstream = fleet_of(spec(), spec(THERE)), FakeUpstream()
    healthy(upstream)
    upstream.engine(THERE, health=None, models=None, metrics=None)
    async with watching(fleet, upstream):
        await until_asked(upstream, f"http://{HERE}/metrics")
        assert [endpoint.ready for endpoint in fleet.endpoints()] == [True, False]


async def test_metrics_that_hang_hold_up_neither_the_probes_nor_the_other_endpoints() -> None:
    fleet, upstream = fleet_of(spec(), spec(THERE)), FakeUpstream()
    healthy(upstream)
    healthy(upstream, THERE)
    upstream.engine(THERE, metrics=None)
    async with watching(fleet, upstream):
        await until_asked(upstream, f"http://{HERE}/metrics")
        await until_asked(upstream, f"http://{THERE}/health")
        assert [endpoint.observation is None for endpoint in fleet.endpoints()] == [False, True]


async def test_probes_and_scrapes_go_on_and_on() -> None:
    fleet, upstream = fleet_of(spec()), FakeUpstream()
    healthy(upstream)
    async with watching(fleet, upstream):
        for _ in range(3):
            await until_asked(upstream, f"http://{HERE}/health")
            await until_asked(upstream, f"http://{HERE}/metrics")


async def test_after_a_reconcile_the_new_are_watched_and_the_gone_are_left_alone() -> None:
    fleet, upstream = fleet_of(spec()), FakeUpstream()
    healthy(upstream)
    healthy(upstream, THERE)
    async with watching(fleet, upstream) as watcher:
        fleet.set_pool(POOL, [spec(THERE)])
        watcher.reconcile()
        await watcher.settle()
        assert [(endpoint.spec.address, endpoint.ready) for endpoint in fleet.endpoints()] == [(THERE, True)]
        upstream.requests.clear()
        await until_asked(upstream, f"http://{THERE}/health")
        await until_asked(upstream, f"http://{THERE}/health")
    assert {request.origin for request in upstream.requests} == {f"http://{THERE}"}


async def test_an_endpoint_that_left_and_came_back_is_watched_anew() -> None:
    fleet, upstream = fleet_of(spec()), FakeUpstream()
    healthy(upstream)
    async with watching(fleet, upstream) as watcher:
        fleet.set_pool(POOL, [])
        fleet.set_pool(POOL, [spec()])
        watcher.reconcile()
        await watcher.settle()
        assert [endpoint.models for endpoint in fleet.endpoints()] == [{"m"}]


async def test_an_endpoint_whose_prefix_changed_is_asked_under_the_new_one() -> None:
    fleet, upstream = fleet_of(spec()), FakeUpstream()
    healthy(upstream)
    async with watching(fleet, upstream) as watcher:
        upstream.engine(prefix="/new", health=FakeAnswer(200), models=models("n"))
        changed = spec()
        fleet.set_pool(POOL, [type(changed)(changed.pool, changed.address, path_prefix="/new")])
        watcher.reconcile()
        await watcher.settle()
        assert [endpoint.models for endpoint in fleet.endpoints()] == [{"n"}]


async def test_a_fault_of_our_own_ends_one_step_and_not_the_watch(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    fleet, upstream = fleet_of(spec(), spec(THERE)), FakeUpstream()
    healthy(upstream)
    healthy(upstream, THERE)
    failures = iter([True])

    def fail_once(_url: str) -> None:
        if next(failures, False):
            raise KeyError

    upstream.answered = fail_once
    async with watching(fleet, upstream):
        await until_asked(upstream, f"http://{HERE}/metrics")
        await until_asked(upstream, f"http://{THERE}/metrics")
        assert all(endpoint.ready for endpoint in fleet.endpoints())
    assert [record.message for record in caplog.records] == ["watching an endpoint failed"]


async def test_a_large_fleet_is_asked_at_a_pace_that_leaves_room_for_requests() -> None:
    addresses = [f"10.1.{n // 250}.{n % 250}:8000" for n in range(1000)]
    fleet, upstream = fleet_of(*map(spec, addresses)), FakeUpstream()
    for address in addresses:
        healthy(upstream, address)
    slow, asked = WatchOptions(first_probes_at_once=10, first_probes_per_second_max=1), asyncio.Event()
    upstream.answered = lambda _url: asked.set()
    watcher = FleetWatcher(fleet, upstream, ManualClock(), Random(1), slow)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(watcher.run())
        await asked.wait()
        await asyncio.sleep(0.05)
        assert len({request.origin for request in upstream.requests}) == 10
        running.cancel()


async def test_a_fleet_without_endpoints_settles_at_once() -> None:
    async with watching(fleet_of(), FakeUpstream()):
        pass


async def test_a_companion_runs_for_each_endpoint_as_long_as_it_is_watched() -> None:
    fleet, upstream = fleet_of(spec(), spec(THERE)), FakeUpstream()
    running: set[str] = set()

    async def accompany(address: str) -> None:
        running.add(address)
        try:
            await asyncio.Event().wait()
        finally:
            running.discard(address)

    def start(group: asyncio.TaskGroup, endpoint: Endpoint) -> list[asyncio.Task[None]]:
        return [group.create_task(accompany(endpoint.spec.address))]

    async with watching(fleet, upstream, start) as watcher:
        assert running == {HERE, THERE}
        fleet.set_pool(POOL, [spec()])
        watcher.reconcile()
        await watcher.settle()
        await asyncio.sleep(0)
        assert running == {HERE}
