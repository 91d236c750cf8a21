"""One connection of our gRPC server: an asyncio protocol between the HTTP/2 connection and the calls on it.

A handler of an inline service is stepped by hand: it begins once all frames of a read are known, by when a unary
call's message is there, and mostly ends in that one step; only one that has to wait is kept. What handlers write is
collected and leaves in one piece at the end of the read, or of the turn of the loop.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from kinference.errors import ClientGone
from kinference.ids import Seconds
from kinference.wire.grpc import (
    PREFIX_BYTES,
    RESET_CODES,
    RESPONSE,
    CallHead,
    prefix,
    read_head,
    refusal_head,
    trailers,
)
from kinference.wire.grpc_call import GrpcCall, Method
from kinference.wire.http2.connection import Http2Connection
from kinference.wire.http2.events import (
    ConnectionEnded,
    DataReceived,
    PingAcknowledged,
    RequestReceived,
    StreamDrained,
    StreamReset,
)
from kinference.wire.http2.frames import ErrorCode
from kinference.wire.http2.guard import Http2Limits
from kinference.wire.rpc import RpcError, Status

logger = logging.getLogger(__name__)

OK = Status.OK
"""By a name of its own: reaching the member of an enumeration costs ten times as much."""

REFUSAL_GRACE: Seconds = 0.005
"""A call that is refused by its head is told so a little later. A grpcio client that learns of it amid its first write
loses the status, and shows an internal error instead."""


@dataclass(frozen=True, slots=True)
class GrpcLimits:
    """What one server takes in before it refuses."""

    chunk_bytes_max: int = 1_048_576
    """Of what a message carries; its own framing is let pass."""
    connections_max: int = 4_096
    handshake_timeout: Seconds = 10.0
    keepalive: Seconds = 30.0
    """A connection silent for so long is pinged; one that is silent for as long again is closed."""
    http2: Http2Limits = field(default_factory=Http2Limits)

    @property
    def message_bytes_max(self) -> int:
        return self.chunk_bytes_max + 4  # one byte of tag, three of length

    @property
    def connection(self) -> Http2Limits:
        """The connection's own limits, with windows that the largest message fits into."""
        least = self.message_bytes_max + PREFIX_BYTES + self.http2.credit_bytes
        return replace(self.http2, stream_window=max(self.http2.stream_window, least))


class Host:
    """What the connections of one server share."""

    def __init__(self, methods: Mapping[str, Method], limits: GrpcLimits) -> None:
        self.methods, self.limits = methods, limits
        self.sessions: set[GrpcSession] = set()
        self.is_draining = False
        self.idle = asyncio.Event()
        self.idle.set()
        self._running = 0

    def begun(self) -> None:
        """A call that a drain waits for has begun."""
        self._running += 1
        if self._running == 1:
            self.idle.clear()

    def ended(self) -> None:
        """Such a call has ended."""
        self._running -= 1
        if self._running == 0:
            self.idle.set()


class GrpcSession(asyncio.Protocol):
    """The calls of one connection (`grpc_call.Carrier`)."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._loop = asyncio.get_running_loop()
        self._now = self._loop.time
        self._connection: Http2Connection[CallHead] = Http2Connection(read_head, host.limits.connection, self._now())
        self._message_bytes_max = host.limits.message_bytes_max
        self._transport: asyncio.Transport | None = None
        self._calls: dict[int, GrpcCall] = {}
        self._fresh: list[GrpcCall] = []
        self._is_collecting = self._is_paused = self._is_asked = self._was_heard = False
        self._alarm: asyncio.TimerHandle | None = None
        self._actions: dict[type, Callable[[Any], None]] = {
            RequestReceived: self._on_request,
            DataReceived: self._on_data,
            StreamReset: self._on_reset,
            StreamDrained: self._on_drained,
            PingAcknowledged: self._on_ping_acknowledged,
            ConnectionEnded: self._on_connection_ended,
        }

    # --- the transport's side --------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)  # uvloop's is none by its class
        tls = transport.get_extra_info("ssl_object")
        if len(self._host.sessions) >= self._host.limits.connections_max or (
            tls and tls.selected_alpn_protocol() != "h2"
        ):
            transport.abort()
            return
        self._host.sessions.add(self)
        transport.set_write_buffer_limits(self._host.limits.http2.output_bytes_max)
        self._alarm = self._loop.call_later(self._host.limits.handshake_timeout, self._check_alive)
        self._flush()

    def data_received(self, data: bytes) -> None:
        self._was_heard = self._is_collecting = True
        actions = self._actions
        for event in self._connection.feed(data, self._now()):
            actions[type(event)](event)
        if self._fresh:
            fresh, self._fresh = self._fresh, []
            for call in fresh:
                self._start(call)
        self._is_collecting = False
        self._flush()

    def pause_writing(self) -> None:
        self._is_paused = True
        self._connection.pause()

    def resume_writing(self) -> None:
        self._is_paused = False
        self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - however it was lost, it is
        self._transport = None
        if self._alarm is not None:
            self._alarm.cancel()
        self.stop_calls()
        self._host.sessions.discard(self)

    def _go_on(self) -> None:
        """Let streams that wait send on."""
        for event in self._connection.resume():
            self._actions[type(event)](event)
        self._flush()

    def _flush(self) -> None:
        """Write what has been collected. One that does not read is not written to; the connection bounds the rest."""
        self._is_collecting = False
        transport, connection = self._transport, self._connection
        if transport is None or self._is_paused:
            return
        output = connection.take_output()
        if output:
            transport.write(output)
        if connection.has_turns:
            self._loop.call_soon(self._go_on)

    def _flush_soon(self) -> None:
        if not self._is_collecting:
            self._is_collecting = True
            self._loop.call_soon(self._flush)

    def _check_alive(self) -> None:
        if self._transport is None:
            return
        is_late = not self._was_heard and (self._is_asked or not self._connection.is_settled)
        if is_late or self._connection.is_closed:  # a peer that takes no goodbye must not hold the connection
            self._transport.abort()
            return
        self._is_asked = not self._was_heard
        if self._is_asked:
            self._connection.ping()
            self._flush_soon()
        self._was_heard = False
        self._alarm = self._loop.call_later(self._host.limits.keepalive, self._check_alive)

    # --- events ----------------------------------------------------------------------------------

    def _on_request(self, event: RequestReceived[CallHead]) -> None:
        head, stream_id = event.head, event.stream_id
        method = self._host.methods.get(head.path)
        if head.refusal is not None:
            refusal = head.refusal
            self._refuse(stream_id, refusal.status, refusal.message, refusal.http_status)
        elif method is None:
            self._refuse(stream_id, Status.UNIMPLEMENTED, "no such method is served here")
        elif self._host.is_draining and method.is_counted:
            self._refuse(stream_id, Status.UNAVAILABLE, "the server is shutting down")
        else:
            call = GrpcCall(self, stream_id, head, method, self._message_bytes_max)
            call.half_closed = event.ended
            self._calls[stream_id] = call
            self._fresh.append(call)

    def _on_data(self, event: DataReceived) -> None:
        call = self._calls.get(event.stream_id)
        if call is not None:
            call.take(event.data, ended=event.ended)

    def _on_reset(self, event: StreamReset) -> None:
        call = self._calls.get(event.stream_id)
        if call is not None:
            self._stop(call)

    def _on_drained(self, event: StreamDrained) -> None:
        call = self._calls.get(event.stream_id)
        if call is not None:
            call.drained = True
            self._wake(call)

    def _on_ping_acknowledged(self, _event: PingAcknowledged) -> None:
        """That the peer was heard is noted for whatever it sends."""

    def _on_connection_ended(self, event: ConnectionEnded) -> None:
        logger.info("closing a connection: %s", event.message, extra={"code": event.code})
        self.close()

    def _refuse(self, stream_id: int, status: Status, message: str, http_status: int = 200) -> None:
        self._connection.send_trailers(stream_id, refusal_head(http_status) + trailers(status, message))

    # --- handlers --------------------------------------------------------------------------------

    def _start(self, call: GrpcCall) -> None:
        if call.stream_id not in self._calls:
            return  # reset in the very read that opened it
        method = call.method
        if method.is_counted:
            self._host.begun()
        if method.service.inline:
            call.routine = method.handler(call)
            self._step(call)
        else:
            call.task = asyncio.create_task(self._run(call))
        if call.head.timeout is not None and call.stream_id in self._calls:
            call.deadline = self._loop.call_later(call.head.timeout, self._expire, call)

    def _step(self, call: GrpcCall, thrown: BaseException | None = None) -> None:
        """Run an inline handler until it waits or ends."""
        assert call.routine is not None, "only an inline handler is stepped"
        try:
            if thrown is None:
                call.routine.send(None)
            else:
                call.routine.throw(thrown)
        except StopIteration:
            self._end(call, OK, "")
        except asyncio.CancelledError:
            self._end(call, Status.CANCELLED, "")
        except Exception as error:  # noqa: BLE001 - task root: one broken call must not touch the others
            self._fail(call, error)

    async def _run(self, call: GrpcCall) -> None:
        """Run a handler that has a task of its own."""
        try:
            await call.method.handler(call)
        except asyncio.CancelledError:
            self._end(call, Status.CANCELLED, "")
        except Exception as error:  # noqa: BLE001 - task root: one broken call must not touch the others
            self._fail(call, error)
        else:
            self._end(call, OK, "")

    def _fail(self, call: GrpcCall, error: Exception) -> None:
        if isinstance(error, RpcError):
            self._end(call, error.status, error.message)
        elif isinstance(error, ClientGone):
            self._end(call, Status.CANCELLED, "")
        else:
            logger.error("the handler of %s failed", call.method.name, exc_info=error)
            self._end(call, Status.INTERNAL, "internal error")

    def _end(self, call: GrpcCall, status: Status, message: str) -> None:
        """A handler has ended, and its call with it."""
        if status is OK or call.was_fed or call.half_closed:
            self._answer(call, status, message)
        else:
            self._loop.call_later(REFUSAL_GRACE, self._answer, call, status, message)
        del self._calls[call.stream_id]
        if call.deadline is not None:
            call.deadline.cancel()
        if call.method.is_counted:
            self._host.ended()

    def _answer(self, call: GrpcCall, status: Status, message: str) -> None:
        """End the answer, if it has not ended and the caller is there. One cut within a message can only be reset."""
        connection, stream_id = self._connection, call.stream_id
        if not connection.is_sendable(stream_id):
            return
        if not call.drained:
            connection.reset(stream_id, RESET_CODES.get(status, ErrorCode.CANCEL))
        elif call.has_answered:
            connection.send_trailers(stream_id, trailers(status, message))
        else:
            connection.send_trailers(stream_id, RESPONSE + trailers(status, message))
        self._flush_soon()

    def _expire(self, call: GrpcCall) -> None:
        self._answer(call, Status.DEADLINE_EXCEEDED, "the caller's deadline has passed")
        self._stop(call)

    def _stop(self, call: GrpcCall) -> None:
        """Cancel a handler whose call is over."""
        if call.task is not None:
            call.task.cancel()
        elif call.routine is None:
            del self._calls[call.stream_id]
        elif call.is_waiting:
            self._step(call, asyncio.CancelledError())

    def stop_calls(self) -> None:
        """Cancel all handlers."""
        for call in tuple(self._calls.values()):
            self._stop(call)

    # --- the server's side -----------------------------------------------------------------------

    def announce_end(self) -> None:
        """Ask the peer to open no more calls."""
        self._connection.announce_end()
        self._flush_soon()

    def close(self) -> None:
        """Cancel what runs and close the connection."""
        for call in tuple(self._calls.values()):
            self._answer(call, Status.UNAVAILABLE, "the connection is closing")
        self.stop_calls()
        self._connection.close()
        self._flush()
        if self._transport is not None:
            self._transport.close()

    # --- the calls' side (Carrier) ---------------------------------------------------------------

    def taken(self, stream_id: int, size: int) -> None:
        self._connection.consume(stream_id, size)
        self._flush_soon()

    def send_message(self, call: GrpcCall, message: bytes) -> bool:
        connection, stream_id = self._connection, call.stream_id
        if not connection.is_sendable(stream_id):
            raise ClientGone("the caller is gone")
        if not call.has_answered:
            call.has_answered = True
            connection.send_headers(stream_id, RESPONSE)
        self._flush_soon()
        return connection.send_data(stream_id, message, prefix(message))

    def advance(self, call: GrpcCall) -> None:
        if call.task is None:
            self._step(call)
        elif call.waiter is not None and not call.waiter.done():
            call.waiter.set_result(None)

    def wake_later(self, call: GrpcCall) -> None:
        self._loop.call_soon(self._wake, call)

    def wake_after(self, delay: Seconds, call: GrpcCall) -> asyncio.TimerHandle:
        return self._loop.call_later(delay, self._time_out, call)

    def _time_out(self, call: GrpcCall) -> None:
        call.timed_out = True
        self._wake(call)

    def _wake(self, call: GrpcCall) -> None:
        if call.is_waiting:
            self.advance(call)
