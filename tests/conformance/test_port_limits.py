"""The limits of connections that a configuration sets, met from outside, on every port and on either wire."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from grpc import StatusCode

from kinference.config.schema import Config, Control, Limits, Listen
from kinference.config.values import Count, HostPort, Size, StoreUrl
from kinference.conformance.client import Client, Issued, open_channel, status_of
from kinference.conformance.target import Target
from kinference.runtime.service import Ports, running
from kinference.runtime.wires import Wire
from tests.conformance.http2.case import IGNORED, Case, Outcome, Scope, broken
from tests.conformance.http2.client import Client as RawClient
from tests.conformance.http2.frames import (
    AUTHORITY,
    METHOD_GET,
    PING,
    SCHEME_HTTP,
    call,
    frame,
    headers,
    literal,
    path,
    rst_stream,
)

ANY = HostPort("127.0.0.1", 0)
LIMITS = Limits(
    connections_max=Count(5),
    connections_per_peer_max=Count(3),
    streams_max=Count(4),
    header_list_max_bytes=Size(2000),
    stream_resets_per_second=Count(10),
    pings_per_second=Count(5),
)
PUSH = call(b"/kinference.v1.Picker/PushBody")
GET = METHOD_GET + SCHEME_HTTP + path(b"/healthz") + AUTHORITY
CALM = broken("ENHANCE_YOUR_CALM")
PINGED = frame(PING, 0, 0, bytes(8))
PLANES = ("picker", "gateway", "admin")


@asynccontextmanager
async def limited(folder: Path, wire: Wire = Wire.OWN) -> AsyncIterator[Ports]:
    store = Control(StoreUrl(f"sqlite:///{folder}/control.db"))
    async with running(Config(listen=Listen(ANY, ANY, ANY), limits=LIMITS, control=store), wire) as service:
        yield service.ports


@pytest.fixture
async def ports(tmp_path: Path) -> AsyncIterator[Ports]:
    async with limited(tmp_path) as ports:
        yield ports


async def play(port: int, sends: bytes, outcome: Outcome = IGNORED, stream: int = 1) -> Outcome:
    return await RawClient(port, 10, 0.2).play(Case("", "", sends, outcome, stream=stream))


@asynccontextmanager
async def connected(
    port: int, source: str = "127.0.0.1"
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
    try:
        yield reader, writer
    finally:
        writer.close()


async def is_taken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Whether a connection is served: the server speaks first to one that begins as HTTP/2 does."""
    writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0))
    try:
        return (await reader.readexactly(9))[3] == 4
    except (asyncio.IncompleteReadError, ConnectionError):
        return False


class Peers:
    """Connections of several addresses to one port, held until the block is left."""

    def __init__(self, port: int, stack: AsyncExitStack) -> None:
        self._port, self._stack = port, stack

    async def hold(self, source: str) -> None:
        """Connect, once the server has noticed that earlier connections have gone."""
        async with asyncio.timeout(10):
            while True:
                async with AsyncExitStack() as attempt:
                    if await is_taken(*await attempt.enter_async_context(connected(self._port, source))):
                        await self._stack.enter_async_context(attempt.pop_all())
                        return

    async def is_refused(self, source: str) -> bool:
        async with connected(self._port, source) as streams:
            return not await is_taken(*streams)


async def metrics(ports: Ports) -> str:
    async with connected(ports.admin) as (reader, writer):
        writer.write(b"GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
        return (await reader.read()).decode()


@pytest.mark.parametrize("plane", PLANES)
async def test_a_peer_gets_its_share_of_connections_and_all_together_no_more_than_all(ports: Ports, plane: str) -> None:
    port = getattr(ports, plane)
    async with AsyncExitStack() as stack:
        peers = Peers(port, stack)
        for _ in range(3):
            await peers.hold("127.0.0.1")
        assert await peers.is_refused("127.0.0.1"), "a fourth of one peer"
        for _ in range(2):
            await peers.hold("127.0.0.2")
        assert await peers.is_refused("127.0.0.3"), "a sixth in all"
    async with AsyncExitStack() as stack:
        await Peers(port, stack).hold("127.0.0.1")


async def test_a_head_that_is_too_large_costs_its_own_call_alone(ports: Ports) -> None:
    others = 7 * 32 + len(":methodPOST:schemehttp:path/none/None:authoritylocalhostx")
    others += len("tetrailerscontent-typeapplication/grpc")
    fitting, large = literal(b"x", b"y" * (2000 - others)), literal(b"x", b"y" * (2001 - others))
    assert await play(ports.picker, headers(1, call(b"/none/None", fitting), 1)) == Outcome(
        Scope.ANSWERED, "200, grpc-status 12"
    )
    assert await play(ports.picker, headers(1, call(b"/none/None", large), 1)) == Outcome(
        Scope.STREAM, "ENHANCE_YOUR_CALM"
    )
    for port in (ports.gateway, ports.admin):
        assert await play(port, headers(1, GET + literal(b"x", b"y" * 2000), 1)) == Outcome(
            Scope.STREAM, "ENHANCE_YOUR_CALM"
        )


@pytest.mark.parametrize("plane", ["gateway", "admin"])
async def test_a_head_of_http1_that_is_too_large_is_431(ports: Ports, plane: str) -> None:
    async with connected(getattr(ports, plane)) as (reader, writer):
        writer.write(b"GET /healthz HTTP/1.1\r\nhost: a\r\nx: " + b"y" * 2000 + b"\r\n\r\n")
        assert (await reader.readline()).split()[1] == b"431"
    assert f'kinference_peer_faults_total{{code="431",port="{plane}"}} 1.0' in await metrics(ports)


async def test_a_stream_beyond_the_limit_is_refused_and_the_others_go_on(ports: Ports) -> None:
    opened = b"".join(headers(at, PUSH) for at in range(1, 9, 2))
    fifth = await play(ports.picker, opened + headers(9, PUSH) + rst_stream(1), stream=9)
    assert fifth == Outcome(Scope.STREAM, "REFUSED_STREAM")


@pytest.mark.parametrize("plane", PLANES)
async def test_streams_taken_back_faster_than_allowed_end_the_connection(ports: Ports, plane: str) -> None:
    port, block = getattr(ports, plane), PUSH if plane == "picker" else GET

    def taken_back(count: int) -> bytes:
        return b"".join(headers(at, block) + rst_stream(at) for at in range(1, 2 * count, 2))

    assert await play(port, taken_back(30), stream=999_999) == IGNORED
    assert await play(port, taken_back(300), CALM) == CALM


@pytest.mark.parametrize("plane", PLANES)
async def test_pings_faster_than_allowed_end_the_connection(ports: Ports, plane: str) -> None:
    port = getattr(ports, plane)
    assert await play(port, PINGED * 40) == IGNORED
    assert await play(port, PINGED * 400, CALM) == CALM
    assert f'kinference_peer_faults_total{{code="enhance_your_calm",port="{plane}"}} 1.0' in await metrics(ports)


@pytest.mark.parametrize("wire", Wire, ids=lambda wire: str(wire.value))
async def test_a_library_is_told_the_limits_and_keeps_to_them(tmp_path: Path, wire: Wire) -> None:
    async with limited(tmp_path, wire) as ports:
        target = Target("127.0.0.1", ports.picker)
        async with open_channel(target) as channel:
            client = Client(channel, target, Issued())
            held = [await client.begin_push(b"x") for _ in range(4)]
            waiting = asyncio.ensure_future(client.push(b"x"))
            done, _ = await asyncio.wait([waiting], timeout=0.3)
            assert not done, "a fifth stream was let through"
            await held[0].done_writing()
            await held[0]
            assert (await waiting)[1] == 1
            for call in held[1:]:
                call.cancel()
            too_large = client.unary("Abort", b"", [("x", "y" * 3000)])
            assert await status_of(too_large) is StatusCode.RESOURCE_EXHAUSTED
            assert await client.abort(1) is False
