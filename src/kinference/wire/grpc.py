"""gRPC over HTTP/2, the pure part: a call's head, its messages, its status (the gRPC protocol's own specification)."""

import binascii
import re
from base64 import b64decode
from urllib.parse import quote

import msgspec

from kinference.ids import Seconds
from kinference.wire.http2.fields import Fields
from kinference.wire.http2.frames import ErrorCode
from kinference.wire.http2.headers import literal
from kinference.wire.http2.requests import Request
from kinference.wire.rpc import RpcError, Status

OK = Status.OK
PREFIX_BYTES = 5
STATUS_MESSAGE_MAX_CHARS = 2048

UNITS: dict[bytes, float] = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}
TIMEOUT = re.compile(rb"(\d{1,8})([HMSmun])")

STATUS_200 = b"\x88"
RESPONSE = STATUS_200 + literal(b"content-type", b"application/grpc")
ACCEPT_IDENTITY = literal(b"grpc-accept-encoding", b"identity")
TRAILERS_OK = literal(b"grpc-status", b"0")

RESET_CODES = {
    Status.RESOURCE_EXHAUSTED: ErrorCode.ENHANCE_YOUR_CALM,
    Status.PERMISSION_DENIED: ErrorCode.INADEQUATE_SECURITY,
    Status.INTERNAL: ErrorCode.INTERNAL_ERROR,
}
"""What a caller reads as a status where no status can be sent any more; CANCEL for the others."""

_PRINTABLE = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")


class Refusal(msgspec.Struct, frozen=True):
    """Why a call is not even begun: with an HTTP status for one that is not gRPC at all, else with a status."""

    status: Status
    message: str
    http_status: int = 200


class CallHead(msgspec.Struct, frozen=True):
    """A call before its first message."""

    path: str
    """`/package.Service/Method`"""
    timeout: Seconds | None
    fields: Fields
    refusal: Refusal | None = None

    def metadata(self) -> tuple[tuple[str, str | bytes], ...]:
        """The caller's own fields: text, and bytes where the name ends in -bin."""
        return tuple(_metadatum(name, value) for name, value, _, _ in self.fields if _is_metadata(name))


def read_head(request: Request) -> CallHead:
    """What a request means to gRPC."""
    timeout: Seconds | None = None
    refusal: Refusal | None = None
    content_type = b""
    for name, value, _, _ in request.fields:
        if name == b"content-type":
            content_type = value
        elif name == b"grpc-timeout":
            match = TIMEOUT.fullmatch(value)
            if match is None:
                refusal = Refusal(Status.INVALID_ARGUMENT, "grpc-timeout is not a number of eight digits with a unit")
            else:
                timeout = int(match[1]) * UNITS[match[2]]
    if not is_grpc(content_type):
        refusal = Refusal(Status.UNKNOWN, "the content type is not application/grpc", 415)
    elif request.method != b"POST":
        refusal = Refusal(Status.UNIMPLEMENTED, "a gRPC call is a POST", 405)
    return CallHead(request.path.decode("latin-1"), timeout, request.fields, refusal)


def is_grpc(content_type: bytes) -> bool:
    return content_type == b"application/grpc" or content_type.startswith((b"application/grpc+", b"application/grpc;"))


class Deframer:
    """Cuts a call's bytes into its messages. Nothing of a message that is too large is kept."""

    __slots__ = ("_held", "_limit", "_pieces", "_wanted")

    def __init__(self, message_bytes_max: int) -> None:
        self._limit = message_bytes_max
        self._pieces: list[bytes] = []
        self._held = 0
        self._wanted = PREFIX_BYTES

    @property
    def is_between_messages(self) -> bool:
        """False while a message has begun and is not complete."""
        return not self._held

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that these bytes complete. Raises RpcError for one that we do not take."""
        size = len(data)
        if not self._held and size >= PREFIX_BYTES and size == PREFIX_BYTES + int.from_bytes(data[1:5]):
            self._check(data)
            return [data[PREFIX_BYTES:]]
        if not data:
            return []
        self._pieces.append(data)
        self._held += size
        return self._cut() if self._held >= self._wanted else []

    def _cut(self) -> list[bytes]:
        buffer = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        messages, at, end = [], 0, len(buffer)
        self._wanted = PREFIX_BYTES
        while end - at >= PREFIX_BYTES:
            prefix = buffer[at : at + PREFIX_BYTES]
            self._check(prefix)
            size = PREFIX_BYTES + int.from_bytes(prefix[1:])
            if end - at < size:
                self._wanted = size
                break
            messages.append(buffer[at + PREFIX_BYTES : at + size])
            at += size
        self._pieces, self._held = ([buffer[at:]] if at < end else []), end - at
        return messages

    def _check(self, prefix: bytes) -> None:
        length = int.from_bytes(prefix[1:5])
        if length > self._limit:
            raise RpcError(Status.RESOURCE_EXHAUSTED, f"a message of {length} bytes, {self._limit} at most")
        if prefix[0] == 1:
            raise RpcError(Status.UNIMPLEMENTED, "compressed messages are not supported: send identity")
        if prefix[0]:
            raise RpcError(Status.INTERNAL, "a message that does not begin as gRPC messages do")


def framed(message: bytes) -> bytes:
    """A message as it travels."""
    return b"\0" + len(message).to_bytes(4) + message


def trailers(status: Status, message: str) -> bytes:
    """The header block that ends a call."""
    if status is OK:
        return TRAILERS_OK
    block = literal(b"grpc-status", str(int(status)).encode())
    if status is Status.UNIMPLEMENTED:
        block += ACCEPT_IDENTITY
    return block + literal(b"grpc-message", percent_encoded(message)) if message else block


def refusal_head(http_status: int) -> bytes:
    """The header block that begins an answer to what is no gRPC call."""
    return RESPONSE if http_status == 200 else literal(b":status", str(http_status).encode())  # noqa: PLR2004 - HTTP's own


def percent_encoded(message: str) -> bytes:
    """A status message as its field may spell it."""
    return quote(message[:STATUS_MESSAGE_MAX_CHARS], safe=_PRINTABLE, errors="replace").encode()


def _is_metadata(name: bytes) -> bool:
    return not name.startswith(b"grpc-") and name not in (b"te", b"content-type")


def _metadatum(name: bytes, value: bytes) -> tuple[str, str | bytes]:
    if not name.endswith(b"-bin"):
        return name.decode("latin-1"), value.decode("latin-1")
    try:
        return name.decode("latin-1"), b64decode(value + b"=" * (-len(value) % 4), validate=True)
    except binascii.Error:
        return name.decode("latin-1"), value
