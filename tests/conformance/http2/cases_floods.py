"""RFC 9113, section 10.5: what a client may do only so often. Our limits are those of `wire.http2.guard`."""

from struct import pack

from tests.conformance.http2.case import IGNORED, Case, broken
from tests.conformance.http2.frames import (
    CALL,
    CONTINUATION,
    HEADERS,
    HOLD,
    PING,
    UNKNOWN,
    call,
    data,
    frame,
    headers,
    priority,
    rst_stream,
    settings,
    window_update,
)

CALM = broken("ENHANCE_YOUR_CALM")
OPEN = headers(1, call(HOLD))
PINGED = frame(PING, 0, 0, bytes(8))
MALFORMED = call(HOLD, b"\0\1A\1b")


def opened_and_reset(count: int) -> bytes:
    return b"".join(headers(at, call(HOLD)) + rst_stream(at) for at in range(1, 2 * count, 2))


def made_us_reset(count: int) -> bytes:
    """Each stream gets a window of nothing, which the server has to answer by a reset."""
    return b"".join(headers(at, call(HOLD)) + window_update(at, 0) for at in range(1, 2 * count, 2))


CASES = (
    Case("9113/10.5", "opens and resets 500 streams", opened_and_reset(500), IGNORED, stream=999),
    Case("9113/10.5", "opens and resets 8,000 streams", opened_and_reset(8000), CALM),
    Case("9113/10.5", "has 2,000 streams reset", made_us_reset(2000), CALM),
    Case(
        "9113/10.5",
        "sends 2,000 malformed requests",
        b"".join(headers(at, MALFORMED) for at in range(1, 4000, 2)),
        CALM,
    ),
    Case(
        "9113/10.5",
        "opens 10,000 streams at once",
        b"".join(headers(at, call(HOLD)) for at in range(1, 20_000, 2)),
        CALM,
    ),
    Case("9113/10.5", "pings 500 times", PINGED * 500, IGNORED),
    Case("9113/10.5", "pings 5,000 times", PINGED * 5000, CALM),
    Case("9113/10.5", "sends 5,000 SETTINGS", settings((4, 65_535)) * 5000, CALM),
    Case("9113/10.5", "prioritizes 5,000 times", OPEN + priority(1) * 5000, CALM),
    Case("9113/10.5", "sends 5,000 frames of unknown type", frame(UNKNOWN, 0, 0) * 5000, CALM),
    Case("9113/10.5", "sends 100,000 empty DATA", OPEN + data(1, b"") * 100_000, CALM),
    Case("9113/10.5", "sends 100,000 DATA of padding", OPEN + data(1, b"\0", 8) * 100_000, CALM),
    Case(
        "9113/10.5",
        "sends 100,000 empty CONTINUATION",
        frame(HEADERS, 0, 1, CALL) + frame(CONTINUATION, 0, 1) * 100_000,
        CALM,
    ),
    Case(
        "9113/10.5",
        "sends CONTINUATION without end",
        frame(HEADERS, 0, 1, CALL) + frame(CONTINUATION, 0, 1, b"\0\1x\1y" * 200) * 200,
        CALM,
    ),
    Case("9113/10.5", "opens a window 100,000 times by a byte", OPEN + frame(8, 0, 1, pack(">I", 1)) * 100_000, CALM),
)
