"""HTTP/2 frames: their numbers, and how they are written (RFC 9113, sections 4, 6 and 7)."""

from enum import IntEnum
from struct import Struct, calcsize
from typing import Final, TypeAlias

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADER: Final = Struct(">IBI")
"""Nine bytes: 24 bits of length and 8 of type in one number, flags, stream id with its reserved bit."""
HEADER_BYTES: Final = 9
FRAME_BYTES_DEFAULT: Final = 16_384
WINDOW_DEFAULT: Final = 65_535
WINDOW_MAX: Final = 2**31 - 1
STREAM_ID_MAX: Final = 2**31 - 1

END_STREAM: Final = 0x1
ACK: Final = 0x1
END_HEADERS: Final = 0x4
LAST_BLOCK: Final = END_HEADERS | END_STREAM
PADDED: Final = 0x8
PRIORITY_FIELDS: Final = 0x20
PRIORITY_BYTES: Final = 5
GOAWAY_BYTES_MIN: Final = 8

KNOWN_BYTES_MAX: Final = 1024
"""Of answers around which all is remembered."""

_U32: Final = Struct(">I")
_MARKS: Final = Struct(">IB")
"""What stands before the stream's number in `HEADER`."""
_SETTING: Final = Struct(">HI")
_GOAWAY: Final = Struct(">II")


class FrameType(IntEnum):
    DATA = 0
    HEADERS = 1
    PRIORITY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PUSH_PROMISE = 5
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9


_HEADERS: Final = int(FrameType.HEADERS)


class ErrorCode(IntEnum):
    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11
    INADEQUATE_SECURITY = 12
    HTTP_1_1_REQUIRED = 13


class ConnectionFault(Exception):
    """The peer broke a rule that ends the whole connection."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        self.code, self.message = code, message
        super().__init__(f"{code.name}: {message}")


class StreamFault(Exception):
    """The peer broke a rule that ends one stream."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        self.code, self.message = code, message
        super().__init__(f"{code.name}: {message}")


def frame(kind: FrameType, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    """Any frame."""
    return HEADER.pack(len(payload) << 8 | kind, flags, stream_id) + payload


def headers(flags: int, stream_id: int, block: bytes, frame_bytes_max: int = FRAME_BYTES_DEFAULT) -> bytes:
    """A header block, in as many frames as it takes."""
    if len(block) <= frame_bytes_max:
        return HEADER.pack(len(block) << 8 | _HEADERS, flags | END_HEADERS, stream_id) + block
    pieces = [block[at : at + frame_bytes_max] for at in range(0, len(block), frame_bytes_max)]
    return b"".join(
        (
            frame(FrameType.HEADERS, flags, stream_id, pieces[0]),
            *(frame(FrameType.CONTINUATION, 0, stream_id, piece) for piece in pieces[1:-1]),
            frame(FrameType.CONTINUATION, END_HEADERS, stream_id, pieces[-1]),
        )
    )


Around: TypeAlias = tuple[bytes, bytes, bytes, bytes, bytes, int]
"""What stands before the stream's number in the head's frame, before and behind it in that of DATA, and the same of the
trailers' frame; and the size of it all, DATA included."""


class WholeAnswer:
    """An answer whose head and trailers are always the same, as frames around what differs.

    Its DATA begins with a prefix that says how long the rest is; `prefix` is how `struct` spells that.
    """

    __slots__ = ("_begin", "_end", "_head", "_prefix", "_trailers", "framing_bytes", "known", "prefix_bytes")

    def __init__(self, head: bytes, trailers: bytes, prefix: str) -> None:
        self._begin = _MARKS.pack(len(head) << 8 | _HEADERS, END_HEADERS)
        self._end = _MARKS.pack(len(trailers) << 8 | _HEADERS, LAST_BLOCK)
        self._head, self._trailers, self._prefix = head, trailers, Struct(f">{prefix}").pack
        self.prefix_bytes = calcsize(f">{prefix}")
        self.framing_bytes = 3 * HEADER_BYTES + len(head) + len(trailers)
        """Of all that is no DATA, where that is one frame."""
        self.known: dict[int, Around] = {}
        """By the size of DATA, where that is short."""

    def measured(self, size: int) -> Around:
        """What stands around an answer with so much DATA in one frame."""
        mark = _MARKS.pack(size << 8, 0)  # DATA is 0
        prefix, total = self._prefix(size - self.prefix_bytes), self.framing_bytes + size
        around = self._begin, self._head + mark, prefix, self._end, self._trailers, total
        if size <= KNOWN_BYTES_MAX:
            self.known[size] = around
        return around

    def cut(self, stream_id: int, data: bytes, frame_bytes: int) -> list[bytes | memoryview]:
        """The same where DATA takes several frames, of so many bytes at most."""
        number, view = stream_id.to_bytes(4), memoryview(data)
        begun = frame_bytes - self.prefix_bytes
        full = _MARKS.pack(frame_bytes << 8, 0)
        pieces: list[bytes | memoryview]
        pieces = [self._begin, number, self._head, full, number, self._prefix(len(data)), view[:begun]]
        for at in range(begun, len(data), frame_bytes):
            piece = view[at : at + frame_bytes]
            pieces += _MARKS.pack(len(piece) << 8, 0), number, piece
        pieces += self._end, number, self._trailers
        return pieces


def settings(values: dict[int, int]) -> bytes:
    return frame(FrameType.SETTINGS, 0, 0, b"".join(_SETTING.pack(*pair) for pair in values.items()))


def window_update(stream_id: int, increment: int) -> bytes:
    return frame(FrameType.WINDOW_UPDATE, 0, stream_id, _U32.pack(increment))


def rst_stream(stream_id: int, code: int) -> bytes:
    return frame(FrameType.RST_STREAM, 0, stream_id, _U32.pack(code))


def goaway(last_stream_id: int, code: int, message: str = "") -> bytes:
    return frame(FrameType.GOAWAY, 0, 0, _GOAWAY.pack(last_stream_id, code) + message.encode())


def unpadded(payload: bytes) -> bytes:
    """What is left of a payload that begins with the length of its padding."""
    if not payload:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "a padded frame without its length of padding")
    padding = payload[0]
    if padding >= len(payload):
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "more padding than payload")
    return payload[1 : len(payload) - padding]


def u31(payload: bytes) -> int:
    """A number of four bytes whose first bit is reserved."""
    return int.from_bytes(payload) & STREAM_ID_MAX


def expect_connection(stream_id: int, what: str) -> None:
    """Raise unless a frame is about the connection."""
    if stream_id:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"{what} on a stream")


def expect_stream(stream_id: int, what: str) -> None:
    """Raise unless a frame is about a stream."""
    if not stream_id:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"{what} on no stream")


def expect_length(payload: bytes, length: int, what: str) -> None:
    """Raise unless a payload is so long."""
    if len(payload) != length:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, f"{what} of {len(payload)} bytes")
