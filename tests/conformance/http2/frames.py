"""The few frames and header blocks that the table is made of, written by hand: valid ones and broken ones alike."""

from struct import pack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
UNKNOWN = 0xFA
END_STREAM = ACK = 0x1
END_HEADERS, PADDED, PRIORITIZED = 0x4, 0x8, 0x20
WINDOW_MAX = 2**31 - 1
CODES = (
    "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
    "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
)  # fmt: skip


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return pack(">IBI", len(payload) << 8 | kind, flags, stream) + payload


def settings(*pairs: tuple[int, int]) -> bytes:
    return frame(SETTINGS, 0, 0, b"".join(pack(">HI", *pair) for pair in pairs))


def window_update(stream: int, increment: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, stream, pack(">I", increment))


def rst_stream(stream: int, code: int = 8) -> bytes:
    return frame(RST_STREAM, 0, stream, pack(">I", code))


def goaway(code: int = 0, debug: bytes = b"") -> bytes:
    return frame(GOAWAY, 0, 0, pack(">II", 0, code) + debug)


def priority(stream: int, depends_on: int = 0) -> bytes:
    return frame(PRIORITY, 0, stream, pack(">IB", depends_on, 15))


def headers(stream: int, block: bytes, flags: int = 0) -> bytes:
    """A whole block in one frame."""
    return frame(HEADERS, flags | END_HEADERS, stream, block)


def data(stream: int, payload: bytes, flags: int = 0) -> bytes:
    return frame(DATA, flags, stream, payload)


def number(value: int, bits: int, first: int = 0) -> bytes:
    """An HPACK integer in the low bits of its first byte."""
    most = (1 << bits) - 1
    if value < most:
        return bytes((first | value,))
    value -= most
    rest = bytearray((first | most,))
    while value > 0x7F:
        rest.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*rest, value))


def text(value: bytes) -> bytes:
    """An HPACK string without Huffman's code."""
    return number(len(value), 7) + value


def literal(name: bytes, value: bytes, first: int = 0x00) -> bytes:
    """A field of a name of its own; `first` tells whether it enters the table (0x40), or never may (0x10)."""
    return bytes((first,)) + text(name) + text(value)


METHOD_POST, METHOD_GET, SCHEME_HTTP = b"\x83", b"\x82", b"\x86"
AUTHORITY = b"\x01" + text(b"localhost")
GRPC = literal(b"te", b"trailers") + b"\x0f\x10" + text(b"application/grpc")


def path(value: bytes) -> bytes:
    return b"\x04" + text(value)


def method(value: bytes) -> bytes:
    return b"\x02" + text(value)


ECHO, HOLD, SOURCE = b"/table.Echo/Echo", b"/table.Hold/Hold", b"/table.Source/Source"


def call(target: bytes = ECHO, more: bytes = b"") -> bytes:
    """The block of a valid gRPC request, and more fields behind."""
    return METHOD_POST + SCHEME_HTTP + path(target) + AUTHORITY + GRPC + more


CALL = call()
MESSAGE = b"\0\0\0\0\5hello"
GREETING = PREFACE + settings()
