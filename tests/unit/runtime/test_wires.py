"""Which carrier is whose."""

import pytest

from kinference.runtime.clock import SystemClock
from kinference.runtime.wires import Wire, http_server, http_upstream
from kinference.wire.aiohttp_server import AiohttpServer
from kinference.wire.aiohttp_upstream import AiohttpUpstream
from kinference.wire.exchange import Exchange
from kinference.wire.http1.server import Http1Server
from kinference.wire.http1.upstream import Http1Upstream


async def nobody(_exchange: Exchange) -> None:
    return


@pytest.mark.parametrize(
    ("wire", "server", "upstream"),
    [(Wire.OWN, Http1Server, Http1Upstream), (Wire.LIBRARY, AiohttpServer, AiohttpUpstream)],
)
async def test_each_wire_has_its_carriers(wire: Wire, server: type, upstream: type) -> None:
    assert isinstance(http_server(wire, nobody, SystemClock()), server)
    async with http_upstream(wire) as made:
        assert isinstance(made, upstream)
