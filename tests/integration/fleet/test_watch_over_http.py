"""The fleet watcher against engines on real sockets: simulated ones, and ones that misbehave."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random

from kinference.core.fleet import Endpoint, EndpointSpec, Fleet
from kinference.fleet.options import WatchOptions
from kinference.fleet.watch import FleetWatcher
from kinference.ids import Address, ObjectRef
from kinference.runtime.clock import SystemClock
from kinference.sim.engine import Engine as SimulatedEngine
from kinference.sim.options import EngineOptions
from kinference.vocabulary import Engine
from kinference.wire.aiohttp_server import AiohttpServer
from kinference.wire.aiohttp_upstream import AiohttpUpstream
from kinference.wire.exchange import Exchange, Handler, respond

POOL = ObjectRef("default", "pool")
OPTIONS = WatchOptions(
    probe_pause_min=0.01,
    probe_pause_max=0.02,
    probe_timeout=0.5,
    scrape_interval=0.01,
    scrapes_per_second_max=10_000,
    scrape_pause_failing=0.01,
)


@asynccontextmanager
async def serving(handler: Handler, port: int = 0) -> AsyncIterator[Address]:
    server = AiohttpServer(handler, SystemClock())
    bound = await server.start("127.0.0.1", port)
    try:
        yield Address(f"127.0.0.1:{bound}")
    finally:
        await server.close()


def simulated(*models: str) -> SimulatedEngine:
    return SimulatedEngine(EngineOptions(models=models), SystemClock())


@dataclass
class Watched:
    """A fleet under watch."""

    fleet: Fleet

    def at(self, address: Address) -> Endpoint:
        return next(endpoint for endpoint in self.fleet.endpoints() if endpoint.spec.address == address)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():  # noqa: ASYNC110 - a fleet is plain state and has no event to wait for
                await asyncio.sleep(0.005)


@asynccontextmanager
async def watching(*addresses: Address) -> AsyncIterator[Watched]:
    fleet = Fleet()
    fleet.set_pool(POOL, [EndpointSpec(POOL, address) for address in addresses])
    async with AiohttpUpstream() as upstream, asyncio.TaskGroup() as group:
        watcher = FleetWatcher(fleet, upstream, SystemClock(), Random(1), OPTIONS)
        running = group.create_task(watcher.run())
        await watcher.settle()
        try:
            yield Watched(fleet)
        finally:
            running.cancel()


async def test_a_simulated_engine_is_ready_known_and_observed() -> None:
    async with serving(simulated("tiny", "adapter").handle) as address, watching(address) as watched:
        endpoint = watched.at(address)
        assert (endpoint.ready, endpoint.engine) == (True, Engine.VLLM)
        assert sorted(endpoint.models) == ["adapter", "tiny"]
        assert endpoint.max_model_tokens
        await watched.until(lambda: endpoint.observation is not None)
        observation = endpoint.observation
        assert observation is not None
        assert (observation.waiting, observation.running, observation.kv_usage_ratio) == (0, 0, 0.0)
        assert observation.kv_blocks
        assert observation.block_tokens
        assert observation.started_at


async def test_an_engine_that_dies_is_unready_and_restarted_it_is_ready_as_a_new_generation() -> None:
    async with serving(simulated("tiny").handle) as address:
        pass
    port = int(address.rpartition(":")[2])
    async with watching(address) as watched:
        endpoint = watched.at(address)
        assert not watched.at(address).ready
        async with serving(simulated("tiny").handle, port):
            await watched.until(lambda: endpoint.observation is not None)
            assert endpoint.ready
            generation = endpoint.generation
        await watched.until(lambda: not endpoint.ready)
        async with serving(simulated("tiny").handle, port):
            await watched.until(lambda: endpoint.ready and endpoint.generation > generation)


async def _endless(exchange: Exchange) -> None:
    await exchange.start(200, ())
    while True:
        await exchange.write(b"x" * 65_536)


async def test_an_engine_with_endless_pages_neither_fills_memory_nor_disturbs_another() -> None:
    async def hostile(exchange: Exchange) -> None:
        if exchange.path == "/health":
            await respond(exchange, 200, b"", b"text/plain")
        else:
            await _endless(exchange)

    async with serving(hostile) as bad, serving(simulated("tiny").handle) as good, watching(bad, good) as watched:
        await watched.until(lambda: watched.at(good).observation is not None)
        assert (watched.at(good).ready, watched.at(bad).ready) == (True, True)
        assert (sorted(watched.at(good).models), sorted(watched.at(bad).models)) == (["tiny"], [])


async def test_metrics_that_hang_leave_the_other_engines_fresh() -> None:
    engine = simulated("tiny")

    async def slow(exchange: Exchange) -> None:
        if exchange.path == "/metrics":
            await asyncio.Event().wait()
        await engine.handle(exchange)

    async with serving(slow) as bad, serving(engine.handle) as good, watching(bad, good) as watched:
        for _ in range(3):
            before = watched.at(good).observation
            await watched.until(lambda before=before: watched.at(good).observation is not before)  # type: ignore[misc]
        assert watched.at(bad).ready
        assert watched.at(bad).observation is None


async def test_an_engine_that_only_speaks_openai_is_ready_by_its_model_list() -> None:
    asked: set[str] = set()

    async def minimal(exchange: Exchange) -> None:
        asked.add(exchange.path)
        if exchange.path == "/v1/models":
            await respond(exchange, 200, b'{"data":[{"id":"m","owned_by":"me"}]}', b"application/json")
        else:
            await respond(exchange, 404, b"", b"text/plain")

    async with serving(minimal) as address, watching(address) as watched:
        endpoint = watched.at(address)
        assert (endpoint.ready, endpoint.engine, sorted(endpoint.models)) == (True, Engine.OPENAI, ["m"])
    assert asked == {"/health", "/v1/models"}
