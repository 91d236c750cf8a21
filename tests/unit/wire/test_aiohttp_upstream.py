"""What the aiohttp client carrier does in its own way; what every carrier must do is in tests/conformance/http."""

import asyncio
import ssl
from pathlib import Path

import pytest

from kinference.errors import UpstreamUnreachable
from kinference.ports import UpstreamRequest
from kinference.wire.aiohttp_upstream import AiohttpUpstream
from tests.unit.wire.certificates import self_signed


@pytest.mark.parametrize("origin", ["http://", "http://h:notaport"])
async def test_what_the_library_cannot_use_as_an_address_is_unreachable(origin: str) -> None:
    async with AiohttpUpstream() as upstream:
        with pytest.raises(UpstreamUnreachable):
            await upstream.send(UpstreamRequest("GET", origin, "/", ()))


async def answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
    writer.close()


async def test_the_system_s_authorities_are_followed_and_who_is_not_of_them_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As our own carrier does: by this one endpoints are tried before a route may lead there."""
    pair, trusted = self_signed(tmp_path, "server"), self_signed(tmp_path, "another").certificate
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    mine = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    mine.load_cert_chain(pair.certificate, pair.key)
    server = await asyncio.start_server(answering, "127.0.0.1", 0, ssl=mine)
    request = UpstreamRequest("GET", f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", "/", ())
    async with AiohttpUpstream() as upstream:
        with pytest.raises(UpstreamUnreachable, match="its certificate does not verify, self-signed certificate"):
            await upstream.send(request)
        trusted.write_bytes(pair.certificate.read_bytes())
        answer = await upstream.send(request)
        assert answer.status == 204
        await answer.close()
    server.close()
