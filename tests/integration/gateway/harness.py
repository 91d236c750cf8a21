"""A gateway between real sockets: raw upstreams that say exactly what a test wants, and clients that read every byte."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from random import Random
from typing import Protocol, TypeAlias

from kinference.core.fleet import BackendSpec, EndpointSpec, Fleet
from kinference.core.pick import Router
from kinference.core.policy import RoutingRules
from kinference.gateway.backends import BackendRoute, Directory, EndpointRoute, ServedModel
from kinference.gateway.options import GatewayOptions, Outside
from kinference.gateway.service import Gateway
from kinference.ids import Address, ObjectRef
from kinference.observe.metrics import Metrics
from kinference.picker.desk import Desk
from kinference.picker.inprocess import InProcessPicker
from kinference.picker.limits import PickerLimits
from kinference.ports import Clock, Upstream
from kinference.vocabulary import Api
from kinference.wire.exchange import Course, Handler, HttpServer, Work

POOL = ObjectRef("default", "engines")
CLOUD = ObjectRef("default", "cloud")
CLOUD_KEY = "sk-ours-provider"
MODEL = "m"


class RealClock:
    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()


@dataclass
class Received:
    """One request as an upstream saw it, byte for byte."""

    head: bytes
    body: bytes
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the gateway has closed the connection that brought it."""

    def field(self, name: str) -> list[str]:
        lines = self.head.decode().split("\r\n")[1:]
        pairs = (line.partition(": ") for line in lines if line)
        return [value for key, _, value in pairs if key.lower() == name]

    @property
    def target(self) -> str:
        return self.head.decode().split(" ")[1]


Script: TypeAlias = Callable[[Received, asyncio.StreamWriter], Awaitable[None]]


class RawUpstream:
    """Reads requests and lets the script write whatever it likes in answer, then closes."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.received: list[Received] = []
        self.arrived = asyncio.Event()
        self.port = 0
        self._connections: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator["RawUpstream"]:
        server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            if self._connections:
                await asyncio.wait(self._connections, timeout=1)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._connected(reader, writer)
            with suppress(ConnectionError):
                await writer.wait_closed()
        finally:
            self._connections.discard(task)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()
            return
        request = Received(head, b"")
        length = request.field("content-length")
        request.body = await reader.readexactly(int(length[0])) if length else b""
        self.received.append(request)
        self.arrived.set()
        try:
            async with asyncio.TaskGroup() as tasks:
                watching = tasks.create_task(self._watch(reader, request))
                await self._script(request, writer)
                watching.cancel()
        except* ConnectionError:
            pass
        writer.close()

    async def _watch(self, reader: asyncio.StreamReader, request: Received) -> None:
        with suppress(ConnectionError):
            await reader.read(1)
        request.closed.set()


def answering(*parts: bytes) -> Script:
    """Write these bytes, each on its own, and close."""

    async def script(_request: Received, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()

    return script


def json_answer(body: bytes, status: str = "200 OK", extra: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n{extra}\r\n"
    return head.encode() + body


EVENT_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


def http_chunk(body: bytes) -> bytes:
    return f"{len(body):x}\r\n".encode() + body + b"\r\n"


@dataclass(frozen=True)
class Answer:
    """What a client got: head, body with the chunked coding undone, and whether the answer came to its end."""

    status: int
    head: bytes
    body: bytes
    is_complete: bool

    def field(self, name: str) -> list[str]:
        return Received(self.head, b"").field(name)


class Client:
    """One connection to the gateway."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, path: str, body: bytes, headers: str = "", method: str = "POST") -> None:
        length = f"content-length: {len(body)}\r\n" if method == "POST" else ""
        head = f"{method} {path} HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n{length}{headers}\r\n"
        self.writer.write(head.encode() + body)
        await self.writer.drain()

    async def answer(self) -> Answer:
        raw = await self.reader.read()
        head, _, rest = raw.partition(b"\r\n\r\n")
        status = int(head.split(b" ")[1])
        if b"transfer-encoding: chunked" in head.lower():
            body, is_complete = dechunked(rest)
            return Answer(status, head, body, is_complete)
        length = Received(head, b"").field("content-length")
        return Answer(status, head, rest, not length or len(rest) == int(length[0]))

    async def until(self, marker: bytes) -> bytes:
        return await self.reader.readuntil(marker)


def dechunked(raw: bytes) -> tuple[bytes, bool]:
    """The bytes inside a chunked coding, and whether its end came."""
    body = b""
    while raw:
        size, _, raw = raw.partition(b"\r\n")
        if not size.strip():
            return body, False
        if int(size, 16) == 0:
            return body, True
        body, raw = body + raw[: int(size, 16)], raw[int(size, 16) + 2 :]
    return body, False


@dataclass
class Rig:
    """A running gateway and its insides."""

    port: int
    desk: Desk
    router: Router
    metrics: Metrics
    drain: Callable[[float], Awaitable[None]]
    """Its server's."""
    handlers: int = 0
    """Requests whose handler has not returned; one may still account for what its client has had already."""
    straight: int = 0
    """Requests that no task was needed for."""

    async def page(self) -> str:
        """The metrics, once everything is accounted for."""
        while self.handlers:  # noqa: ASYNC110 - a handler tells nobody
            await asyncio.sleep(0)
        return self.metrics.exposition().decode()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield Client(reader, writer)
        finally:
            writer.close()

    async def ask(self, path: str, body: bytes, headers: str = "", method: str = "POST") -> Answer:
        async with self.client() as client:
            await client.send(path, body, headers, method)
            return await client.answer()


class Counted(Course):
    """A request that its rig counts while it is under way, whichever way it goes."""

    def __init__(self, rig: Rig, serving: Course) -> None:
        self._rig, self._serving = rig, serving
        self._work: Work | None = None
        rig.handlers += 1

    def begin(self, work: Work) -> bool:
        self._work = work
        return self._serving.begin(self)

    def stop(self) -> None:
        self._serving.stop()

    def wait(self) -> None:
        assert self._work is not None
        self._work.wait()

    def over(self) -> None:
        assert self._work is not None
        self._rig.handlers -= 1
        self._rig.straight += 1
        self._work.over()

    def __await__(self) -> Generator[None, None, None]:
        return self._rest().__await__()

    async def _rest(self) -> None:
        try:
            await self._serving
        finally:
            self._rig.handlers -= 1


def fleet_of(ports: list[int], provider_api: Api | None) -> Fleet:
    fleet = Fleet()
    addresses = [Address(f"127.0.0.1:{port}") for port in ports]
    fleet.set_pool(POOL, [EndpointSpec(POOL, address) for address in addresses])
    for address in addresses:
        fleet.set_models(POOL, address, [MODEL])
        fleet.set_ready(POOL, address, True)
    if provider_api is not None:
        fleet.set_backends([BackendSpec(CLOUD, provider_api, {MODEL: "theirs"})])
    return fleet


@dataclass(frozen=True)
class Carrier:
    """What carries HTTP on both sides of the gateway."""

    server: Callable[[Handler, Clock], HttpServer]
    upstream: Callable[[], AbstractAsyncContextManager[Upstream]]


class MakeGateway(Protocol):
    """A gateway in front of engines, and maybe of a provider, by port."""

    def __call__(
        self, *engines: int, provider: tuple[int, Api] | None = None, options: GatewayOptions | None = None
    ) -> AbstractAsyncContextManager[Rig]: ...


@asynccontextmanager
async def gateway_on(
    carrier: Carrier, engines: tuple[int, ...], provider: tuple[int, Api] | None, options: GatewayOptions | None
) -> AsyncIterator[Rig]:
    clock, metrics = RealClock(), Metrics()
    fleet = fleet_of([*engines], provider[1] if provider else None)
    router = Router(fleet, RoutingRules(), Random(1))
    desk = Desk(router, PickerLimits(), clock, metrics, Random(2))
    routes = {}
    if provider is not None:
        port, api = provider
        routes[CLOUD] = BackendRoute(CLOUD, f"http://127.0.0.1:{port}/v1", CLOUD_KEY, api)
    directory = Directory(lambda address: EndpointRoute(f"http://{address}"), routes.get, lambda: (ServedModel(MODEL),))
    async with AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(carrier.upstream())
        serving = Gateway(
            Outside(InProcessPicker(desk), upstream, clock, metrics, directory), options or GatewayOptions()
        )
        server = carrier.server(lambda exchange: Counted(rig, serving.handle(exchange)), clock)
        rig = Rig(0, desk, router, metrics, server.drain)
        rig.port = await server.start("127.0.0.1", 0)
        stack.push_async_callback(server.close)
        yield rig
    assert (desk.is_idle, desk.buffered_bytes) == (True, 0), (
        "the picker still holds something of a request that is over"
    )
