"""Which version of HTTP a connection speaks."""

import asyncio
import ssl
from pathlib import Path

import pytest

from kinference.wire.http2.frames import PREFACE
from kinference.wire.http_server import OwnHttpServer
from kinference.wire.tls import HTTP, ServerTls, TlsFiles
from tests.unit.wire.certificates import self_signed
from tests.unit.wire.http1.serving import GET, RealClock, answer, echo, serving
from tests.unit.wire.http1.serving import connected as connected_in_clear
from tests.unit.wire.http2.client import connected


async def test_the_first_bytes_decide_however_they_are_cut() -> None:
    async with serving() as port:
        async with connected_in_clear(port) as (reader, writer):
            for byte in PREFACE + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)):
                writer.write(bytes((byte,)))
                await asyncio.sleep(0)
            assert (await reader.readexactly(4))[3] == 4  # SETTINGS
        async with connected_in_clear(port) as (reader, writer):
            for byte in GET:
                writer.write(bytes((byte,)))
                await asyncio.sleep(0)
            assert await answer(reader) == b"/ "


@pytest.mark.parametrize(
    "first", [b"PRI / HTTP/1.1\r\nhost: h\r\n\r\n", PREFACE[:18] + b"no preface\r\n\r\n", b"\x16\x03\x01"]
)
async def test_what_only_begins_like_the_preface_is_malformed(first: bytes) -> None:
    async with serving() as port, connected_in_clear(port) as (reader, writer):
        writer.write(first)
        assert (await reader.read()).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("first", [b"", b"PRI * "])
async def test_a_connection_that_ends_before_it_was_known_is_forgotten(first: bytes) -> None:
    server = OwnHttpServer(echo, RealClock())
    port = await server.start("127.0.0.1", 0)
    async with connected_in_clear(port) as (reader, writer):
        writer.write(first)
        writer.write_eof()
        assert await reader.read() == b""
    await server.drain(30)


@pytest.mark.parametrize(("offered", "version"), [(["h2", "http/1.1"], "h2"), (["http/1.1"], "http/1.1"), ([], None)])
async def test_over_tls_the_handshake_decides(tmp_path: Path, offered: list[str], version: str | None) -> None:
    pair = self_signed(tmp_path, "server")
    server = OwnHttpServer(echo, RealClock(), tls=ServerTls(TlsFiles(pair.certificate, pair.key), HTTP))
    port = await server.start("127.0.0.1", 0)
    tls = ssl.create_default_context(cafile=str(pair.certificate))
    if offered:
        tls.set_alpn_protocols(offered)
    if version == "h2":
        async with connected(port, tls) as client:
            assert (await client.ask("POST", "/p", body=b"x")).body == b"/p x"
    else:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
        assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == version
        writer.write(GET)
        assert await answer(reader) == b"/ "
        writer.close()
    await server.close()
