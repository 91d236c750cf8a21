"""Servers that are closed while clients come."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from kinference.wire.aiohttp_server import AiohttpServer
from kinference.wire.exchange import Exchange
from kinference.wire.grpc_server import GrpcServer
from kinference.wire.http2.frames import PREFACE
from kinference.wire.http_server import OwnHttpServer

STEPS = 12
"""Rounds of the event loop from a client's connect to the last thing that accepting it takes, and some more."""

GET = b"GET / HTTP/1.1\r\nhost: engine\r\n\r\n"

Close = Callable[[], Awaitable[None]]
Start = Callable[[], Awaitable[tuple[int, Close]]]


class RealClock:
    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()


async def never_answer(exchange: Exchange) -> None:
    await asyncio.Event().wait()


async def own_http() -> tuple[int, Close]:
    server = OwnHttpServer(never_answer, RealClock())
    return await server.start("127.0.0.1", 0), server.close


async def aiohttp() -> tuple[int, Close]:
    server = AiohttpServer(never_answer, RealClock())
    return await server.start("127.0.0.1", 0), server.close


async def own_grpc() -> tuple[int, Close]:
    server = GrpcServer("127.0.0.1:0", ())
    return await server.start(), lambda: server.drain(0.0)


def connect(port: int, hello: bytes) -> socket.socket:
    """A client whose connection the system has accepted, and the server maybe not yet."""
    client = socket.create_connection(("127.0.0.1", port), timeout=5)
    client.sendall(hello)
    client.setblocking(False)
    return client


async def read_to_the_end(client: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(10):
            while await loop.sock_recv(client, 4096):
                pass
    except ConnectionResetError:
        pass
    finally:
        client.close()


async def close_amid_connects(start: Start, hello: bytes) -> None:
    for steps in range(STEPS):
        port, close = await start()
        clients = [connect(port, hello) for _ in range(4)]
        for _ in range(steps):
            await asyncio.sleep(0)
        await close()
        await asyncio.gather(*(read_to_the_end(client) for client in clients))


@pytest.mark.parametrize(("start", "hello"), [(own_http, GET), (aiohttp, GET), (own_grpc, PREFACE)])
def test_no_connection_outlives_its_server(start: Start, hello: bytes) -> None:
    """One that the system had accepted just before was served after the close, by nobody whom anything could end.

    On the loop that serves: asyncio's own leaves such a connection to the garbage collector.
    """
    uvloop.run(close_amid_connects(start, hello))
