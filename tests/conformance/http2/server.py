"""The services that the cases call, on our own carrier."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kinference.wire.grpc_server import GrpcServer
from kinference.wire.grpc_session import GrpcLimits
from kinference.wire.http2.guard import Http2Limits
from kinference.wire.rpc import Call, RpcService

STREAMS_MAX = 100
SOURCE_BYTES = 100_000
CHUNK_MAX = 65_536
LIMITS = GrpcLimits(CHUNK_MAX, http2=Http2Limits(streams_max=STREAMS_MAX, stream_window=131_072))


async def echo(call: Call) -> None:
    """Every message back."""
    while (message := await call.receive()) is not None:
        await call.send(message)


async def hold(call: Call) -> None:
    """Never answers."""
    await asyncio.Event().wait()


async def source(call: Call) -> None:
    """One long message, whatever was asked."""
    await call.send(bytes(SOURCE_BYTES))


@asynccontextmanager
async def table_server(limits: GrpcLimits = LIMITS) -> AsyncIterator[int]:
    """Its port."""
    services = [
        RpcService("table.Echo", {"Echo": echo}, inline=True),
        RpcService("table.Hold", {"Hold": hold}),
        RpcService("table.Source", {"Source": source}),
    ]
    server = GrpcServer("127.0.0.1:0", services, limits)
    try:
        yield await server.start()
    finally:
        await server.drain(0)
