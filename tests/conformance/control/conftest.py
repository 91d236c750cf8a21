"""A whole kinference on free ports, an upstream that answers as a test says, and clients of both generations."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest

from kinference.config.schema import Config, Control, Listen
from kinference.config.values import HostPort, StoreUrl
from kinference.ports import Headers, UpstreamRequest
from kinference.runtime.clock import SystemClock
from kinference.runtime.service import Ports, running
from kinference.wire.aiohttp_server import AiohttpServer
from kinference.wire.aiohttp_upstream import AiohttpUpstream
from kinference.wire.exchange import Exchange, respond
from tests.conformance.control.client import Client

ANY = HostPort("127.0.0.1", 0)


@dataclass(frozen=True)
class Probe:
    """What the upstream was asked."""

    path: str
    headers: Mapping[bytes, bytes]
    body: Any


@dataclass
class Provider:
    """The upstream: a status and a body by path, 404 for the others."""

    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    probes: list[Probe] = field(default_factory=list)
    url: str = ""

    async def handle(self, exchange: Exchange) -> None:
        content = b"".join([chunk async for chunk in exchange.body()])
        body = json.loads(content)
        self.probes.append(Probe(exchange.path, dict(exchange.headers), body))
        status, answer = self.answers.get(exchange.path, (404, b"{}"))
        if status == 400 and b"max_completion_tokens" in answer and "max_tokens" in body:
            status, answer = 200, b"{}"
        await respond(exchange, status, answer, b"application/json")


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    upstream = Provider({"/v1/chat/completions": (200, b"{}"), "/v1/messages": (200, b"{}")})
    server = AiohttpServer(upstream.handle, SystemClock())
    upstream.url = f"http://127.0.0.1:{await server.start('127.0.0.1', 0)}"
    yield upstream
    await server.drain(0)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(listen=Listen(ANY, ANY, ANY), control=Control(StoreUrl(f"sqlite:///{tmp_path}/control.db")))


@pytest.fixture
async def ports(config: Config, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Ports]:
    monkeypatch.setenv("KINFERENCE_SECRET_KEY", "ab" * 32)
    async with running(config) as service:
        yield service.ports


@pytest.fixture
async def client(ports: Ports) -> AsyncIterator[Client]:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{ports.picker}") as channel:
        yield Client(channel)


@pytest.fixture
async def later(ports: Ports) -> AsyncIterator[Client]:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{ports.picker}") as channel:
        yield Client(channel, later=True)


@dataclass(frozen=True)
class Admin:
    """The admin port, for records of providers."""

    url: str
    provider: Provider
    token: str = ""

    async def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        return await self.send(method, f"/api/v1/providers{path}", body)

    async def send(self, method: str, target: str, body: object = None) -> tuple[int, Any]:
        content = (json.dumps(body).encode(),) if body is not None else ()
        credential = b"Bearer " + self.token.encode()
        headers: Headers = ((b"content-type", b"application/json"), (b"authorization", credential))
        async with AiohttpUpstream() as upstream:
            answer = await upstream.send(UpstreamRequest(method, self.url, target, headers, content))
            return answer.status, json.loads(b"".join([chunk async for chunk in answer.chunks()]))

    async def create(
        self, name: str = "p", kind: str = "openai", credentials: Mapping[str, str] | None = None, **config: str
    ) -> None:
        """By default an OpenAI-compatible record that leads to the upstream."""
        given = {"OPENAI_API_KEY": "sk-test"} if credentials is None else credentials
        leads = config or {"OPENAI_BASE_URL": self.provider.url}
        record = {"name": name, "type": kind, "credentials": dict(given), "config": leads}
        status, answer = await self.ask("POST", "", record)
        assert status == 200, answer

    async def update(self, **change: object) -> None:
        status, answer = await self.ask("PATCH", "/p", change)
        assert status == 200, answer


@pytest.fixture
def admin(ports: Ports, provider: Provider) -> Admin:
    return Admin(f"http://127.0.0.1:{ports.admin}", provider)


@pytest.fixture
def restart(config: Config) -> Callable[[], Any]:
    """Another process on the same store."""
    return lambda: running(config)
