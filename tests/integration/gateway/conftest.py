"""Every test of the gateway runs on each of the carriers."""

from contextlib import AbstractAsyncContextManager

import pytest

from kinference.gateway.options import GatewayOptions
from kinference.vocabulary import Api
from kinference.wire.aiohttp_server import AiohttpServer
from kinference.wire.aiohttp_upstream import AiohttpUpstream
from kinference.wire.http1.upstream import Http1Upstream
from kinference.wire.http_server import OwnHttpServer
from tests.integration.gateway.harness import Carrier, MakeGateway, Rig, gateway_on

LIBRARY, OWN = Carrier(AiohttpServer, AiohttpUpstream), Carrier(OwnHttpServer, Http1Upstream)


@pytest.fixture(params=[LIBRARY, OWN], ids=["aiohttp", "own"])
def gateway(request: pytest.FixtureRequest) -> MakeGateway:
    carrier = request.param
    assert isinstance(carrier, Carrier)

    def make(
        *engines: int, provider: tuple[int, Api] | None = None, options: GatewayOptions | None = None
    ) -> AbstractAsyncContextManager[Rig]:
        return gateway_on(carrier, engines, provider, options)

    return make
