"""Whatever frames come, in whatever order and however cut: a session breaks nothing but what it is told to."""

import asyncio

from hpack import Encoder
from hypothesis import given, settings
from hypothesis import strategies as st

from kinference.errors import ClientGone
from kinference.runtime.clock import SystemClock
from kinference.wire.exchange import Exchange, respond
from kinference.wire.grpc_call import Method
from kinference.wire.grpc_session import GrpcLimits, GrpcSession, Host
from kinference.wire.http1.deadlines import Deadlines
from kinference.wire.http2 import frames
from kinference.wire.http2.frames import FrameType
from kinference.wire.http2.guard import Http2Limits
from kinference.wire.http2.ingress import Http2Ingress
from kinference.wire.rpc import Call, RpcService
from kinference.wire.server_options import HttpServerOptions
from kinference.wire.site import Site
from kinference.wire.untaken import Untaken
from tests.unit.wire.http2.peer import HELLO, data, framed
from tests.unit.wire.test_grpc_session import ListTransport

HTTP = ((":method", "POST"), (":scheme", "http"), (":authority", "h"))
GRPC = (*HTTP, ("te", "trailers"), ("content-type", "application/grpc"))
PATHS = ("/echo", "/never", "/abort", "/fail", "/early", "*", "/s/echo", "/s/never", "/s/unknown", "/a b")

streams = st.sampled_from((1, 3, 5))
flag = st.booleans()


def opened(stream_id: int, path: str, is_grpc: bool, ended: bool) -> bytes:
    fields = (*(GRPC if is_grpc else HTTP), (":path", path))
    ordered = sorted(fields, key=lambda field: not field[0].startswith(":"))
    block: bytes = Encoder().encode([(name, value, True) for name, value in ordered], huffman=False)
    return frames.headers(frames.END_STREAM if ended else 0, stream_id, block)


frame = st.one_of(
    st.builds(opened, streams, st.sampled_from(PATHS), flag, flag),
    st.builds(lambda stream, payload, end: data(stream, payload, end=end), streams, st.binary(max_size=20), flag),
    st.builds(lambda stream, end: data(stream, framed(b"hi"), end=end), streams, flag),
    st.builds(frames.rst_stream, streams, st.integers(0, 13)),
    st.builds(frames.window_update, st.sampled_from((0, 1, 3)), st.integers(0, 2**31 - 1)),
    st.builds(lambda window: frames.settings({4: window}), st.integers(0, 100_000)),
    st.just(frames.frame(FrameType.PING, 0, 0, b"12345678")),
    st.just(frames.goaway(0, 0)),
    st.builds(frames.frame, st.sampled_from(FrameType), st.integers(0, 255), streams, st.binary(max_size=10)),
)
rooms = st.sampled_from((0, 40, 2**30))
"""For all bytes that no handler has taken."""
reads = st.lists(st.lists(frame, max_size=6).map(b"".join), max_size=6)


async def serve_http(exchange: Exchange) -> None:
    if exchange.path == "/never":
        await asyncio.Event().wait()
    if exchange.path == "/fail":
        raise ClientGone("not so")
    if exchange.path == "/abort":
        await exchange.start(200, ())
        exchange.abort()
        return
    body = b"" if exchange.path == "/early" else b"".join([chunk async for chunk in exchange.body()])
    await respond(exchange, 200, body * 1000, b"text/plain")


async def echo(call: Call) -> None:
    while (message := await call.receive()) is not None:
        await call.send(message * 1000)


async def never(call: Call) -> None:
    await call.receive()
    await asyncio.Event().wait()


class Surprises:
    """What went wrong where nobody is told of it."""

    def __init__(self) -> None:
        self.found: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: self.found.append(context))

    async def serve(self, exchange: Exchange) -> None:
        try:
            await serve_http(exchange)
        except ClientGone:
            raise
        except Exception as error:
            self.found.append(error)
            raise


async def turns() -> None:
    for _ in range(4):
        await asyncio.sleep(0)


@given(reads=reads, fills=flag, room=rooms)
@settings(max_examples=200, deadline=None)
def test_an_http_session_takes_any_frames_and_leaves_no_handler_behind(
    reads: list[bytes], fills: bool, room: int
) -> None:
    async def scenario() -> None:
        loop, surprises = asyncio.get_running_loop(), Surprises()
        account = Untaken(room)
        site = Site(surprises.serve, SystemClock(), HttpServerOptions(account=account), loop, Deadlines(loop))
        session = Http2Ingress(site)
        session.connection_made(ListTransport())
        for read in (HELLO, *reads):
            session.data_received(read)
            if fills:
                session.pause_writing()
            await turns()
            if fills:
                session.resume_writing()
        session.connection_lost(None)
        await turns()
        assert not site.handlers
        assert not site.connections
        assert not surprises.found
        assert (account.held, account.connections) == (0, 0)

    asyncio.run(scenario())


@given(reads=reads, inline=flag, room=rooms)
@settings(max_examples=200, deadline=None)
def test_a_grpc_session_takes_any_frames_and_leaves_no_call_behind(reads: list[bytes], inline: bool, room: int) -> None:
    async def scenario() -> None:
        handlers = {"echo": echo} if inline else {"echo": echo, "never": never}  # an inline handler waits for its call
        service = RpcService("s", handlers, inline=inline)
        methods = {f"/s/{name}": Method(service, name, handler, is_counted=True) for name, handler in handlers.items()}
        account = Untaken(room)
        surprises, host = Surprises(), Host(methods, GrpcLimits(http2=Http2Limits(account=account)))
        session = GrpcSession(host)
        session.connection_made(ListTransport())
        for read in (HELLO, *reads):
            session.data_received(read)
            await turns()
        session.connection_lost(None)
        await turns()
        assert host.idle.is_set()
        assert not host.sessions
        assert not surprises.found
        assert (account.held, account.connections) == (0, 0)

    asyncio.run(scenario())
