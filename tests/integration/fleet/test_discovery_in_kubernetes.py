"""Pods that come and go while requests are served, by the whole service, over real sockets."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from random import Random

import pytest

from kinference.config.destinations import Pool
from kinference.config.discovery import Discovery, KubernetesDiscovery
from kinference.config.load import from_engines
from kinference.config.schema import Config, Listen
from kinference.config.values import Count, HostPort, Name, Url
from kinference.ports import UpstreamRequest
from kinference.runtime.clock import SystemClock
from kinference.runtime.discovery import ways
from kinference.runtime.service import Service, running
from kinference.sim.options import EngineOptions
from kinference.sim.serving import serve_engine
from kinference.wire.aiohttp_upstream import AiohttpUpstream
from kinference.wire.exchange import Exchange, respond
from kinference.wire.http_server import OwnHttpServer
from kinference.wire.tls import HTTP, ServerTls, TlsFiles
from tests.integration.fleet.cluster_api import CUT, ClusterApi, cluster_api
from tests.unit.fleet.discovery.kubernetes.cluster_objects import pod
from tests.unit.wire.certificates import Pair, self_signed

ANY = HostPort("127.0.0.1", 0)
BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}).encode()


@dataclass
class Cluster:
    """Pods, each with an engine on an address of its own and a port that all have."""

    api: ClusterApi
    port: int = 0
    engines: dict[str, AsyncExitStack] = field(default_factory=dict)
    hosts: "count[int]" = field(default_factory=lambda: count(1))

    async def start(self, name: str) -> str:
        """A pod whose engine is up and ready; its address."""
        host = f"127.0.1.{next(self.hosts)}"
        self.engines[name] = stack = AsyncExitStack()
        options = EngineOptions(("m",), host=host, port=self.port, speed=50.0)
        engine = await stack.enter_async_context(serve_engine(options))
        self.port = engine.port
        self.api.set(pod(name, host))
        return f"{host}:{self.port}"

    def end(self, name: str) -> None:
        """It is told to end, and is not ready any more."""
        ip = self.api.pods[name]["status"]["podIP"]
        self.api.set(pod(name, ip, ready=False, ending=True))

    async def remove(self, name: str) -> None:
        self.api.delete(name)
        await self.engines.pop(name).aclose()

    def config(self) -> Config:
        host, _, port = self.api.origin.removeprefix("http://").partition(":")
        discovery = KubernetesDiscovery(
            {"app": "vllm"},
            target_ports=(Count(self.port),),
            namespace=Name("models"),
            api=Url("http", host, int(port)),
        )
        pool = Pool(Name("chat"), discovery=Discovery(kubernetes=discovery))
        return Config(listen=Listen(ANY, ANY, ANY), pools=(pool,))


@asynccontextmanager
async def cluster(*names: str) -> AsyncIterator[Cluster]:
    async with cluster_api(ClusterApi()) as api:
        made = Cluster(api)
        try:
            for name in names:
                await made.start(name)
            yield made
        finally:
            for stack in made.engines.values():
                await stack.aclose()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - the service is plain state and has no event to wait for
            await asyncio.sleep(0.005)


def addresses(service: Service) -> set[str]:
    return set(service.in_flight())


def is_busy(service: Service, address: str) -> bool:
    return service.in_flight().get(address, 0) > 0


def is_idle(service: Service, address: str) -> bool:
    return service.in_flight().get(address) == 0


def is_gone(service: Service, address: str) -> bool:
    return address not in service.in_flight()


async def chat(upstream: AiohttpUpstream, service: Service) -> int:
    fields = ((b"content-type", b"application/json"),)
    origin = f"http://127.0.0.1:{service.ports.gateway}"
    answer = await upstream.send(UpstreamRequest("POST", origin, "/v1/chat/completions", fields, (BODY,)))
    async for _ in answer.chunks():
        pass
    await answer.close()
    return answer.status


async def shown(service: Service, target: str) -> bytes:
    async with AiohttpUpstream() as upstream:
        answer = await upstream.send(UpstreamRequest("GET", f"http://127.0.0.1:{service.ports.admin}", target, ()))
        return b"".join([chunk async for chunk in answer.chunks()])


async def test_pods_come_and_go_under_load_and_no_request_fails() -> None:
    async with cluster("a", "b") as made, running(made.config()) as service, AiohttpUpstream() as upstream:
        await service.settled()
        statuses: list[int] = []
        is_over = asyncio.Event()

        async def client() -> None:
            while not is_over.is_set():
                statuses.append(await chat(upstream, service))

        async with asyncio.TaskGroup() as group:
            for _ in range(8):
                group.create_task(client())
            leaving = ["a", "b"]
            for name in ("c", "d", "e", "f"):
                come = await made.start(name)
                await until(partial(is_busy, service, come))
                made.end(gone := leaving.pop(0))
                address = f"{made.api.pods[gone]['status']['podIP']}:{made.port}"
                if name == "d":
                    made.api.end_watches(CUT)
                await until(partial(is_idle, service, address))
                await made.remove(gone)
                await until(partial(is_gone, service, address))
                leaving.append(name)
            is_over.set()
    assert set(statuses) == {200}
    assert len(statuses) > 8


async def test_a_version_that_is_too_old_is_listed_anew_and_nothing_is_lost() -> None:
    async with cluster("a") as made, running(made.config()) as service:
        await service.settled()
        before = addresses(service)
        await until(lambda: bool(made.api.watchers))
        made.api.forget()
        come = await made.start("b")
        await until(lambda: addresses(service) == {*before, come})
        assert made.api.lists >= 2


async def test_what_happened_while_the_api_was_away_is_known_once_it_is_back() -> None:
    async with cluster("a", "b") as made, running(made.config()) as service:
        await service.settled()
        before = addresses(service)
        made.api.is_down = True
        made.api.end_watches(CUT)
        await until(lambda: not made.api.watchers)
        await made.remove("a")
        assert addresses(service) == before
        made.api.is_down = False
        await until(lambda: len(addresses(service)) == 1)
        (row,) = json.loads(await shown(service, "/api/v1/discovery"))["discovery"]
        assert (row["pool"], row["endpoints"], row["error"]) == ("default/chat", 1, "")
        assert row["failures"] >= 1
        assert b'kinference_discovery_endpoints{pool="default/chat"} 1.0' in await shown(service, "/metrics")


async def test_endpoints_that_stay_keep_their_state_and_a_reload_changes_the_discovery() -> None:
    async with cluster("a") as made, running(made.config()) as service, AiohttpUpstream() as upstream:
        await service.settled()
        await chat(upstream, service)
        generation = _row(await shown(service, "/api/v1/endpoints"))["generation"]
        await made.start("b")
        await until(lambda: len(addresses(service)) == 2)
        engine = f"http://{next(iter(sorted(addresses(service))))}"
        listed = replace(from_engines([engine]), listen=service.config.listen)
        listed = replace(listed, pools=(replace(listed.pools[0], name=Name("chat")),))
        service.apply(listed)
        row = _row(await shown(service, "/api/v1/endpoints"))
        assert (row["generation"], row["picks"]) == (generation, 1)
        service.apply(made.config())
        assert len(addresses(service)) == 1
        await until(lambda: len(addresses(service)) == 2)
        assert _row(await shown(service, "/api/v1/endpoints"))["generation"] == generation


async def test_while_there_is_no_pod_requests_are_refused_for_now_and_readyz_says_why() -> None:
    async with cluster("a") as made, running(made.config()) as service, AiohttpUpstream() as upstream:
        await service.settled()
        await made.remove("a")
        await until(lambda: not addresses(service))
        assert await chat(upstream, service) == 503
        told = (await shown(service, "/readyz")).decode()
        assert "no endpoint is discovered: pool default/chat by Kubernetes pods app=vllm in models" in told


async def test_an_account_that_may_not_look_is_told_which_role_it_needs(caplog: pytest.LogCaptureFixture) -> None:
    async with cluster("a") as made:
        config = made.config()
        (pool,) = config.pools
        assert pool.discovery is not None
        assert pool.discovery.kubernetes is not None
        other = Discovery(kubernetes=replace(pool.discovery.kubernetes, namespace=Name("other")))
        async with running(replace(config, pools=(replace(pool, discovery=other),))) as service:
            await service.settled()
            assert "bind it a role with get, list and watch" in (await shown(service, "/readyz")).decode()
            assert "bind it a role" in caplog.text


def _row(page: bytes) -> dict[str, int]:
    rows: list[dict[str, int]] = json.loads(page)["endpoints"]
    return rows[0]


@asynccontextmanager
async def guarded(api: ClusterApi, pair: Pair, account: Path) -> AsyncIterator[int]:
    """The same API as pods see it: over TLS, for whoever has the token that is in force."""

    async def handle(exchange: Exchange) -> None:
        token = f"Bearer {(account / 'token').read_text()}".encode()
        if dict(exchange.headers).get(b"authorization") != token:
            await respond(exchange, 401, b"{}", b"application/json")
        else:
            await api.handle(exchange)

    tls = ServerTls(TlsFiles(pair.certificate, pair.key), HTTP)
    server = OwnHttpServer(handle, SystemClock(), tls=tls)
    port = await server.start("127.0.0.1", 0)
    try:
        yield port
    finally:
        api.end_watches()
        await server.close()


async def test_in_the_cluster_it_is_asked_over_tls_with_the_token_as_the_kubelet_renews_it(tmp_path: Path) -> None:
    pair = self_signed(tmp_path, "authority")
    (tmp_path / "ca.crt").write_bytes(pair.certificate.read_bytes())
    (tmp_path / "token").write_text("first")
    (tmp_path / "namespace").write_text("models")
    api = ClusterApi()
    api.set(pod("a"))
    asked = KubernetesDiscovery({"app": "vllm"}, target_ports=(Count(80),))
    config = Config(pools=(Pool(Name("chat"), discovery=Discovery(kubernetes=asked)),))
    async with guarded(api, pair, tmp_path) as port, AiohttpUpstream() as upstream:
        environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(port)}
        async with ways(upstream, environ, Random(1), tmp_path) as known:
            (wanted,) = known.wanted(config)
            sets = wanted.source().sets()
            assert [place.address for place in await anext(sets)] == ["10.0.0.1:80"]
            await anext(sets)
            (tmp_path / "token").write_text("second")
            api.end_watches()
            api.set(pod("b", "10.0.0.2"))
            while len(places := await anext(sets)) < 2:
                pass
            assert [place.address for place in places] == ["10.0.0.1:80", "10.0.0.2:80"]
            await sets.aclose()
