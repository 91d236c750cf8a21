"""RFC 9113, sections 3, 4 and those of 6 that are about the connection: preface, frames, SETTINGS, PING, GOAWAY."""

from struct import pack

from tests.conformance.http2.case import IGNORED, OK, REPLIED, Case, broken, reset
from tests.conformance.http2.frames import (
    ACK,
    CALL,
    CONTINUATION,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    HOLD,
    MESSAGE,
    PADDED,
    PING,
    PREFACE,
    PRIORITIZED,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    UNKNOWN,
    WINDOW_UPDATE,
    call,
    data,
    frame,
    goaway,
    headers,
    priority,
    rst_stream,
    settings,
    window_update,
)

ASK = headers(1, CALL, END_STREAM)
OPEN = headers(1, CALL)
FINISH = data(1, MESSAGE, END_STREAM)
BEGUN = frame(HEADERS, END_STREAM, 1, CALL[:10])
REST = frame(CONTINUATION, END_HEADERS, 1, CALL[10:])
PROTOCOL_ERROR, FRAME_SIZE_ERROR = broken("PROTOCOL_ERROR"), broken("FRAME_SIZE_ERROR")
PING_REPLY = frame(PING, ACK, 0, b"12345678")
BIG = 2**24 - 1

PREFACES = (
    Case("9113/3.4", "speaks HTTP/1.1", b"", PROTOCOL_ERROR, greeting=b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"),
    Case("9113/3.4", "has a wrong byte in its preface", b"", PROTOCOL_ERROR, greeting=PREFACE[:-1] + b"!" + settings()),
    Case("9113/3.4", "sends PING before SETTINGS", frame(PING, 0, 0, bytes(8)), PROTOCOL_ERROR, greeting=PREFACE),
    Case("9113/3.4", "sends HEADERS before SETTINGS", ASK, PROTOCOL_ERROR, greeting=PREFACE),
    Case("9113/3.4", "sends an unknown frame before SETTINGS", frame(UNKNOWN, 0, 0), PROTOCOL_ERROR, greeting=PREFACE),
    Case("9113/3.4", "acknowledges before its SETTINGS", frame(SETTINGS, ACK, 0), PROTOCOL_ERROR, greeting=PREFACE),
    Case("9113/3.4", "asks without waiting for our SETTINGS", ASK, OK),
)
FRAMES = (
    Case("9113/4.1", "sends a frame of unknown type", frame(UNKNOWN, 0xFF, 0, b"x") + ASK, OK),
    Case("9113/4.1", "sends a frame of unknown type on an idle stream", frame(UNKNOWN, 0, 7, b"x") + ASK, OK),
    Case("9113/4.1", "sends a frame of unknown type on an open stream", OPEN + frame(UNKNOWN, 1, 1) + FINISH, OK),
    Case("9113/4.1", "sets unknown flags on PING", frame(PING, 0xFE, 0, b"12345678"), REPLIED, reply=PING_REPLY),
    Case("9113/4.1", "sets unknown flags on HEADERS and DATA", headers(1, CALL, 0xD2) + data(1, MESSAGE, 0xF7), OK),
    Case("9113/4.1", "sets the reserved bit of a stream id", headers(1 | 1 << 31, CALL, END_STREAM), OK),
    Case(
        "9113/4.2",
        "sends DATA larger than any server announces",
        OPEN + pack(">IBI", BIG << 8, 0, 1) + bytes(99),
        FRAME_SIZE_ERROR,
    ),
    Case(
        "9113/4.2",
        "sends HEADERS larger than any server announces",
        pack(">IBI", BIG << 8 | HEADERS, 4, 1) + bytes(99),
        FRAME_SIZE_ERROR,
    ),
    Case(
        "9113/4.2",
        "sends SETTINGS larger than any server announces",
        pack(">IBI", BIG << 8 | SETTINGS, 0, 0) + bytes(99),
        FRAME_SIZE_ERROR,
    ),
    Case(
        "9113/4.2",
        "sends an unknown frame larger than any server announces",
        pack(">IBI", BIG << 8 | UNKNOWN, 0, 0) + bytes(99),
        FRAME_SIZE_ERROR,
    ),
    Case(
        "9113/4.2", "sends DATA of 16,384 bytes", OPEN + data(1, pack(">BI", 0, 16_379) + bytes(16_379), END_STREAM), OK
    ),
    Case("9113/4.3", "breaks a block off with DATA", BEGUN + data(1, b"x"), PROTOCOL_ERROR),
    Case("9113/4.3", "breaks a block off with HEADERS of another stream", BEGUN + headers(3, CALL), PROTOCOL_ERROR),
    Case("9113/4.3", "breaks a block off with HEADERS of the same stream", BEGUN + headers(1, CALL), PROTOCOL_ERROR),
    Case("9113/4.3", "breaks a block off with PING", BEGUN + frame(PING, 0, 0, bytes(8)) + REST, PROTOCOL_ERROR),
    Case("9113/4.3", "breaks a block off with SETTINGS", BEGUN + settings() + REST, PROTOCOL_ERROR),
    Case("9113/4.3", "breaks a block off with PRIORITY", BEGUN + priority(1) + REST, PROTOCOL_ERROR),
    Case("9113/4.3", "breaks a block off with RST_STREAM", BEGUN + rst_stream(1), PROTOCOL_ERROR),
    Case("9113/4.3", "breaks a block off with WINDOW_UPDATE", BEGUN + window_update(0, 1) + REST, PROTOCOL_ERROR),
    Case("9113/4.3", "breaks a block off with GOAWAY", BEGUN + goaway() + REST, PROTOCOL_ERROR),
    Case(
        "9113/5.5",
        "breaks a block off with a frame of unknown type",
        BEGUN + frame(UNKNOWN, 0, 1) + REST,
        PROTOCOL_ERROR,
    ),
)
CONTINUATIONS = (
    Case("9113/6.10", "sends a block in two frames", BEGUN + REST, OK),
    Case(
        "9113/6.10",
        "sends a block a byte a frame",
        frame(HEADERS, END_STREAM, 1)
        + b"".join(frame(CONTINUATION, 0, 1, bytes((byte,))) for byte in CALL)
        + frame(CONTINUATION, END_HEADERS, 1),
        OK,
    ),
    Case(
        "9113/6.10",
        "continues on another stream",
        BEGUN + frame(CONTINUATION, END_HEADERS, 3, CALL[10:]),
        PROTOCOL_ERROR,
    ),
    Case("9113/6.10", "continues on no stream", BEGUN + frame(CONTINUATION, END_HEADERS, 0, CALL[10:]), PROTOCOL_ERROR),
    Case("9113/6.10", "continues nothing", frame(CONTINUATION, END_HEADERS, 1, CALL), PROTOCOL_ERROR),
    Case("9113/6.10", "continues a block that has ended", OPEN + frame(CONTINUATION, END_HEADERS, 1), PROTOCOL_ERROR),
    Case(
        "9113/6.10", "continues after DATA", OPEN + data(1, b"") + frame(CONTINUATION, END_HEADERS, 1), PROTOCOL_ERROR
    ),
    Case(
        "9113/6.10",
        "sends trailers in two frames",
        OPEN + data(1, MESSAGE) + frame(HEADERS, END_STREAM, 1) + frame(CONTINUATION, END_HEADERS, 1, b"\0\1a\1b"),
        OK,
    ),
)
PADDINGS = (
    Case("9113/6.1", "pads DATA", OPEN + data(1, b"\4" + MESSAGE + bytes(4), END_STREAM | PADDED), OK),
    Case("9113/6.1", "pads DATA with nothing", OPEN + data(1, b"\0" + MESSAGE, END_STREAM | PADDED), OK),
    Case("9113/6.1", "sends DATA that is only padding", OPEN + data(1, b"\3" + bytes(3), PADDED) + FINISH, OK),
    Case("9113/6.1", "pads DATA with as much as there is", OPEN + data(1, b"\4" + bytes(3), PADDED), PROTOCOL_ERROR),
    Case("9113/6.1", "pads DATA with more than there is", OPEN + data(1, b"\xff" + bytes(3), PADDED), PROTOCOL_ERROR),
    Case("9113/6.1", "pads DATA without the length of padding", OPEN + data(1, b"", PADDED), FRAME_SIZE_ERROR),
    Case(
        "9113/6.1",
        "pads DATA with other bytes than zero",
        OPEN + data(1, b"\2" + MESSAGE + b"ab", END_STREAM | PADDED),
        OK,
    ),
    Case("9113/6.1", "sends DATA on no stream", data(0, MESSAGE), PROTOCOL_ERROR),
    Case("9113/6.2", "pads HEADERS", headers(1, b"\4" + CALL + bytes(4), END_STREAM | PADDED), OK),
    Case(
        "9113/6.2",
        "pads HEADERS that have a priority",
        headers(1, b"\4\0\0\0\0\1" + CALL + bytes(4), END_STREAM | PADDED | PRIORITIZED),
        OK,
    ),
    Case(
        "9113/6.2",
        "pads HEADERS with more than there is",
        headers(1, b"\xff" + CALL, END_STREAM | PADDED),
        PROTOCOL_ERROR,
    ),
    Case(
        "9113/6.2",
        "pads HEADERS over their priority",
        headers(1, b"\5" + bytes(5), PADDED | PRIORITIZED),
        PROTOCOL_ERROR,
    ),
    Case("9113/6.2", "pads HEADERS without the length of padding", headers(1, b"", PADDED), FRAME_SIZE_ERROR),
    Case(
        "9113/6.2", "sends HEADERS too short for their priority", headers(1, b"\0\0\0", PRIORITIZED), FRAME_SIZE_ERROR
    ),
    Case("9113/6.2", "sends HEADERS on no stream", headers(0, CALL), PROTOCOL_ERROR),
)
PRIORITIES = (
    Case("9113/6.2", "sends HEADERS with a priority", headers(1, b"\0\0\0\0\1" + CALL, END_STREAM | PRIORITIZED), OK),
    Case(
        "9113/5.3.2", "has HEADERS depend on themselves", headers(1, b"\0\0\0\1\1" + CALL, END_STREAM | PRIORITIZED), OK
    ),
    Case("9113/5.3.2", "has an open stream depend on itself", OPEN + priority(1, 1) + FINISH, OK),
    Case("9113/6.3", "prioritizes an idle stream", priority(5, 3) + ASK, OK),
    Case("9113/6.3", "prioritizes no stream", priority(0), PROTOCOL_ERROR),
    Case(
        "9113/6.3",
        "prioritizes an open stream in four bytes",
        headers(1, call(HOLD)) + frame(PRIORITY, 0, 1, bytes(4)),
        reset("FRAME_SIZE_ERROR"),
    ),
    Case(
        "9113/6.3",
        "prioritizes an open stream in six bytes",
        headers(1, call(HOLD)) + frame(PRIORITY, 0, 1, bytes(6)),
        reset("FRAME_SIZE_ERROR"),
    ),
    Case("9113/6.3", "prioritizes an idle stream in four bytes", frame(PRIORITY, 0, 1, bytes(4)), FRAME_SIZE_ERROR),
    Case("9113/6.3", "prioritizes a stream that has ended", ASK, OK, then=priority(1)),
)
SETTING = (
    Case("9113/6.5", "sends SETTINGS again", settings((3, 7)), REPLIED, reply=frame(SETTINGS, ACK, 0)),
    Case("9113/6.5", "acknowledges with a payload", frame(SETTINGS, ACK, 0, bytes(6)), FRAME_SIZE_ERROR),
    Case("9113/6.5", "acknowledges what was not sent", frame(SETTINGS, ACK, 0) * 3 + ASK, OK),
    Case("9113/6.5", "sends SETTINGS on a stream", frame(SETTINGS, 0, 1), PROTOCOL_ERROR),
    Case("9113/6.5", "sends SETTINGS of five bytes", frame(SETTINGS, 0, 0, bytes(5)), FRAME_SIZE_ERROR),
    Case("9113/6.5", "sends SETTINGS of seven bytes", frame(SETTINGS, 0, 0, bytes(7)), FRAME_SIZE_ERROR),
    Case("9113/6.5.2", "sets ENABLE_PUSH to 2", settings((2, 2)), PROTOCOL_ERROR),
    Case("9113/6.5.2", "sets ENABLE_PUSH to 0 and 1", settings((2, 0), (2, 1)) + ASK, OK),
    Case("9113/6.5.2", "sets INITIAL_WINDOW_SIZE to 2^31", settings((4, 2**31)), broken("FLOW_CONTROL_ERROR")),
    Case("9113/6.5.2", "sets INITIAL_WINDOW_SIZE to 2^31 - 1", settings((4, 2**31 - 1)) + ASK, OK),
    Case("9113/6.5.2", "sets MAX_FRAME_SIZE to 16,383", settings((5, 16_383)), PROTOCOL_ERROR),
    Case("9113/6.5.2", "sets MAX_FRAME_SIZE to 2^24", settings((5, 2**24)), PROTOCOL_ERROR),
    Case("9113/6.5.2", "sets MAX_FRAME_SIZE to 2^24 - 1", settings((5, BIG)) + ASK, OK),
    Case("9113/6.5.2", "sets HEADER_TABLE_SIZE to 0", settings((1, 0)) + ASK, OK),
    Case("9113/6.5.2", "sets HEADER_TABLE_SIZE to 2^32 - 1", settings((1, 2**32 - 1)) + ASK, OK),
    Case("9113/6.5.2", "sets MAX_CONCURRENT_STREAMS to 0", settings((3, 0)) + ASK, OK),
    Case("9113/6.5.2", "sets what nobody knows", settings((0x7777, 1), (0, 9)) + ASK, OK),
)
OTHERS = (
    Case("9113/6.4", "resets no stream", rst_stream(0), PROTOCOL_ERROR),
    Case("9113/6.4", "resets in three bytes", OPEN + frame(RST_STREAM, 0, 1, bytes(3)), FRAME_SIZE_ERROR),
    Case("9113/6.4", "resets in five bytes", OPEN + frame(RST_STREAM, 0, 1, bytes(5)), FRAME_SIZE_ERROR),
    Case("9113/6.4", "resets for a reason that nobody knows", OPEN + rst_stream(1, 0xDEAD), IGNORED),
    Case(
        "9113/6.6", "promises a push", OPEN + frame(PUSH_PROMISE, END_HEADERS, 1, pack(">I", 2) + CALL), PROTOCOL_ERROR
    ),
    Case("9113/6.7", "pings", frame(PING, 0, 0, b"12345678"), REPLIED, reply=PING_REPLY),
    Case("9113/6.7", "pings in seven bytes", frame(PING, 0, 0, bytes(7)), FRAME_SIZE_ERROR),
    Case("9113/6.7", "pings in nine bytes", frame(PING, 0, 0, bytes(9)), FRAME_SIZE_ERROR),
    Case("9113/6.7", "pings a stream", frame(PING, 0, 1, bytes(8)), PROTOCOL_ERROR),
    Case("9113/6.7", "answers a ping that was not sent", frame(PING, ACK, 0, b"12345678"), IGNORED, reply=PING_REPLY),
    Case("9113/6.8", "says goodbye on a stream", frame(GOAWAY, 0, 1, bytes(8)), PROTOCOL_ERROR),
    Case("9113/6.8", "says goodbye in seven bytes", frame(GOAWAY, 0, 0, bytes(7)), FRAME_SIZE_ERROR),
    Case("9113/6.8", "says goodbye and finishes a request", OPEN + goaway(0, b"bye") + FINISH, OK),
    Case("9113/6.8", "says goodbye for a reason that nobody knows", OPEN + goaway(0xDEAD) + FINISH, OK),
    Case("9113/6.9", "opens a window in three bytes", frame(WINDOW_UPDATE, 0, 0, bytes(3)), FRAME_SIZE_ERROR),
    Case("9113/6.9", "opens a window in five bytes", frame(WINDOW_UPDATE, 0, 0, bytes(5)), FRAME_SIZE_ERROR),
)
CASES = (*PREFACES, *FRAMES, *CONTINUATIONS, *PADDINGS, *PRIORITIES, *SETTING, *OTHERS)
