"""Which carrier is whose."""

import pytest

from kinference.runtime.clock import SystemClock
from kinference.runtime.wires import Wire, http_server, http_upstream, rpc_server
from kinference.wire.aiohttp_server import AiohttpServer
from kinference.wire.aiohttp_upstream import AiohttpUpstream
from kinference.wire.exchange import Exchange
from kinference.wire.grpc_server import GrpcServer
from kinference.wire.grpc_session import GrpcLimits
from kinference.wire.grpcio_server import GrpcioServer
from kinference.wire.http1.upstream import Http1Upstream
from kinference.wire.http_server import OwnHttpServer
from kinference.wire.server_options import HttpServerOptions


async def nobody(_exchange: Exchange) -> None:
    return


@pytest.mark.parametrize(
    ("wire", "server", "upstream", "rpc"),
    [
        (Wire.OWN, OwnHttpServer, Http1Upstream, GrpcServer),
        (Wire.GRPCIO, AiohttpServer, AiohttpUpstream, GrpcioServer),
    ],
)
async def test_each_wire_has_its_carriers(wire: Wire, server: type, upstream: type, rpc: type) -> None:
    assert isinstance(http_server(wire, nobody, SystemClock(), HttpServerOptions()), server)
    async with http_upstream(wire) as made:
        assert isinstance(made, upstream)
    rpc_made = rpc_server(wire, "127.0.0.1:0", [], GrpcLimits())
    assert isinstance(rpc_made, rpc)
    await rpc_made.drain(0)
