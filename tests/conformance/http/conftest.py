"""The HTTP carriers under test: the same must be seen of each, on the event loops that they run on."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import uvloop

from kinference.ports import Upstream
from kinference.wire.aiohttp_server import AiohttpServer
from kinference.wire.aiohttp_upstream import AiohttpUpstream
from kinference.wire.exchange import Handler
from kinference.wire.http1.upstream import Http1Upstream
from kinference.wire.http_server import OwnHttpServer
from kinference.wire.server_options import HttpServerOptions
from tests.conformance.http.carriers import Carrier, HttpServer, RealClock, Serving

LIBRARY = Carrier(AiohttpServer, AiohttpUpstream)
OWN = Carrier(OwnHttpServer, Http1Upstream)


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Both loops: their transports differ in more than speed."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(params=[LIBRARY, OWN], ids=["aiohttp", "own"])
def carrier(request: pytest.FixtureRequest) -> Carrier:
    assert isinstance(request.param, Carrier)
    return request.param


@pytest.fixture
def make_server(carrier: Carrier) -> Callable[[Handler], HttpServer]:
    return lambda handler: carrier.server(handler, RealClock(), None)


@pytest.fixture
def serving(carrier: Carrier) -> Serving:
    @asynccontextmanager
    async def serve(handler: Handler, options: HttpServerOptions | None = None) -> AsyncIterator[int]:
        server = carrier.server(handler, RealClock(), options)
        port = await server.start("127.0.0.1", 0)
        try:
            yield port
        finally:
            await server.close()

    return serve


@pytest.fixture
async def upstream(carrier: Carrier) -> AsyncIterator[Upstream]:
    async with carrier.upstream() as made:
        yield made
