"""gRPC over HTTP/2, the pure part: a call's head, its messages, its status (the gRPC protocol's own specification)."""

import binascii
import re
from base64 import b64decode
from struct import Struct
from typing import Final, TypeAlias
from urllib.parse import quote

import msgspec

from kinference.ids import Seconds
from kinference.structs import Frozen
from kinference.wire.http2.fields import Fields
from kinference.wire.http2.frames import ErrorCode, WholeAnswer
from kinference.wire.http2.headers import literal
from kinference.wire.http2.requests import Request
from kinference.wire.rpc import RpcError, Status

Metadata: TypeAlias = tuple[tuple[str, str | bytes], ...]

OK: Final = Status.OK
PREFIX_BYTES: Final = 5
_PREFIX: Final = Struct(">BI").unpack_from
RESERVED: Final = b"grpc-"
NO_METADATA: Final = frozenset({b"te", b"content-type"})
TELLING: Final = frozenset({b"content-type", b"grpc-timeout"})
"""What is read of the call itself."""
PIECES_MAX: Final = 128
"""Of a message under way. A caller may send it in frames of a byte, which must not cost an object each."""
STATUS_MESSAGE_MAX_CHARS: Final = 2048

UNITS: Final[dict[bytes, float]] = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}
TIMEOUT: Final = re.compile(rb"(\d{1,8})([HMSmun])")

STATUS_200: Final = b"\x88"
RESPONSE: Final = STATUS_200 + literal(b"content-type", b"application/grpc")
ACCEPT_IDENTITY: Final = literal(b"grpc-accept-encoding", b"identity")
TRAILERS_OK: Final = literal(b"grpc-status", b"0")
ANSWER: Final = WholeAnswer(RESPONSE, TRAILERS_OK, "xI")
"""Of one message, which goes in between, behind its prefix."""

RESET_CODES: Final = {
    Status.RESOURCE_EXHAUSTED: ErrorCode.ENHANCE_YOUR_CALM,
    Status.PERMISSION_DENIED: ErrorCode.INADEQUATE_SECURITY,
    Status.INTERNAL: ErrorCode.INTERNAL_ERROR,
}
"""What a caller reads as a status where no status can be sent any more; CANCEL for the others."""

_PRINTABLE: Final = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")


class Refusal(Frozen, frozen=True):
    """Why a call is not even begun: with an HTTP status for one that is not gRPC at all, else with a status."""

    status: Status
    message: str
    http_status: int = 200


class CallHead(msgspec.Struct):
    """A call before its first message. Calls whose header blocks are the same bytes share one, so nobody changes it."""

    path: str
    """`/package.Service/Method`"""
    timeout: Seconds | None
    fields: Fields
    refusal: Refusal | None = None
    _before: Metadata = ()
    """What comes before that of the fields."""
    _metadata: Metadata | None = None

    def metadata(self) -> Metadata:
        """The caller's own fields: text, and bytes where the name ends in -bin. Made when it is first asked for."""
        if self._metadata is None:
            self._metadata = (*self._before, *_metadata(self.fields))
        return self._metadata


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


def read_on(head: CallHead, more: Fields) -> CallHead | None:
    """The same call with more fields behind. None where they say something of the call itself."""
    for name, _, _, _ in more:
        if name in TELLING:
            return None
    return CallHead(head.path, head.timeout, more, head.refusal, head.metadata())


def is_grpc(content_type: bytes) -> bool:
    return content_type == b"application/grpc" or content_type.startswith((b"application/grpc+", b"application/grpc;"))


def whole_message(data: bytes, limit: int) -> bytes | None:
    """The message where these bytes are one, all of it, and as it should be; all else is for a Deframer."""
    size = len(data) - PREFIX_BYTES
    if 0 <= size <= limit:
        flag, length = _PREFIX(data)
        if length == size and not flag:
            return data[PREFIX_BYTES:]
    return None


class Deframer:
    """Cuts a call's bytes into its messages. Nothing of a message that is too large is kept."""

    __slots__ = ("_held", "_limit", "_pieces", "_wanted")

    def __init__(self, message_bytes_max: int) -> None:
        self._limit = message_bytes_max
        self._pieces: list[bytes] = []
        """Of a message that has begun: its prefix until that is whole, then what there is of the rest."""
        self._held = 0
        self._wanted = -1
        """The length of the message that has begun; -1 until its prefix is whole."""

    @property
    def is_between_messages(self) -> bool:
        """False while a message has begun and is not complete."""
        return self._wanted < 0 and not self._held

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that these bytes complete. Raises RpcError for one that we do not take."""
        if self.is_between_messages and (whole := whole_message(data, self._limit)) is not None:
            return [whole]
        messages: list[bytes] = []
        at, size = 0, len(data)
        while at < size or self._held == self._wanted:
            at = self._take(data, at, messages)
        return messages

    def _take(self, data: bytes, at: int, messages: list[bytes]) -> int:
        """Take what belongs to the prefix, or the message, that comes next. Returns where to go on."""
        wanted = PREFIX_BYTES if self._wanted < 0 else self._wanted
        piece = data[at : at + wanted - self._held]
        self._pieces.append(piece)
        self._held += len(piece)
        if len(self._pieces) > PIECES_MAX:
            self._pieces = [b"".join(self._pieces)]
        if self._held == wanted:
            whole = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
            self._pieces, self._held = [], 0
            if self._wanted < 0:
                length = int.from_bytes(whole[1:])
                self._check(whole[0], length)
                self._wanted = length
            else:
                messages.append(whole)
                self._wanted = -1
        return at + len(piece)

    def _check(self, flag: int, length: int) -> None:
        if length > self._limit:
            raise RpcError(
                Status.RESOURCE_EXHAUSTED, f"a message of {length} bytes, {self._limit} at most: send less in each"
            )
        if flag == 1:
            raise RpcError(Status.UNIMPLEMENTED, "compressed messages are not supported: send identity")
        if flag:
            raise RpcError(Status.INTERNAL, "a message that does not begin as gRPC messages do")


def prefix(message: bytes) -> bytes:
    """What goes in front of a message: that it is not compressed, and its length."""
    return b"\0" + len(message).to_bytes(4)


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


def _metadata(fields: Fields) -> list[tuple[str, str | bytes]]:
    return [
        _metadatum(name, value)
        for name, value, _, _ in fields
        if name[: len(RESERVED)] != RESERVED and name not in NO_METADATA
    ]


def _metadatum(name: bytes, value: bytes) -> tuple[str, str | bytes]:
    if not name.endswith(b"-bin"):
        return name.decode("latin-1"), value.decode("latin-1")
    try:
        return name.decode("latin-1"), b64decode(value + b"=" * (-len(value) % 4), validate=True)
    except binascii.Error:
        return name.decode("latin-1"), value
