"""The gRPC carrier on grpcio: serves the services of `wire.rpc` with health and reflection beside them.

grpcio delivers a reset stream, and one that sent too large a message, as a clean end of the messages. What tells them
apart is the reply: writing it fails. So every method, unary ones too, is registered as a stream of raw messages both
ways, which is the same on the wire, and a handler learns from `send` whether its caller is still there.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from kinference.errors import ClientGone
from kinference.ids import Seconds
from kinference.wire.patience import Patience
from kinference.wire.rpc import RpcError, RpcHandler, RpcService, Status

logger = logging.getLogger(__name__)

_FRAMING_BYTES = 4
"""What a message adds to the largest chunk it carries: one byte of tag, three of length."""

_LAST_BYTES: Seconds = 0.1
"""For statuses already sent to leave the process. A health watch never ends by itself, and gets no longer than this."""

_CODES = {code.value[0]: code for code in grpc.StatusCode}

_Context: TypeAlias = grpc.aio.ServicerContext[bytes, bytes]
_Behaviour: TypeAlias = Callable[[object, _Context], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class GrpcioLimits:
    """What one server takes in before it refuses."""

    chunk_bytes_max: int = 1_048_576
    streams_max: int = 16_384  # on one connection; further calls wait at the caller
    header_bytes_max: int = 16_384
    pending_max: int = 131_072  # accepted by the core and not yet seen by us, over all connections


class GrpcioServer:
    """Listens on one address. `start` binds, `drain` ends; between them handlers run, each in its own task."""

    def __init__(self, address: str, services: Sequence[RpcService], limits: GrpcioLimits | None = None) -> None:
        self._address = address
        self._services = services
        self._server = grpc.aio.server(options=_options(limits or GrpcioLimits()))
        self._health = health.aio.HealthServicer()
        self._draining = False
        self._stopping = asyncio.Lock()  # grpcio crashes the process when it is stopped twice at once
        self._calls = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def start(self) -> int:
        """Bind and serve. Returns the port, which is the system's choice where the address says 0."""
        for service in self._services:
            self._register(service)
            await self._health.set(service.name, health_pb2.HealthCheckResponse.SERVING)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        names = [service.name for service in self._services]
        reflection.enable_server_reflection([*names, health.SERVICE_NAME, reflection.SERVICE_NAME], self._server)
        try:
            port = self._server.add_insecure_port(self._address)
        except RuntimeError as error:
            raise OSError(
                f"cannot listen on {self._address}: the port is in use, or the address is not one of this machine"
            ) from error
        await self._server.start()
        return port

    async def stop_advertising(self) -> None:
        """Answer health checks with NOT_SERVING and go on serving, so that requests under way can finish."""
        await self._health.enter_graceful_shutdown()

    async def drain(self, timeout: Seconds) -> None:
        """Refuse new calls, give the running ones `timeout` to end, cancel what is left, close the port."""
        await self.stop_advertising()
        self._draining = True
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._idle.wait()
        async with self._stopping:
            await self._server.stop(_LAST_BYTES)
        await self._idle.wait()  # grpcio does not wait for the handlers that it cancels

    def _register(self, service: RpcService) -> None:
        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            name: grpc.stream_stream_rpc_method_handler(self._behaviour(f"{service.name}/{name}", handler))
            for name, handler in service.methods.items()
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.name, handlers),))

    def _behaviour(self, name: str, handler: RpcHandler) -> _Behaviour:
        async def serve(_messages: object, context: _Context) -> None:
            if self._draining:
                await _abort(context, Status.UNAVAILABLE, "the server is shutting down")
            self._calls += 1
            self._idle.clear()
            context.add_done_callback(self._call_ended)  # type: ignore[arg-type] # the stub asks for a class of its own
            await _run(name, handler, context)

        return serve

    def _call_ended(self, _context: object) -> None:
        self._calls -= 1
        if self._calls == 0:
            self._idle.set()


class _GrpcioCall:
    """One call as its handler sees it (`wire.rpc.Call`)."""

    def __init__(self, context: _Context) -> None:
        self._context = context
        self._patience: asyncio.Timeout | None = None
        self._is_cut = False
        self._woken = asyncio.Event()
        self._told: list[tuple[str, str]] = []

    @property
    def metadata(self) -> Sequence[tuple[str, str | bytes]]:
        return tuple((key, value) for key, value in self._context.invocation_metadata() or ())

    @property
    def peer_names(self) -> Sequence[str]:
        return ()  # this carrier has no TLS

    async def receive(self, timeout: Seconds | None = None) -> bytes | None:
        try:
            async with asyncio.timeout(None) if timeout is None else Patience(timeout):
                message: object = await self._context.read()
        except grpc.aio.BaseError as error:
            raise ClientGone("the caller is gone") from error
        return message if isinstance(message, bytes) else None  # grpcio's end of messages is an object of its own

    async def send(self, message: bytes) -> None:
        try:
            async with asyncio.timeout(0 if self._is_cut else None) as self._patience:
                await self._context.write(message)
        except (grpc.aio.BaseError, TimeoutError) as error:
            raise ClientGone("the caller is gone") from error
        finally:
            self._patience = None

    def tell(self, name: str, value: str) -> None:
        self._told.append((name, value))
        self._context.set_trailing_metadata(tuple(self._told))

    def takes(self, message: bytes) -> bool:  # noqa: ARG002 - grpcio does not tell
        return False

    async def rest(self) -> None:
        await self._woken.wait()
        self._woken.clear()

    def wake(self) -> None:
        self._woken.set()

    def cut(self) -> None:
        self._is_cut = True
        if self._patience is not None:
            self._patience.reschedule(0)


async def _run(name: str, handler: RpcHandler, context: _Context) -> None:
    """Run a handler and end its call: with OK when it returns, else with the status of what it raised."""
    try:
        await handler(_GrpcioCall(context))
    except RpcError as error:
        await _abort(context, error.status, error.message)
    except ClientGone:
        raise asyncio.CancelledError from None  # nobody is left to tell; grpcio then sends nothing
    except Exception:  # task root: one broken call must not touch the others
        logger.exception("the handler of %s failed", name)
        await _abort(context, Status.INTERNAL, "internal error")


async def _abort(context: _Context, status: Status, message: str) -> None:
    try:
        await context.abort(_CODES[status], message)
    except grpc.aio.InternalError:
        raise asyncio.CancelledError from None  # the caller went away before it could be told


def _options(limits: GrpcioLimits) -> list[tuple[str, int]]:
    """Channel arguments. Compression is left off: grpcio would compress for callers that cannot undo it."""
    return [
        ("grpc.so_reuseport", 0),  # else a second server binds the same port, and takes half of the connections
        ("grpc.max_receive_message_length", limits.chunk_bytes_max + _FRAMING_BYTES),
        ("grpc.max_concurrent_streams", limits.streams_max),
        ("grpc.max_metadata_size", limits.header_bytes_max),  # beyond it some are refused, at random, and told so
        ("grpc.absolute_max_metadata_size", limits.header_bytes_max),
        ("grpc.server.max_pending_requests", limits.pending_max),  # by default a burst of thousands is cut
        ("grpc.server.max_pending_requests_hard_limit", limits.pending_max),
        ("grpc.keepalive_time_ms", 60_000),  # finds peers that vanished without closing
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),  # callers keep one connection open and may ping it
    ]
