"""The seam of the gRPC servers: one call as raw messages, whichever carrier brought it.

Every method is served as a stream of messages in and a stream of messages out, which on the wire is what a unary
method is too; it lets a handler act after its reply has been written (CONTRACT.md, a reset push).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, TypeAlias


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

    async def receive(self) -> bytes | None:
        """The next message; None after a half-close (which, with grpcio, a reset may look like). Raises ClientGone."""
        ...

    async def send(self, message: bytes) -> None:
        """Write a message; returns once the carrier has accepted it. Raises ClientGone when the peer is gone."""
        ...


RpcHandler: TypeAlias = Callable[[Call], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class RpcService:
    """A service by its full name (`kinference.v1.Picker`) and its methods by theirs."""

    name: str
    methods: Mapping[str, RpcHandler]
