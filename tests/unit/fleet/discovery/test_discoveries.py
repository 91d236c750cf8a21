import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from random import Random

from kinference.core.fleet import Fleet
from kinference.fleet.discovery.discoveries import Discoveries, Wanted
from kinference.fleet.discovery.place import Place
from kinference.fleet.discovery.source import Source, SourceFailed
from kinference.observe.metrics import Metrics
from kinference.runtime.clock import SystemClock
from tests.unit.fleet.fakes import HERE, POOL, spec


class OpenSource:
    """Tells what it is given, when it is given that."""

    name = "a test"

    def __init__(self, first: Sequence[Place] | None) -> None:
        self._queue = asyncio.Queue[Sequence[Place] | None]()
        self._queue.put_nowait(first)

    async def sets(self) -> AsyncGenerator[Sequence[Place], None]:
        while True:
            places = await self._queue.get()
            if places is None:
                raise SourceFailed("it is away")
            yield places


def wanted(asked: object, first: Sequence[Place] | None, made: Callable[[], None] = lambda: None) -> Wanted:
    def source() -> Source:
        made()
        return OpenSource(first)

    return Wanted(spec(""), asked, source)


@asynccontextmanager
async def discovering(fleet: Fleet, *pools: Wanted) -> AsyncIterator[Discoveries]:
    discoveries = Discoveries(fleet, SystemClock(), Random(1), lambda: None)
    discoveries.configure(pools)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(discoveries.run())
        await discoveries.settle()
        yield discoveries
        running.cancel()


async def test_every_pool_has_been_told_or_not_once_it_is_settled() -> None:
    fleet = Fleet()
    async with discovering(fleet, wanted("a", [Place(HERE)])) as discoveries:
        assert [one.spec.address for one in fleet.endpoints()] == [HERE]
        (status,) = discoveries.statuses()
        assert (status.pool, status.source, status.endpoints) == (str(POOL), "a test", 1)
    async with discovering(Fleet(), wanted("a", None)) as discoveries:
        assert discoveries.why_none() == "pool default/pool by a test: it is away"


async def test_a_source_that_is_asked_for_as_before_goes_on() -> None:
    made: list[str] = []
    async with discovering(Fleet(), wanted("a", [Place(HERE)], lambda: made.append("first"))) as discoveries:
        discoveries.configure([wanted("a", [], lambda: made.append("again"))])
        assert made == ["first"]
        assert len(discoveries.statuses()) == 1


async def test_another_source_takes_over_and_no_source_is_left_running() -> None:
    fleet = Fleet()
    async with discovering(fleet, wanted("a", [Place(HERE)])) as discoveries:
        discoveries.configure([wanted("b", [])])
        assert [one.spec.address for one in fleet.endpoints()] == [HERE]
        await discoveries.settle()
        assert fleet.endpoints() == ()
        discoveries.configure([])
        assert discoveries.why_none() is None
        assert discoveries.statuses() == []


async def test_who_tells_of_none_is_named() -> None:
    async with discovering(Fleet(), wanted("a", [])) as discoveries:
        assert discoveries.why_none() == "pool default/pool by a test: it tells of none"


async def test_the_metrics_show_how_many_how_old_and_how_often_in_vain() -> None:
    metrics = Metrics()
    async with discovering(Fleet(), wanted("a", [Place(HERE)])) as discoveries:
        discoveries.publish(metrics)
        discoveries.publish(metrics)
    async with discovering(Fleet(), wanted("a", None)) as discoveries:
        discoveries.publish(metrics)
        discoveries.publish(metrics)
    page = metrics.exposition().decode()
    assert 'kinference_discovery_age_seconds{pool="default/pool"}' in page
    assert 'kinference_discovery_failures_total{pool="default/pool"} 1.0' in page
