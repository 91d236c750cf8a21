"""One connection of our gRPC server: an asyncio protocol between the HTTP/2 connection and the calls on it.

A call begins once all frames of a read are known, by when a unary one's message is there: mostly it is answered by a
plain function then. So it is where a read has cut the request and the very next one brings the rest. The handler of an
inline service is stepped by hand otherwise, and only kept if it has to wait.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from kinference.errors import ClientGone
from kinference.ids import Seconds
from kinference.wire.alarm import Alarm
from kinference.wire.connections import Connections, Tally, peer_of
from kinference.wire.grpc import (
    ANSWER,
    PREFIX_BYTES,
    RESET_CODES,
    RESPONSE,
    CallHead,
    Refusal,
    prefix,
    read_head,
    read_on,
    refusal_head,
    trailers,
    whole_message,
)
from kinference.wire.grpc_call import GrpcCall, Method
from kinference.wire.grpc_waits import drained, run
from kinference.wire.http2.events import (
    DataReceived,
    RequestReceived,
    StreamDrained,
    StreamReset,
)
from kinference.wire.http2.frames import ErrorCode
from kinference.wire.http2.guard import Http2Limits
from kinference.wire.http2.session import Http2Session, SessionLimits
from kinference.wire.rpc import RpcError, RpcReply, Status
from kinference.wire.turn import Turn

logger: Final = logging.getLogger(__name__)

OK: Final = Status.OK
"""By a name of its own: reaching the member of an enumeration costs ten times as much."""

REFUSAL_GRACE: Final[Seconds] = 0.005
"""A call that is refused by its head is told so a little later. A grpcio client that learns of it amid its first write
loses the status, and shows an internal error instead."""


@dataclass(frozen=True, slots=True)
class GrpcLimits:
    """What one server takes in before it refuses."""

    chunk_bytes_max: int = 1_048_576
    """Of what a message carries; its own framing is let pass."""
    connections_max: int = 16_384
    connections_per_peer_max: int = 4_096
    handshake_timeout: Seconds = 10.0
    keepalive: Seconds = 30.0
    """A connection silent for so long is pinged; one that is silent for as long again is closed."""
    http2: Http2Limits = field(default_factory=Http2Limits)
    tally: Tally = field(default_factory=Tally, compare=False)
    """Where the connections are counted."""

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
        self.sessions: Connections[GrpcSession] = Connections(
            limits.connections_max, limits.connections_per_peer_max, limits.tally
        )
        self.turn = Turn()
        self.is_draining = False
        self.is_closed = False
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


class GrpcSession(Http2Session[CallHead]):
    """The calls of one connection (`grpc_call.Carrier`)."""

    def __init__(self, host: Host) -> None:
        limits = host.limits
        patience = SessionLimits(limits.handshake_timeout, limits.keepalive, limits.connection)
        super().__init__(read_head, patience, host.turn, read_on)
        self._host = host
        self._message_bytes_max = limits.message_bytes_max
        self._calls: dict[int, GrpcCall] = {}
        self._fresh: list[GrpcCall] = []
        self._actions |= {
            RequestReceived: self._on_request,
            DataReceived: self._on_data,
            StreamReset: self._on_reset,
            StreamDrained: self._on_drained,
        }

    # --- the connection's life (Http2Session) ----------------------------------------------------

    def _admits(self, transport: asyncio.Transport) -> bool:
        tls, peer = transport.get_extra_info("ssl_object"), peer_of(transport)
        if (
            self._host.is_closed
            or not self._host.sessions.admits(peer)
            or (tls and tls.selected_alpn_protocol() != "h2")
        ):
            return False
        self._host.sessions.add(self, peer)
        return True

    def _begin_streams(self) -> None:
        if self._fresh:
            fresh, self._fresh = self._fresh, []
            for call in fresh:
                if call.method.reply is not None and call.may_be_one_message and not call.was_put_off:
                    self._put_off(call)
                else:
                    self._start(call)

    def _put_off(self, call: GrpcCall) -> None:
        """Let a call wait for the rest of its request for one more read, or two turns of the loop."""
        if call.stream_id not in self._calls:
            return
        if not self._fresh:
            self._loop.call_soon(self._loop.call_soon, self._begin_streams)
        self._fresh.append(call)
        self._keep(call)
        call.was_put_off = True

    def _is_awaited(self) -> bool:
        return any(call.is_waiting for call in self._calls.values())

    def _end_streams(self) -> None:
        self.stop_calls()
        self._host.sessions.discard(self)

    # --- events ----------------------------------------------------------------------------------

    def _on_request(self, event: RequestReceived[CallHead]) -> None:
        head, stream_id, data = event.head, event.stream_id, event.data
        host = self._host
        method = host.methods.get(head.path)
        if method is None or head.refusal is not None or (host.is_draining and method.is_counted):
            self._answers.open(stream_id)
            self._refuse(stream_id, self._why_not(head, method))
            return
        limit = self._message_bytes_max
        call = GrpcCall(self, stream_id, head, method, limit, None, event.ended)  # by place: names cost as much again
        if data:
            message = whole_message(data, limit)
            if message is not None and method.reply is not None and stream_id in self._answers.unopened:
                self._reply(call, method.reply, message)  # the hot path
                return
            call.half_closed = False
            call.take(data, ended=True)
        self._answers.open(stream_id)
        self._calls[stream_id] = call
        self._fresh.append(call)

    def _why_not(self, head: CallHead, method: Method | None) -> Refusal:
        if head.refusal is not None:
            return head.refusal
        if method is None:
            return Refusal(Status.UNIMPLEMENTED, "no such method is served here")
        return Refusal(Status.UNAVAILABLE, "the server is shutting down")

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

    def _refuse(self, stream_id: int, why: Refusal) -> None:
        if self._answers.is_sendable(stream_id):  # not taken back in the very read that brought it
            block = refusal_head(why.http_status) + trailers(why.status, why.message)
            self._answers.send_trailers(stream_id, block)

    # --- handlers --------------------------------------------------------------------------------

    def _start(self, call: GrpcCall) -> None:
        if call.stream_id not in self._calls:
            return  # reset in the very read that opened it
        method, inbox = call.method, call.inbox
        if method.reply is not None and call.half_closed and call.failure is None and (not inbox or len(inbox) == 1):
            self._forget(call)
            self._reply(call, method.reply, inbox.pop() if inbox else None)
            return
        if method.service.inline:
            call.routine = method.handler(call)
            self._step(call)
        else:
            call.task = asyncio.create_task(run(method.handler, call, self._ended))
            call.task.add_done_callback(lambda _task: self._end_unbegun(call))
        self._keep(call)

    def _keep(self, call: GrpcCall) -> None:
        """A call that may not have ended as it began. Most do, and never need what costs something here."""
        if call.stream_id not in self._calls or call.was_put_off:
            return
        if call.method.is_counted:
            call.is_counted = True
            self._host.begun()
        if call.head.timeout is not None:
            call.deadline = self._loop.call_later(call.head.timeout, self._expire, call)

    def _reply(self, call: GrpcCall, reply: RpcReply, message: bytes | None) -> None:
        """Answer a call whose request is all there. It is only kept as a call if more has to be done."""
        answers = self._answers
        try:
            answer = reply(message, call)
            if (
                isinstance(answer, bytes)
                and not call.told
                and (
                    answers.send_answer(call.stream_id, ANSWER, answer)
                    or (self._makes_room() and answers.send_answer(call.stream_id, ANSWER, answer))
                )
            ):
                return
            self._open(call)
            if isinstance(answer, bytes):
                call.drained = self.send_message(call, answer)
                self._end(call, OK, "")
            else:
                call.routine = answer
                self._step(call)
        except Exception as error:  # noqa: BLE001 - task root: one broken call must not touch the others
            self._open(call)
            self._ended(call, error)
        self._keep(call)

    def _open(self, call: GrpcCall) -> None:
        self._answers.open(call.stream_id)
        self._calls[call.stream_id] = call

    def _step(self, call: GrpcCall, thrown: type[BaseException] | None = None) -> None:
        """Run an inline handler until it waits or ends.

        What is thrown is made as it is: a name would hold this frame, and it the call, until the collector comes.
        """
        assert call.routine is not None, "only an inline handler is stepped"
        try:
            if thrown is None:
                call.routine.send(None)
            else:
                call.routine.throw(thrown)
        except StopIteration:
            self._end(call, OK, "")
        except (asyncio.CancelledError, Exception) as error:  # noqa: BLE001 - task root: one broken call must not touch the others
            self._ended(call, error)

    def _end_unbegun(self, call: GrpcCall) -> None:
        """End a call whose task was cancelled before its first step, and so never came to end it."""
        if call.stream_id in self._calls:
            self._end(call, Status.CANCELLED, "")

    def _ended(self, call: GrpcCall, error: BaseException | None) -> None:
        """A handler has come to its end, or raised."""
        if error is None:
            self._end(call, OK, "")
        elif isinstance(error, RpcError):
            self._end(call, error.status, error.message)
        elif isinstance(error, asyncio.CancelledError | ClientGone):
            self._end(call, Status.CANCELLED, "")
        else:
            logger.error("the handler of %s failed", call.method.name, exc_info=error)
            self._end(call, Status.INTERNAL, "internal error")

    def _end(self, call: GrpcCall, status: Status, message: str) -> None:
        """A handler has ended, and its call with it."""
        if status is OK and not call.drained:  # others have used up the window meanwhile
            call.routine = drained(call)
            self._step(call)
            return
        if status is OK or call.was_fed or call.half_closed:
            self._answer(call, status, message)
        else:
            self._loop.call_later(REFUSAL_GRACE, self._answer, call, status, message)
        self._forget(call)

    def _forget(self, call: GrpcCall) -> None:
        del self._calls[call.stream_id]
        call.failure = None  # what was raised holds the frames that it passed, and they the call
        call.was_put_off = False
        if call.deadline is not None:
            call.deadline.cancel()
        if call.is_counted:
            call.is_counted = False
            self._host.ended()

    def _answer(self, call: GrpcCall, status: Status, message: str) -> None:
        """End the answer, if it has not ended and the caller is there. One cut within a message can only be reset."""
        answers, stream_id = self._answers, call.stream_id
        if not answers.is_sendable(stream_id):
            return
        if not call.drained:
            answers.reset(stream_id, RESET_CODES.get(status, ErrorCode.CANCEL))
        elif call.has_answered:
            answers.send_trailers(stream_id, trailers(status, message))
        else:
            answers.send_trailers(stream_id, RESPONSE + trailers(status, message))
        self._flush_soon()

    def _expire(self, call: GrpcCall) -> None:
        self._answer(call, Status.DEADLINE_EXCEEDED, "the caller's deadline has passed")
        self._stop(call)

    def _stop(self, call: GrpcCall) -> None:
        """Cancel a handler whose call is over."""
        if call.task is not None:
            call.task.cancel()
        elif call.routine is None:
            self._forget(call)
        elif call.is_waiting:
            self._step(call, asyncio.CancelledError)

    def stop_calls(self) -> None:
        """Cancel all handlers."""
        for call in tuple(self._calls.values()):
            self._stop(call)

    # --- the server's side -----------------------------------------------------------------------

    def close(self) -> None:
        """Cancel what runs and close the connection."""
        for call in tuple(self._calls.values()):
            self._answer(call, Status.UNAVAILABLE, "the connection is closing")
        self.stop_calls()
        self._close()

    # --- the calls' side (Carrier) ---------------------------------------------------------------

    def taken(self, stream_id: int, size: int) -> None:
        self._answers.consume(stream_id, size)
        self._flush_soon()

    def takes(self, stream_id: int, size: int) -> bool:
        answers = self._answers
        return answers.takes(stream_id, size) or (self._makes_room() and answers.takes(stream_id, size))

    def send_message(self, call: GrpcCall, message: bytes) -> bool:
        if not self._answers.is_sendable(call.stream_id):
            raise ClientGone("the caller is gone")
        return self._send(call, message)

    def _send(self, call: GrpcCall, message: bytes) -> bool:
        answers, stream_id = self._answers, call.stream_id
        if not call.has_answered:
            call.has_answered = True
            answers.send_headers(stream_id, RESPONSE + call.told)
        self._flush_soon()
        return answers.send_data(stream_id, message, prefix(message))

    def advance(self, call: GrpcCall) -> None:
        if call.task is None:
            self._step(call)
        elif call.waiter is not None and not call.waiter.done():
            call.waiter.set_result(None)

    def wake_later(self, call: GrpcCall) -> None:
        self._loop.call_soon(self._wake, call)

    def wake_after(self, delay: Seconds, call: GrpcCall) -> Alarm:
        return Alarm(self._loop, delay, partial(self._time_out, call))

    def _time_out(self, call: GrpcCall) -> None:
        call.timed_out = True
        self._wake(call)

    def _wake(self, call: GrpcCall) -> None:
        if call.is_waiting:
            self.advance(call)
