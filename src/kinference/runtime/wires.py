"""Which code carries the planes: our own, or the libraries that it is held against."""

from contextlib import AbstractAsyncContextManager
from enum import Enum

from kinference.ports import Clock, Upstream
from kinference.wire.aiohttp_server import AiohttpServer
from kinference.wire.aiohttp_upstream import AiohttpUpstream
from kinference.wire.exchange import Handler, HttpServer
from kinference.wire.http1.server import Http1Server
from kinference.wire.http1.upstream import Http1Upstream


class Wire(Enum):
    """The carriers of one process."""

    OWN = "own"
    LIBRARY = "library"


def http_server(wire: Wire, handler: Handler, clock: Clock) -> HttpServer:
    """A server for one port."""
    return Http1Server(handler, clock) if wire is Wire.OWN else AiohttpServer(handler, clock)


def http_upstream(wire: Wire) -> AbstractAsyncContextManager[Upstream]:
    """The connections to destinations; called inside a running event loop."""
    return Http1Upstream() if wire is Wire.OWN else AiohttpUpstream()
