"""The seam of the gRPC servers: one call as raw messages, whichever carrier brought it.

Every method is served as a stream of messages in and a stream of messages out, which on the wire is what a unary
method is too; it lets a handler act after its reply has been written (CONTRACT.md, a reset push).
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Protocol, TypeAlias

from kinference.ids import Seconds


class Status(IntEnum):
    """The gRPC status codes that we send."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


class RpcError(Exception):
    """Ends a call with a status; the message goes to the caller as it is."""

    def __init__(self, status: Status, message: str) -> None:
        self.status, self.message = status, message
        super().__init__(f"{status.name}: {message}")


class Call(Protocol):
    """One call in progress. The handler's task is cancelled when the caller resets it or its deadline passes."""

    @property
    def metadata(self) -> Sequence[tuple[str, str | bytes]]: ...

    @property
    def peer_names(self) -> Sequence[str]:
        """The names in the caller's certificate, which was verified; none without one."""
        ...

    async def receive(self, timeout: Seconds | None = None) -> bytes | None:
        """The next message; None after a half-close (which, with grpcio, a reset may look like).

        Raises ClientGone, and TimeoutError when `timeout` passes without one.
        """
        ...

    def send(self, message: bytes) -> Awaitable[None]:
        """Write a message; returns once the carrier has accepted it. Raises ClientGone when the peer is gone."""
        ...

    def tell(self, name: str, value: str) -> None:
        """Add metadata to the answer, before anything of it is sent: visible ASCII, a name in small letters."""
        ...

    def takes(self, message: bytes) -> bool:
        """Whether this message is sure to go at once, whole, as all of the answer. False where that is not known."""
        ...

    async def rest(self) -> None:
        """Wait until `wake` is called: for what is no part of the call."""
        ...

    def wake(self) -> None:
        """Let the `rest` that waits, or the next one, return."""
        ...

    def cut(self) -> None:
        """Have the `send` that waits for its reader, or the next one, raise ClientGone."""
        ...


RpcHandler: TypeAlias = Callable[[Call], Coroutine[Any, Any, None]]
Left: TypeAlias = Coroutine[Any, Any, None]
"""What is left to do for a call. It has to be awaited."""
RpcReply: TypeAlias = Callable[[bytes | None, Call], bytes | Left]
"""Answers the one message of a call (None: there was none) with one, as far as that takes no waiting."""


@dataclass(frozen=True, slots=True)
class RpcService:
    """A service by its full name (`kinference.v1.Picker`) and its methods by theirs."""

    name: str
    methods: Mapping[str, RpcHandler]
    inline: bool = False
    """Its handlers wait for nothing but their call, so that a carrier may run them without a task of their own."""
    replies: Mapping[str, RpcReply] = field(default_factory=dict)
    """What some of the methods come to where the whole request is there, in one message at most. A carrier may call
    these instead of the handlers then."""


def replying(reply: RpcReply) -> RpcHandler:
    """The handler of a method that is a plain reply."""

    async def handle(call: Call) -> None:
        answer = reply(await call.receive(), call)
        await (call.send(answer) if isinstance(answer, bytes) else answer)

    return handle
