"""The shells between a transport and the readers, over a transport in memory: sessions cut, and lost, at every byte."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from kinference.wire.exchange import Exchange, respond
from kinference.wire.grpc_call import Method
from kinference.wire.grpc_session import GrpcLimits, GrpcSession, Host
from kinference.wire.http1.deadlines import Deadlines
from kinference.wire.http2 import frames
from kinference.wire.http2.frames import FrameType
from kinference.wire.opening import Opening
from kinference.wire.rpc import Call, RpcService
from kinference.wire.server_options import HttpServerOptions
from kinference.wire.site import Site
from tests.unit.wire.http2.peer import HELLO, Talk, data, framed, split

HTTP_1 = (
    b"GET /1 HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n"
    b"POST /2 HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\nhello"
    b"POST /3 HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n3;e\r\nabc\r\n0\r\nt: 1\r\n\r\n"
    b"GET /4 HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n"
)
GRPC = (("te", "trailers"), ("content-type", "application/grpc"))


class StillClock:
    """Time that does not pass, so that answers have one date."""

    def now(self) -> float:
        return 0.0

    def wall(self) -> float:
        return 0.0


class Memory(asyncio.Transport):
    """Keeps what is written; bytes go to whoever has taken the connection over."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self.protocol = protocol
        self.written = b""
        self.is_over = False
        protocol.connection_made(self)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, asyncio.Protocol)
        self.protocol = protocol

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def feed(self, data: bytes) -> None:
        if not self.is_over:
            self.protocol.data_received(data)

    def lose(self, error: Exception | None) -> None:
        self.is_over = True
        self.protocol.connection_lost(error)

    def close(self) -> None:
        if not self.is_over:
            self.is_over = True
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    abort = close

    def is_closing(self) -> bool:
        return self.is_over

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.close()

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...


async def echo(exchange: Exchange) -> None:
    body = b"".join([chunk async for chunk in exchange.body()])
    await respond(exchange, 200, exchange.path.encode() + b" " + body, b"text/plain")


async def echo_call(call: Call) -> None:
    while (message := await call.receive()) is not None:
        await call.send(message)


async def turns(count: int = 12) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@dataclass
class Server:
    """What a connection is made by, and what is left of its requests."""

    site: Site
    host: Host

    def http(self) -> Memory:
        return Memory(Opening(self.site))

    def grpc(self) -> Memory:
        return Memory(GrpcSession(self.host))

    async def settle(self) -> None:
        await turns()
        assert not self.site.handlers, "a handler goes on after its connection"
        assert not self.site.connections
        assert self.host.idle.is_set(), "a call goes on after its connection"
        assert not self.host.sessions
        for account in (self.site.options.account, self.host.limits.http2.account):
            assert (account.held, account.connections) == (0, 0), "bytes stay counted after their connection"


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """Nothing that a shell raises passes unseen."""
    loop, raised = asyncio.get_running_loop(), list[object]()
    loop.set_exception_handler(lambda _loop, context: raised.append(context))
    service = RpcService("s", {"m": echo_call})
    method = Method(service, "s/m", echo_call, is_counted=True)
    site = Site(echo, StillClock(), HttpServerOptions(), loop, Deadlines(loop))
    yield Server(site, Host({"/s/m": method}, GrpcLimits()))
    assert raised == []


def http2_session(*more: tuple[str, str]) -> bytes:
    talk = Talk()
    ping = frames.frame(FrameType.PING, 0, 0, b"12345678")
    first = talk.request(1, *more) + data(1, framed(b"hello"), end=True)
    return HELLO + first + ping + talk.request(3, *more) + data(3, framed(b"a")) + data(3, framed(b"b"), end=True)


def by_stream(written: bytes) -> dict[int, list[tuple[int, bytes]]]:
    """What each stream was told, DATA joined; what the connection was told beside windows and answers has no order."""
    told: dict[int, list[tuple[int, bytes]]] = {}
    for kind, flags, stream_id, payload in split(written):
        if not stream_id or kind == FrameType.WINDOW_UPDATE:
            continue
        stream = told.setdefault(stream_id, [])
        before = stream.pop()[1] if stream and kind == FrameType.DATA == stream[-1][0] & 0xFF else b""
        stream.append((kind | (flags & frames.END_STREAM) << 8, before + payload))
    return told


async def test_http1_is_answered_alike_wherever_its_bytes_are_cut(server: Server) -> None:
    answers = set()
    for place in range(len(HTTP_1)):
        transport = server.http()
        transport.feed(HTTP_1[:place] or HTTP_1)
        await turns()
        transport.feed(HTTP_1[place:] if place else b"")
        await turns(40)
        answers.add(transport.written.replace(b"HTTP/1.1 100 Continue\r\n\r\n", b""))
        assert transport.is_over
    (answer,) = answers
    assert answer.count(b"HTTP/1.1 200 OK\r\n") == 4
    await server.settle()


@pytest.mark.parametrize("kind", ["http", "grpc"])
async def test_http2_is_answered_alike_wherever_its_bytes_are_cut(server: Server, kind: str) -> None:
    session = http2_session(*(GRPC if kind == "grpc" else ()))
    told = []
    for place in range(len(session)):
        transport = server.http() if kind == "http" else server.grpc()
        for piece in (session[:place], session[place:]):
            if piece:
                transport.feed(piece)
                await turns()
        await turns(40)
        told.append(by_stream(transport.written))
        transport.lose(None)
    assert all(one == told[0] for one in told)
    assert sorted(told[0]) == [1, 3]
    await server.settle()


@pytest.mark.parametrize("error", [None, ConnectionResetError()], ids=["end", "reset"])
@pytest.mark.parametrize("kind", ["http1", "http2", "grpc"])
async def test_wherever_a_connection_is_lost_nothing_goes_on(
    server: Server, kind: str, error: Exception | None
) -> None:
    session = HTTP_1 if kind == "http1" else http2_session(*(GRPC if kind == "grpc" else ()))
    for place in range(len(session)):
        transport = server.grpc() if kind == "grpc" else server.http()
        transport.feed(session[:place])
        await turns(place % 4)
        if not transport.is_over:
            transport.lose(error)
        await turns(4)
    await server.settle()
