import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from kinference.runtime.clock import SystemClock
from kinference.runtime.wires import Wire, http_upstream
from kinference.sandbox.authority import HOST, Authority
from kinference.sandbox.router import SandboxRouter
from kinference.sandbox.routes import RouteTable, SandboxRoute
from kinference.sandbox.tunnel import HEAD_BYTES_MAX, Tunnels, is_ours
from kinference.wire.exchange import Exchange, respond
from kinference.wire.http_server import OwnHttpServer

CONNECT = b"CONNECT inference.local:443 HTTP/1.1\r\nhost: inference.local:443\r\n\r\n"


@dataclass
class Proxy:
    port: int
    trust: ssl.SSLContext

    async def opened(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def tunnel(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await self.opened()
        writer.write(CONNECT)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        await writer.start_tls(self.trust, server_hostname=HOST)
        return reader, writer


@pytest.fixture
async def proxy(tmp_path: Path) -> AsyncIterator[Proxy]:
    async def echo(exchange: Exchange) -> None:
        body = b"".join([chunk async for chunk in exchange.body()])
        await respond(exchange, 200, exchange.path.encode() + body, b"text/plain")

    server = OwnHttpServer(echo, SystemClock())
    await server.start_unix(str(tmp_path / "http"))
    authority = Authority()
    tunnels = Tunnels(authority.server_context(), tmp_path / "http")
    port = await tunnels.start("127.0.0.1", 0)
    yield Proxy(port, ssl.create_default_context(cadata=authority.pem().decode()))
    tunnels.close()
    await server.close()


async def asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: {HOST}\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    writer.write(head + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    return await reader.readexactly(int(length.partition(b":")[2]))


async def test_requests_go_through_a_tunnel_one_after_the_other(proxy: Proxy) -> None:
    reader, writer = await proxy.tunnel()
    assert await asked(reader, writer, "/one", b"a") == b"/onea"
    large = b"x" * 2_000_000
    assert await asked(reader, writer, "/two", large) == b"/two" + large
    writer.close()


async def test_many_tunnels_at_once(proxy: Proxy) -> None:
    async def one(number: int) -> bytes:
        reader, writer = await proxy.tunnel()
        answer = await asked(reader, writer, f"/{number}", b"")
        writer.close()
        return answer

    assert await asyncio.gather(*(one(number) for number in range(20))) == [b"/%d" % number for number in range(20)]


@pytest.mark.parametrize(
    "head",
    [
        b"CONNECT api.openai.com:443 HTTP/1.1\r\n\r\n",
        b"CONNECT inference.local:80 HTTP/1.1\r\n\r\n",
        b"GET http://inference.local/ HTTP/1.1\r\n\r\n",
    ],
)
async def test_every_other_request_is_refused(proxy: Proxy, head: bytes) -> None:
    reader, writer = await proxy.opened()
    writer.write(head)
    assert (await reader.read()).startswith(b"HTTP/1.1 403 ")
    writer.close()


@pytest.mark.parametrize("sent", [b"", b"CONNECT inference.local", b"x" * (HEAD_BYTES_MAX * 2)])
async def test_what_is_no_request_is_closed(proxy: Proxy, sent: bytes) -> None:
    reader, writer = await proxy.opened()
    writer.write(sent)
    if len(sent) < HEAD_BYTES_MAX:
        writer.write_eof()
    with suppress(ConnectionResetError):  # where more was sent than anybody read
        assert await reader.read() == b""
    writer.close()


async def test_a_client_that_does_not_trust_us_does_no_harm(proxy: Proxy) -> None:
    reader, writer = await proxy.opened()
    writer.write(CONNECT)
    await reader.readuntil(b"\r\n\r\n")
    with pytest.raises(ssl.SSLCertVerificationError):
        await writer.start_tls(ssl.create_default_context(), server_hostname=HOST)
    reader, writer = await proxy.tunnel()
    assert await asked(reader, writer, "/still", b"") == b"/still"
    writer.close()


@pytest.mark.parametrize("name", [b"inference.local", b"INFERENCE.Local"])
def test_the_name_is_known_in_any_case(name: bytes) -> None:
    assert is_ours(b"CONNECT " + name + b":443 HTTP/1.1\r\n\r\n")


@pytest.fixture
async def routed(tmp_path: Path) -> AsyncIterator[Proxy]:
    """Tunnels to a sandbox's own router, whose only route is a mock."""
    route = SandboxRoute("inference.local", "mock://x", ("openai_chat_completions",), "k", "m", "openai")
    async with http_upstream(Wire.OWN) as upstream:
        server = OwnHttpServer(SandboxRouter(RouteTable([route]), upstream).handle, SystemClock())
        await server.start_unix(str(tmp_path / "http"))
        authority = Authority()
        tunnels = Tunnels(authority.server_context(), tmp_path / "http")
        port = await tunnels.start("127.0.0.1", 0)
        yield Proxy(port, ssl.create_default_context(cadata=authority.pem().decode()))
        tunnels.close()
        await server.close()


def chat(*fields: str, body: bytes = b"{}") -> bytes:
    head = ["POST /v1/chat/completions HTTP/1.1", f"host: {HOST}", *fields, "", ""]
    return "\r\n".join(head).encode() + body


async def answer_to(proxy: Proxy, *sent: bytes) -> bytes:
    """Everything that comes back until the other side ends the connection."""
    reader, writer = await proxy.tunnel()
    writer.write(b"".join(sent))
    async with asyncio.timeout(20):
        answer = await reader.read()
    writer.close()
    return answer


async def test_fact47_an_unknown_path_ends_a_connection_that_served_well_before(routed: Proxy) -> None:
    unknown = f"GET /v1/files HTTP/1.1\r\nhost: {HOST}\r\n\r\n".encode()
    answer = await answer_to(routed, chat("content-length: 2"), unknown, chat("content-length: 2"))
    assert answer.count(b"HTTP/1.1 200 ") == 1
    assert answer.count(b"HTTP/1.1 403 ") == 1
    assert answer.count(b"HTTP/1.1 ") == 2


@pytest.mark.parametrize(
    "fields",
    [
        ("content-length: 2", "content-length: 3"),
        ("content-length: two",),
        ("content-length: 2", "transfer-encoding: chunked"),
        ("transfer-encoding: chunkedx",),
        ("content-length: 2", "content-length: 2"),  # the original took it; RFC 9110 8.6 lets either be done
    ],
)
async def test_fact54_framing_that_can_be_read_in_two_ways_is_refused(routed: Proxy, fields: tuple[str, ...]) -> None:
    answer = await answer_to(routed, chat(*fields))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
