"""RFC 9113, section 5.1: which frames a stream may get in which state, and which ids a client may open."""

from tests.conformance.http2.case import IGNORED, OK, Case, broken, reset
from tests.conformance.http2.frames import (
    CALL,
    CONTINUATION,
    END_HEADERS,
    END_STREAM,
    HOLD,
    MESSAGE,
    call,
    data,
    frame,
    headers,
    priority,
    rst_stream,
    window_update,
)
from tests.conformance.http2.server import STREAMS_MAX

ASK = headers(1, CALL, END_STREAM)
OPEN = headers(1, call(HOLD))
HALF = headers(1, call(HOLD), END_STREAM)
RESET = headers(1, call(HOLD)) + rst_stream(1)
TRAILERS = headers(1, b"\0\1a\1b", END_STREAM)
PROTOCOL_ERROR, CLOSED = broken("PROTOCOL_ERROR"), broken("STREAM_CLOSED")
LATE = reset("STREAM_CLOSED")

IDLE = (
    Case("9113/5.1", "sends DATA on an idle stream", data(1, MESSAGE), PROTOCOL_ERROR),
    Case("9113/5.1", "opens the window of an idle stream", window_update(1, 9), PROTOCOL_ERROR),
    Case("9113/5.1", "resets an idle stream", rst_stream(1), PROTOCOL_ERROR),
    Case("9113/5.1", "continues on an idle stream", frame(CONTINUATION, END_HEADERS, 1, CALL), PROTOCOL_ERROR),
    Case("9113/5.1", "opens the window of a stream above the last", ASK + window_update(3, 9), PROTOCOL_ERROR),
)
HALF_CLOSED = (
    Case("9113/5.1", "sends DATA after its end", HALF + data(1, MESSAGE), LATE),
    Case("9113/5.1", "sends empty DATA after its end", HALF + data(1, b"", END_STREAM), LATE),
    Case("9113/5.1", "sends HEADERS after its end", HALF + TRAILERS, LATE),
    Case("9113/5.1", "sends HEADERS after its trailers", OPEN + TRAILERS * 2, LATE),
    Case("9113/5.1", "continues after its end", HALF + frame(CONTINUATION, END_HEADERS, 1), PROTOCOL_ERROR),
    Case("9113/5.1", "opens a window after its end", HALF + window_update(1, 9), IGNORED),
    Case("9113/5.1", "resets after its end", HALF + rst_stream(1), IGNORED),
    Case("9113/5.1", "prioritizes after its end", HALF + priority(1), IGNORED),
)
RESETS = (
    Case("9113/5.1", "sends DATA after a reset", RESET + data(1, MESSAGE), LATE),
    Case("9113/5.1", "sends HEADERS after a reset", RESET + TRAILERS, CLOSED),
    Case("9113/5.1", "opens a window after a reset", RESET + window_update(1, 9), IGNORED),
    Case("9113/5.1", "resets twice", RESET + rst_stream(1), IGNORED),
    Case("9113/5.1", "prioritizes after a reset", RESET + priority(1), IGNORED),
    Case("9113/5.1", "continues after a reset", RESET + frame(CONTINUATION, END_HEADERS, 1), PROTOCOL_ERROR),
)
ENDED = (
    Case("9113/5.1", "sends DATA after the answer", ASK, LATE, then=data(1, MESSAGE)),
    Case("9113/5.1", "sends HEADERS after the answer", ASK, CLOSED, then=TRAILERS),
    Case("9113/5.1", "asks again on a stream that was answered", ASK, CLOSED, then=ASK),
    Case("9113/5.1", "opens a window after the answer", ASK, OK, then=window_update(1, 9)),
    Case("9113/5.1", "resets after the answer", ASK, OK, then=rst_stream(1)),
    Case(
        "9113/5.1",
        "sends DATA on a stream that the server has reset",
        headers(1, call(HOLD, b"\0\1A\1b")) + data(1, MESSAGE) * 9,
        reset("PROTOCOL_ERROR"),
    ),
    Case(
        "9113/5.1",
        "sends HEADERS on a stream that the server has reset",
        headers(1, call(HOLD, b"\0\1A\1b")) + TRAILERS,
        reset("PROTOCOL_ERROR"),
    ),
)
IDS = (
    Case("9113/5.1.1", "opens a stream of even id", headers(2, CALL, END_STREAM), PROTOCOL_ERROR, stream=2),
    Case("9113/5.1.1", "sends DATA on a stream of even id", data(2, MESSAGE), PROTOCOL_ERROR, stream=2),
    Case("9113/5.1.1", "resets a stream of even id", rst_stream(2), PROTOCOL_ERROR, stream=2),
    Case(
        "9113/5.1.1",
        "opens a stream below the last",
        headers(5, CALL, END_STREAM) + headers(3, CALL, END_STREAM),
        PROTOCOL_ERROR,
        stream=3,
    ),
    Case("9113/5.1.1", "skips ids", headers(99, CALL, END_STREAM), OK, stream=99),
    Case(
        "9113/5.1.1",
        "sends DATA on a stream that it skipped",
        headers(5, CALL, END_STREAM) + data(3, MESSAGE),
        reset("STREAM_CLOSED"),
        stream=3,
    ),
    Case(
        "9113/5.1.1",
        "opens the window of a stream that it skipped",
        headers(5, CALL, END_STREAM) + window_update(3, 9),
        IGNORED,
        stream=3,
    ),
    Case(
        "9113/5.1.2",
        "opens as many streams as it may",
        b"".join(headers(2 * at + 1, call(HOLD)) for at in range(STREAMS_MAX - 1)),
        IGNORED,
    ),
    Case(
        "9113/5.1.2",
        "opens a stream more than it may",
        b"".join(headers(2 * at + 1, call(HOLD)) for at in range(STREAMS_MAX + 1)),
        reset("REFUSED_STREAM"),
        stream=2 * STREAMS_MAX + 1,
    ),
    Case(
        "9113/5.1.2",
        "opens streams where it has reset others",
        b"".join(headers(2 * at + 1, call(HOLD)) + rst_stream(2 * at + 1) for at in range(STREAMS_MAX + 1))
        + headers(999, CALL, END_STREAM),
        OK,
        stream=999,
    ),
)
CASES = (*IDLE, *HALF_CLOSED, *RESETS, *ENDED, *IDS)
