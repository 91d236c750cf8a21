"""One gRPC call of our own carrier as its handler sees it, and what drives the handler."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kinference.errors import ClientGone
from kinference.ids import Seconds
from kinference.structs import Entity
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

    def takes(self, stream_id: int, size: int) -> bool:
        """Whether so many bytes of an answer can go at once, and its end with them."""

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


class GrpcCall(Entity):
    """`wire.rpc.Call`. What arrives is put here by the connection; the handler takes it."""

    carrier: Carrier
    stream_id: int
    head: CallHead
    method: Method
    limit: int
    """Of a message's bytes."""
    inbox: deque[bytes] | None = None
    """Messages that wait to be taken, once there was one."""
    half_closed: bool = False
    deframer: Deframer | None = None
    """Where messages do not come each in one piece, and a single one."""
    was_fed: bool = False
    """Whether anything came after the head."""
    was_woken: bool = False
    failure: Exception | None = None
    """What the handler is told instead of a message."""
    has_answered: bool = False
    told: bytes = b""
    """Fields of the answer's head beyond those that every answer has, encoded."""
    drained: bool = True
    """Nothing of what the handler sent waits for the peer."""
    routine: Coroutine[Any, Any, None] | None = None
    task: asyncio.Task[None] | None = None
    waiter: asyncio.Future[None] | None = None
    is_waiting: bool = False
    is_counted: bool = False
    """A drain waits for it."""
    was_put_off: bool = False
    """Its request was not all there at first, and it was let wait for the rest."""
    timed_out: bool = False
    deadline: asyncio.TimerHandle | None = None

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

    def takes(self, message: bytes) -> bool:
        return self.carrier.takes(self.stream_id, len(message) + PREFIX_BYTES)

    def send(self, message: bytes) -> Awaitable[None]:
        self.check()
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
            self._put([whole])
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
            self._put(self.deframer.feed(data))
        except RpcError as error:
            self.inbox = None
            self.failure = error
        if ended and self.deframer.is_between_messages:
            self.half_closed = True
        elif ended and self.failure is None:
            self.failure = RpcError(Status.INVALID_ARGUMENT, "the call ended within a message")

    def _put(self, messages: list[bytes]) -> None:
        if self.inbox is None:
            self.inbox = deque(messages)
        else:
            self.inbox += messages

    # --- for what waits --------------------------------------------------------------------------

    @property
    def is_told(self) -> bool:
        """Whether there is a message, the end of them, or how the call failed."""
        return bool(self.inbox) or self.half_closed or self.failure is not None

    @property
    def may_be_one_message(self) -> bool:
        """Whether the rest of its request may come, and make it one of a single message."""
        return not self.half_closed and self.failure is None and (not self.inbox or len(self.inbox) == 1)

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
