"""What a connection tells of: requests, their bytes, their ends.

None of them can be part of a cycle, so the collector need not look at them.
"""

from typing import Generic, TypeAlias, TypeVar

import msgspec

Head = TypeVar("Head")


class RequestReceived(msgspec.Struct, Generic[Head], frozen=True, gc=False):
    """A stream was opened. `head` is what the reader of heads made of the request."""

    stream_id: int
    head: Head
    ended: bool
    """The peer has sent all, and cleanly."""
    data: bytes = b""
    """The whole body of one that has ended, where it came right behind the head."""


class DataReceived(msgspec.Struct, frozen=True, gc=False):
    """Bytes of a body. With `ended` the peer has sent all, and cleanly."""

    stream_id: int
    data: bytes
    ended: bool


class StreamReset(msgspec.Struct, frozen=True, gc=False):
    """A stream broke off: the peer reset it, or broke a rule and was told so."""

    stream_id: int
    code: int
    by_peer: bool


class StreamDrained(msgspec.Struct, frozen=True, gc=False):
    """All that waited to be sent on a stream has been written."""

    stream_id: int


class PingAcknowledged(msgspec.Struct, frozen=True, gc=False):
    """The peer is alive."""


class ConnectionEnded(msgspec.Struct, frozen=True, gc=False):
    """The peer broke a rule that ends the connection; it is told in what is left to write."""

    code: int
    message: str


Event: TypeAlias = (
    RequestReceived[Head] | DataReceived | StreamReset | StreamDrained | PingAcknowledged | ConnectionEnded
)
