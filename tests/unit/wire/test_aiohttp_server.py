"""What the aiohttp server carrier does in its own way; what every carrier must do is in tests/conformance/http."""

import asyncio
import time

from kinference.wire.aiohttp_server import AiohttpServer
from kinference.wire.exchange import Exchange, respond
from kinference.wire.server_options import HttpServerOptions


class RealClock:
    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()


async def hello(exchange: Exchange) -> None:
    await respond(exchange, 200, b"hello", b"text/plain")


async def ask(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    return answer


async def test_a_field_over_the_limit_is_told_apart_from_a_malformed_one() -> None:
    server = AiohttpServer(hello, RealClock(), HttpServerOptions(field_bytes_max=100))
    port = await server.start("127.0.0.1", 0)
    long = await ask(port, b"GET / HTTP/1.1\r\nhost: h\r\nx: " + b"a" * 200 + b"\r\n\r\n")
    bad = await ask(port, b"GET / HTTP/1.1\r\nhost h\r\n\r\n")
    await server.close()
    assert long.endswith(b"request head too large")
    assert bad.endswith(b"malformed request")
