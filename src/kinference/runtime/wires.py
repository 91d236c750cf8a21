"""Which code carries the planes: our own, or the libraries that it is held against."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from enum import Enum
from typing import TypeAlias

from kinference.ports import Clock, Upstream
from kinference.wire.aiohttp_server import AiohttpServer
from kinference.wire.aiohttp_upstream import AiohttpUpstream
from kinference.wire.exchange import Handler, HttpServer
from kinference.wire.grpc_server import GrpcServer
from kinference.wire.grpc_session import GrpcLimits
from kinference.wire.grpcio_server import GrpcioLimits, GrpcioServer
from kinference.wire.http1.upstream import Http1Upstream
from kinference.wire.http_server import OwnHttpServer
from kinference.wire.rpc import RpcService
from kinference.wire.server_options import HttpServerOptions
from kinference.wire.tls import ServerTls

RpcServer: TypeAlias = GrpcServer | GrpcioServer


class Wire(Enum):
    """The carriers of one process."""

    OWN = "own"
    GRPCIO = "grpcio"
    """And aiohttp, for what is HTTP."""


def http_server(
    wire: Wire, handler: Handler, clock: Clock, options: HttpServerOptions, tls: ServerTls | None = None
) -> HttpServer:
    """A server for one port; the libraries' has no TLS."""
    if wire is Wire.OWN:
        return OwnHttpServer(handler, clock, options, tls)
    return AiohttpServer(handler, clock, options)


def http_upstream(wire: Wire) -> AbstractAsyncContextManager[Upstream]:
    """The connections to destinations; called inside a running event loop."""
    return Http1Upstream() if wire is Wire.OWN else AiohttpUpstream()


def rpc_server(
    wire: Wire, address: str, services: Sequence[RpcService], limits: GrpcLimits, tls: ServerTls | None = None
) -> RpcServer:
    """A gRPC server for one address; the library's has no TLS, and keeps those limits that it knows."""
    if wire is Wire.OWN:
        return GrpcServer(address, services, limits, tls)
    known = GrpcioLimits(limits.chunk_bytes_max, limits.http2.streams_max, limits.http2.header_list_bytes_max)
    return GrpcioServer(address, services, known)
