"""RFC 9113, sections 5.2, 6.9 and 6.5.3: the windows of both sides."""

from tests.conformance.http2.case import IGNORED, OK, Case, broken, reset, sent
from tests.conformance.http2.frames import (
    CALL,
    END_STREAM,
    HOLD,
    MESSAGE,
    SOURCE,
    WINDOW_MAX,
    call,
    data,
    headers,
    settings,
    window_update,
)

PULL = headers(1, call(SOURCE), END_STREAM)
OPEN = headers(1, call(HOLD))
ROOM = WINDOW_MAX - 65_535
TOO_MUCH = broken("FLOW_CONTROL_ERROR")

CASES = (
    Case("9113/6.9", "opens the connection's window by nothing", window_update(0, 0), broken("PROTOCOL_ERROR")),
    Case("9113/6.9", "opens a stream's window by nothing", OPEN + window_update(1, 0), reset("PROTOCOL_ERROR")),
    Case(
        "9113/6.9",
        "sets the reserved bit of an increment",
        window_update(0, 1 << 31 | 1) + headers(1, CALL, END_STREAM),
        OK,
    ),
    Case(
        "9113/6.9",
        "sets the reserved bit of an increment of nothing",
        window_update(0, 1 << 31),
        broken("PROTOCOL_ERROR"),
    ),
    Case("9113/6.9.1", "opens the connection's window as far as it goes", window_update(0, ROOM), IGNORED),
    Case("9113/6.9.1", "opens the connection's window too far", window_update(0, ROOM + 1), TOO_MUCH),
    Case(
        "9113/6.9.1",
        "opens the connection's window too far in steps",
        window_update(0, ROOM) + window_update(0, 1),
        TOO_MUCH,
    ),
    Case("9113/6.9.1", "opens a stream's window as far as it goes", OPEN + window_update(1, ROOM), IGNORED),
    Case(
        "9113/6.9.1", "opens a stream's window too far", OPEN + window_update(1, ROOM + 1), reset("FLOW_CONTROL_ERROR")
    ),
    Case(
        "9113/6.9.1",
        "opens a stream's window too far in steps",
        OPEN + window_update(1, ROOM) + window_update(1, 1),
        reset("FLOW_CONTROL_ERROR"),
    ),
    Case("9113/6.9.1", "gives a stream no window", settings((4, 0)) + PULL, sent(0), counts_data=True),
    Case("9113/6.9.1", "gives a stream a window of a byte", settings((4, 1)) + PULL, sent(1), counts_data=True),
    Case(
        "9113/6.9.1",
        "opens the window of a stream",
        settings((4, 1)) + PULL + window_update(1, 10),
        sent(11),
        counts_data=True,
    ),
    Case(
        "9113/6.9.1",
        "leaves the connection's window as it is",
        settings((4, 2**20)) + PULL,
        sent(65_535),
        counts_data=True,
    ),
    Case("9113/6.9.1", "opens both windows", settings((4, 2**20)) + window_update(0, 2**20) + PULL, OK),
    Case(
        "9113/6.9.1",
        "opens the connection's window and not the stream's",
        window_update(0, 2**20) + PULL,
        sent(65_535),
        counts_data=True,
    ),
    Case(
        "9113/6.9.2",
        "opens the windows of all streams by SETTINGS",
        settings((4, 0)) + PULL + settings((4, 20)),
        sent(20),
        counts_data=True,
    ),
    Case(
        "9113/6.9.2",
        "takes back a window that is used up, and opens it again",
        settings((4, 10)) + PULL + headers(3, CALL, END_STREAM),
        sent(15),
        then=settings((4, 0)) + window_update(1, 15),
        after=3,
        counts_data=True,
    ),
    Case(
        "9113/6.9.2",
        "takes back a window that is used up, and leaves it below nothing",
        settings((4, 10)) + PULL + headers(3, CALL, END_STREAM),
        sent(10),
        then=settings((4, 0)) + window_update(1, 9),
        after=3,
        counts_data=True,
    ),
    Case(
        "9113/6.9.2",
        "takes a window back by SETTINGS, and opens it again",
        settings((4, 10)) + PULL + settings((4, 0)) + window_update(1, 15),
        sent(15),
        counts_data=True,
    ),
    Case(
        "9113/6.9.2", "sets a window twice in one SETTINGS", settings((4, 0), (4, 7)) + PULL, sent(7), counts_data=True
    ),
    Case(
        "9113/6.9.2",
        "overflows a stream's window by SETTINGS",
        OPEN + window_update(1, ROOM) + settings((4, 65_536)),
        TOO_MUCH,
    ),
    Case(
        "9113/6.9.2",
        "leaves the connection's window out of SETTINGS",
        settings((4, WINDOW_MAX)) + window_update(0, ROOM),
        IGNORED,
    ),
    Case(
        "9113/5.2.1",
        "sends more than the stream's window",
        OPEN + data(1, bytes(16_384)) * 12,
        reset("FLOW_CONTROL_ERROR"),
    ),
    Case(
        "9113/6.9",
        "sends empty DATA where the window is of no account",
        headers(1, CALL) + data(1, b"") + data(1, MESSAGE) + data(1, b"", END_STREAM),
        OK,
    ),
)
