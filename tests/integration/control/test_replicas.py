"""Two replicas of the control plane on one real PostgreSQL server."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest

from kinference.config.schema import Config
from kinference.config.schema import Control as ControlSection
from kinference.config.values import StoreUrl
from kinference.control.errors import Overtaken, Taken, Unmet
from kinference.control.registry import ProviderChange
from kinference.control.routes import RouteRequest
from kinference.observe.metrics import Metrics
from kinference.runtime.clock import SystemClock
from kinference.runtime.control import Control, backup, control_plane, restore
from tests.integration.control.postgres import Server, server

ENVIRON = {"KINFERENCE_SECRET_KEY": "ab" * 32}
CHANGE = ProviderChange("openai", {"OPENAI_API_KEY": "sk-1"}, config={"OPENAI_BASE_URL": "mock://up"})
Pair = tuple[Control, Control]


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with server() as started:
        yield started


@pytest.fixture
def config(running: Server) -> Config:
    return Config(control=ControlSection(StoreUrl(running.address)))


@pytest.fixture
async def replicas(config: Config) -> AsyncIterator[Pair]:
    await restore(config, ENVIRON, b'{"format": "kinference-store-1", "rows": 0}\n')
    async with AsyncExitStack() as stack:
        planes = [control_plane(config, ENVIRON, SystemClock(), Metrics()) for _ in range(2)]
        one, other = [await stack.enter_async_context(plane) for plane in planes]
        yield one, other


async def test_a_hundred_sets_at_two_replicas_lose_none(replicas: Pair) -> None:
    one, other = replicas
    await one.registry.create("p", CHANGE, "test")
    results = await asyncio.gather(
        *(replicas[n % 2].routes.set(RouteRequest("", "p", f"m{n}"), "test") for n in range(100))
    )
    assert sorted(result.route.version for result in results) == list(range(1, 101))
    newest = max(results, key=lambda result: result.route.version).route
    assert await one.routes.get("") == await other.routes.get("") == newest


async def test_both_tell_the_same_bundle_under_the_same_revision(replicas: Pair) -> None:
    one, other = replicas
    await one.registry.create("p", CHANGE, "test")
    await other.routes.set(RouteRequest("", "p", "m"), "test")
    bundles = [await each.routes.bundle() for each in replicas]
    assert bundles[0] == bundles[1]
    assert bundles[0].routes[0].api_key == "sk-1"
    await other.registry.update("p", ProviderChange(credentials={"OPENAI_API_KEY": "sk-2"}), "test")
    assert (await one.routes.bundle()).routes[0].api_key == "sk-2"


async def test_one_of_two_racing_creations_wins(replicas: Pair) -> None:
    made = await asyncio.gather(
        *(each.registry.create("p", CHANGE, "test") for each in replicas), return_exceptions=True
    )
    assert sorted(type(each).__name__ for each in made) == ["Provider", Taken.__name__]


async def test_a_route_and_the_deletion_of_its_provider_cannot_both_succeed(replicas: Pair) -> None:
    one, other = replicas
    for _ in range(20):
        await one.registry.create("p", CHANGE, "test")
        outcomes = await asyncio.gather(
            one.routes.set(RouteRequest("", "p", "m"), "test"),
            other.registry.delete("p", "test"),
            return_exceptions=True,
        )
        assert sum(isinstance(outcome, Unmet) for outcome in outcomes) == 1
        await one.routes.delete("", "test")
        await one.registry.delete("p", "test")


async def test_of_racing_replacements_of_one_version_one_wins(replicas: Pair) -> None:
    one, _ = replicas
    await one.registry.create("p", CHANGE, "test")
    await one.routes.set(RouteRequest("", "p", "m"), "test")
    wanted = RouteRequest("", "p", "n", expected_version=1)
    outcomes = await asyncio.gather(*(each.routes.set(wanted, "test") for each in replicas), return_exceptions=True)
    assert sum(isinstance(outcome, Overtaken) for outcome in outcomes) == 1


async def test_records_move_from_one_kind_of_store_to_the_other(
    replicas: Pair, config: Config, tmp_path_factory: pytest.TempPathFactory
) -> None:
    one, _ = replicas
    await one.registry.create("p", CHANGE, "test")
    await one.routes.set(RouteRequest("", "p", "m"), "test")
    content = await backup(config, ENVIRON)
    sqlite = Config(control=ControlSection(StoreUrl(f"sqlite:///{tmp_path_factory.mktemp('store')}/control.db")))
    assert await restore(sqlite, ENVIRON, content) == 2
    async with control_plane(sqlite, ENVIRON, SystemClock(), Metrics()) as moved:
        assert (await moved.routes.bundle()).revision == (await one.routes.bundle()).revision
