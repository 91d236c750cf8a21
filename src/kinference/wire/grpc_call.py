"""One gRPC call of our own carrier as its handler sees it, and what drives the handler."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kinference.errors import ClientGone
from kinference.ids import Seconds
from kinference.wire.alarm import Alarm
from kinference.wire.grpc import PREFIX_BYTES, CallHead, Deframer, whole_message
from kinference.wire.grpc_waits import drained, pause, received, rested
from kinference.wire.http2.headers import literal
from kinference.wire.over import OVER
from kinference.wire.rpc import RpcError, RpcHandler, RpcReply, RpcService, Status


class Carrier(Protocol):
    """The connection that a call came on."""

    @property
    def peer_names(self) -> Sequence[str]: ...

    def taken(self, stream_id: int, size: int) -> None:
        """The handler took so many bytes."""

    def needs_bytes(self) -> None:
        """The handler begins to wait for the caller."""

    def hold(self, call: "GrpcCall", message: bytes) -> bool:
        """Keep a first message back until its handler ends or waits: mostly it is the last too. False: send it."""

    def send_message(self, call: "GrpcCall", message: bytes) -> bool:
        """Write a message; False when some of it has to wait."""

    def advance(self, call: "GrpcCall") -> None:
        """Something has happened that the call's handler may wait for; called at once, and only while it waits."""

    def wake_later(self, call: "GrpcCall") -> None:
        """The same in a turn of the loop of its own."""

    def wake_after(self, delay: Seconds, call: "GrpcCall") -> Alarm:
        """Mark the call's patience as over after so long, and wake it."""


@dataclass(frozen=True, slots=True)
class Method:
    """What serves a path."""

    service: RpcService
    name: str
    """`package.Service/Method`"""
    handler: RpcHandler
    is_counted: bool
    """Whether a drain waits for its calls."""
    reply: RpcReply | None = None
    """What the handler comes to where the request is one message, and all there."""


class GrpcCall:
    """`wire.rpc.Call`. What arrives is put here by the connection; the handler takes it."""

    __slots__ = (
        "carrier", "deadline", "deframer", "drained", "failure", "half_closed", "has_answered", "head", "held", "inbox",
        "is_counted", "is_waiting", "limit", "method", "routine", "stream_id", "task", "timed_out", "told", "waiter",
        "was_fed", "was_woken",
    )  # fmt: skip

    def __init__(self, carrier: Carrier, stream_id: int, head: CallHead, method: Method, limit: int) -> None:
        self.carrier, self.stream_id, self.head, self.method = carrier, stream_id, head, method
        self.limit = limit
        self.deframer: Deframer | None = None
        """Where messages do not come each in one piece, and a single one."""
        self.inbox: deque[bytes] = deque()
        self.half_closed = False
        self.was_fed = False
        """Whether anything came after the head."""
        self.was_woken = False
        self.failure: Exception | None = None
        """What the handler is told instead of a message."""
        self.has_answered = False
        self.told = b""
        """Fields of the answer's head beyond those that every answer has, encoded."""
        self.held: bytes | None = None
        """A message that the carrier keeps back."""
        self.drained = True
        """Nothing of what the handler sent waits for the peer."""
        self.routine: Coroutine[Any, Any, None] | None = None
        self.task: asyncio.Task[None] | None = None
        self.waiter: asyncio.Future[None] | None = None
        self.is_waiting = False
        self.is_counted = False
        """A drain waits for it."""
        self.timed_out = False
        self.deadline: asyncio.TimerHandle | None = None

    @property
    def metadata(self) -> Sequence[tuple[str, str | bytes]]:
        return self.head.metadata()

    @property
    def peer_names(self) -> Sequence[str]:
        return self.carrier.peer_names

    def receive(self, timeout: Seconds | None = None) -> Coroutine[Any, Any, bytes | None]:
        return received(self, timeout)

    def tell(self, name: str, value: str) -> None:
        assert not self.has_answered, "the head of the answer has gone"
        self.told += literal(name.encode("ascii"), value.encode("ascii"))

    def send(self, message: bytes) -> Awaitable[None]:
        self.check()
        if self.carrier.hold(self, message):
            return OVER
        self.drained = self.carrier.send_message(self, message)
        return OVER if self.drained else drained(self)

    def rest(self) -> Coroutine[Any, Any, None]:
        return rested(self)

    def wake(self) -> None:
        self.was_woken = True
        self.carrier.wake_later(self)

    def cut(self) -> None:
        if self.failure is None:
            self.failure = ClientGone("the call was cut from our side")
            self.carrier.wake_later(self)

    # --- for the connection ----------------------------------------------------------------------

    def take(self, data: bytes, *, ended: bool) -> None:
        """Bytes of the call arrived."""
        self.was_fed = True
        if self.failure is not None:
            return
        whole = whole_message(data, self.limit) if ended and self.deframer is None else None
        if whole is not None:  # the hot path: all that the caller has to say
            self.inbox.append(whole)
            self.half_closed = True
        else:
            self._cut(data, ended=ended)
        if self.is_waiting:
            self.carrier.advance(self)

    def _cut(self, data: bytes, *, ended: bool) -> None:
        """Messages that come in pieces, or several at once."""
        if self.deframer is None:
            self.deframer = Deframer(self.limit)
        try:
            self.inbox += self.deframer.feed(data)
        except RpcError as error:
            self.inbox.clear()
            self.failure = error
        if ended and self.deframer.is_between_messages:
            self.half_closed = True
        elif ended and self.failure is None:
            self.failure = RpcError(Status.INVALID_ARGUMENT, "the call ended within a message")

    # --- for what waits --------------------------------------------------------------------------

    @property
    def is_told(self) -> bool:
        """Whether there is a message, the end of them, or how the call failed."""
        return bool(self.inbox) or self.half_closed or self.failure is not None

    def take_message(self) -> bytes | None:
        """What comes next; None at the end. Raises how the call failed."""
        if self.inbox:
            message = self.inbox.popleft()
            if not self.half_closed:  # else there is nothing that the caller could do with the credit
                self.carrier.taken(self.stream_id, len(message) + PREFIX_BYTES)
            return message
        self.check()
        return None

    def turn(self) -> Awaitable[None]:
        """Something has happened to the call."""
        self.is_waiting = True
        if self.task is None:
            return pause()
        self.waiter = waiter = asyncio.get_running_loop().create_future()
        return waiter

    def begin_waiting(self, timeout: Seconds | None) -> Alarm | None:
        """The handler begins to wait for a message, for so long."""
        timer = None if timeout is None else self.carrier.wake_after(timeout, self)
        self.timed_out = False
        self.carrier.needs_bytes()
        return timer

    def check(self) -> None:
        """Raise how the call failed, if it did."""
        if self.failure is not None:
            raise self.failure

    def check_patience(self) -> None:
        """Raise TimeoutError if the handler has waited for too long."""
        if self.timed_out:
            raise TimeoutError
