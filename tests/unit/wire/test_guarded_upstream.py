import socket
from collections.abc import AsyncIterator
from ipaddress import ip_address

import pytest

from kinference.errors import UpstreamUnreachable
from kinference.ports import UpstreamRequest
from kinference.runtime.clock import SystemClock
from kinference.wire.aiohttp_server import AiohttpServer
from kinference.wire.exchange import Exchange, respond
from kinference.wire.guarded_upstream import GuardedUpstream, admits_any, admits_public


@pytest.fixture
async def port() -> AsyncIterator[int]:
    async def redirect(exchange: Exchange) -> None:
        await respond(exchange, 307, b"", b"text/plain", (b"location", b"http://169.254.169.254/"))

    server = AiohttpServer(redirect, SystemClock())
    yield await server.start("127.0.0.1", 0)
    await server.drain(0)


@pytest.mark.parametrize("address", ["8.8.8.8", "2001:4860:4860::8888", "64:ff9b::808:808", "::ffff:8.8.8.8"])
def test_public_addresses_are_admitted_by_both(address: str) -> None:
    assert admits_public(ip_address(address))
    assert admits_any(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.0.0.1", "192.168.1.1", "172.16.0.1", "100.64.0.1", "192.0.2.1"),
        *("::1", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::"),
    ],
)
def test_private_addresses_are_admitted_where_they_are_allowed(address: str) -> None:
    assert not admits_public(ip_address(address))
    assert admits_any(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        *("169.254.169.254", "100.100.100.200", "0.0.0.0", "224.0.0.1", "::", "ff02::1", "fe80::1"),
        *("fd00:ec2::254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::"),
    ],
)
def test_metadata_and_senseless_addresses_are_never_admitted(address: str) -> None:
    assert not admits_public(ip_address(address))
    assert not admits_any(ip_address(address))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"])
async def test_no_connection_is_made_to_what_is_not_admitted(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        request = UpstreamRequest("GET", f"http://{host}:{listener.getsockname()[1]}", "/", ())
        async with GuardedUpstream(admits_public) as upstream:
            with pytest.raises(UpstreamUnreachable, match=r"private.*control\.verify\.allow_private"):
                await upstream.send(request)
        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "0177.0.0.1", "127.1"])
async def test_numbers_that_some_take_for_addresses_lead_nowhere(host: str, port: int) -> None:
    async with GuardedUpstream(admits_public) as upstream:
        with pytest.raises(UpstreamUnreachable):
            await upstream.send(UpstreamRequest("GET", f"http://{host}:{port}", "/", ()))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_what_is_admitted_is_reached_and_no_redirect_followed(host: str, port: int) -> None:
    async with GuardedUpstream(admits_any) as upstream:
        answer = await upstream.send(UpstreamRequest("GET", f"http://{host}:{port}", "/", ()))
        assert answer.status == 307
        await answer.close()
