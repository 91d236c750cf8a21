"""A server for raw clients."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kinference.wire.exchange import Exchange, Handler, respond
from kinference.wire.http_server import OwnHttpServer
from kinference.wire.server_options import HttpServerOptions

GET = b"GET / HTTP/1.1\r\nhost: h\r\n\r\n"


class RealClock:
    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()


async def echo(exchange: Exchange) -> None:
    """Answer with the path and the body."""
    body = b"".join([chunk async for chunk in exchange.body()])
    await respond(exchange, 200, f"{exchange.path} ".encode() + body, b"text/plain")


@asynccontextmanager
async def serving(handler: Handler = echo, options: HttpServerOptions | None = None) -> AsyncIterator[int]:
    server = OwnHttpServer(handler, RealClock(), options)
    port = await server.start("127.0.0.1", 0)
    try:
        yield port
    finally:
        await server.close()


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def answer(reader: asyncio.StreamReader) -> bytes:
    """The next answer's body, by its length."""
    head = await reader.readuntil(b"\r\n\r\n")
    return await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]))
