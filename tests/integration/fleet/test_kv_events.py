"""The whole service against simulated engines that publish what they do to their caches, over real sockets."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from kinference.config.destinations import Endpoint, KvEvents, Pool
from kinference.config.schema import Config, Listen
from kinference.config.values import Count, HostPort, Name, Url
from kinference.ports import UpstreamRequest
from kinference.runtime.service import Service, running
from kinference.sim.options import EngineOptions, KvEventOptions
from kinference.sim.serving import RunningEngine, serve_engine
from kinference.sim.timing import Timing
from kinference.wire.aiohttp_upstream import AiohttpUpstream

ANY = HostPort("127.0.0.1", 0)
ZMQ = KvEventOptions("tcp://127.0.0.1:*", "tcp://127.0.0.1:*", "kv@here")
SIMULATED = EngineOptions(("tiny",), speed=1_000.0, output_tokens=4, kv_events=ZMQ)
PROMPT = "There was once a router that knew what its engines had cached. " * 40


def port_of(endpoint: str) -> Count:
    return Count(int(endpoint.rpartition(":")[2]))


@dataclass
class Served:
    """A router, its clients' and its operators' view of it."""

    service: Service
    upstream: AiohttpUpstream

    async def ask(self, prompt: str, **more: object) -> None:
        body = json.dumps({"model": "tiny", "messages": [{"role": "user", "content": prompt}], **more}).encode()
        origin = f"http://127.0.0.1:{self.service.ports.gateway}"
        answer = await self.upstream.send(
            UpstreamRequest("POST", origin, "/v1/chat/completions", ((b"content-type", b"application/json"),), (body,))
        )
        whole = b"".join([chunk async for chunk in answer.chunks()])
        assert answer.status == 200, whole

    async def admin(self, path: str) -> Mapping[str, list[Mapping[str, object]]]:
        origin = f"http://127.0.0.1:{self.service.ports.admin}"
        answer = await self.upstream.send(UpstreamRequest("GET", origin, path, ()))
        found: dict[str, list[Mapping[str, object]]] = json.loads(b"".join([chunk async for chunk in answer.chunks()]))
        return found

    async def last_outcome(self) -> object:
        (last,) = (await self.admin("/api/v1/decisions?limit=1"))["decisions"]
        return last["outcome"]

    async def endpoint(self, place: int = 0) -> Mapping[str, object]:
        return (await self.admin("/api/v1/endpoints"))["endpoints"][place]

    async def until(self, condition: Callable[[Mapping[str, object]], bool], place: int = 0) -> Mapping[str, object]:
        row: Mapping[str, object] = {}
        try:
            async with asyncio.timeout(20):
                while not condition(row := await self.endpoint(place)):  # noqa: ASYNC110 - another process would poll as well
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"it stays {row}") from None
        return row


@asynccontextmanager
async def serving(*engines: RunningEngine) -> AsyncIterator[Served]:
    endpoints = tuple(
        Endpoint(
            Url("http", "127.0.0.1", one.port, ""),
            kv_events=KvEvents(port_of(one.kv_events_endpoint), port_of(one.kv_replay_endpoint)),
        )
        for one in engines
    )
    config = Config(listen=Listen(ANY, ANY, ANY), pools=(Pool(Name("p"), endpoints),))
    async with AiohttpUpstream() as upstream, running(config) as service:
        await service.settled()
        yield Served(service, upstream)


@pytest.mark.parametrize("positional", [False, True])
async def test_a_cleared_cache_is_known_at_once(positional: bool) -> None:
    options = replace(SIMULATED, kv_events=replace(ZMQ, positional=positional))
    async with serve_engine(options) as engine, serving(engine) as served:
        await served.until(lambda row: row["prefix_signal"] == "live")
        await served.ask(PROMPT)
        assert await served.last_outcome() == "ok"
        await served.until(lambda row: row["engine_blocks"] == engine.engine.model._cache.named)
        assert (await served.endpoint())["prefix_blocks"] == len(PROMPT) // 512
        assert engine.engine.reset_prefix_cache()
        await served.until(lambda row: row["engine_blocks"] == row["prefix_blocks"] == 0)


async def test_what_an_engine_evicts_is_known_block_by_block() -> None:
    small = Timing(kv_blocks=64, block_tokens=16)
    async with serve_engine(replace(SIMULATED, timing=small)) as engine, serving(engine) as served:
        await served.ask(PROMPT)
        await served.until(lambda row: (row["prefix_blocks"], row["engine_blocks"] != 0) == (4, True))
        for number in range(3):
            await served.ask(f"{number} is another story altogether. " * 70)
        fits = small.capacity_tokens * 4 // 512
        await served.until(lambda row: row["engine_blocks"] == engine.engine.model._cache.named)
        await served.until(lambda row: row["prefix_blocks"] in range(1, fits + 1))


async def test_what_another_router_sent_is_known_as_well() -> None:
    async with serve_engine(SIMULATED) as one, serve_engine(SIMULATED) as two, serving(one, two) as served:
        await served.ask(PROMPT)
        picked = [(await served.endpoint(place))["picks"] for place in (0, 1)]
        cold = picked.index(0)
        engine = one if (await served.endpoint(cold))["address"] == f"127.0.0.1:{one.port}" else two
        await served.until(lambda row: row["engine_blocks"] != 0 and row["prefix_blocks"] != 0, 1 - cold)
        await served.ask(PROMPT + "And so on.")
        body = json.dumps({"model": "tiny", "messages": [{"role": "user", "content": PROMPT}]}).encode()
        answer = await served.upstream.send(UpstreamRequest("POST", engine.url, "/v1/chat/completions", (), (body,)))
        await answer.close()
        await served.until(lambda row: row["prefix_blocks"] == len(PROMPT) // 512, cold)


async def test_an_engine_that_is_gone_is_not_known_and_one_that_is_back_begins_anew() -> None:
    async with serve_engine(SIMULATED) as engine:
        server = serving(engine)
        served = await server.__aenter__()
        await served.ask(PROMPT)
        await served.until(lambda row: row["prefix_signal"] == "live" and row["engine_blocks"] != 0)
    try:
        await served.until(lambda row: row["prefix_signal"] == "broken")
        where = KvEventOptions(engine.kv_events_endpoint, engine.kv_replay_endpoint)
        async with serve_engine(replace(SIMULATED, port=engine.port, kv_events=where)):
            row = await served.until(lambda row: row["prefix_signal"] == "live")
            assert row["engine_blocks"] == row["prefix_blocks"] == 0
    finally:
        await server.__aexit__(None, None, None)


async def test_decisions_that_weigh_a_cache_whose_events_do_not_come_in_are_degraded() -> None:
    async with serve_engine(SIMULATED) as engine, serve_engine(SIMULATED) as other:
        nowhere = replace(engine, kv_replay_endpoint=f"tcp://127.0.0.1:{other.port}")
        async with serving(nowhere) as served:
            await served.ask(PROMPT)
            assert await served.last_outcome() == "degraded"
            await served.ask("short")
            assert await served.last_outcome() == "ok", "nothing of it could be cached by blocks"
