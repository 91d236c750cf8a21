"""The server's side of a connection, frame by frame."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinference.wire.http2 import frames
from kinference.wire.http2.connection import Http2Connection
from kinference.wire.http2.events import (
    ConnectionEnded,
    DataReceived,
    Event,
    PingAcknowledged,
    RequestReceived,
    StreamDrained,
    StreamReset,
)
from kinference.wire.http2.frames import ErrorCode, FrameType
from kinference.wire.http2.guard import Http2Limits, Nuisance, Rate
from kinference.wire.http2.headers import literal
from kinference.wire.http2.requests import Request
from tests.unit.wire.http2.peer import HELLO, REQUEST, Talk, data, faults, same, split

frame = frames.frame
OK = literal(b":status", b"200")
STOP = b"\x88"


def test_the_greeting_tells_limits_and_opens_the_connections_window() -> None:
    kinds = [kind for kind, _, _, _ in Talk().greeting]
    assert kinds == [FrameType.SETTINGS, FrameType.WINDOW_UPDATE, FrameType.SETTINGS]


def test_a_request_with_a_body_is_told_piece_by_piece() -> None:
    talk = Talk()
    (request,) = talk.feed(talk.request(1))
    assert isinstance(request, RequestReceived)
    assert (request.stream_id, request.head.path, request.ended) == (1, b"/s/m", False)
    assert talk.feed(data(1, b"one") + data(1, b"", end=True)) == [
        DataReceived(1, b"one", ended=False),
        DataReceived(1, b"", ended=True),
    ]


@pytest.mark.parametrize("body", [b"", b"all of it"])
def test_a_request_whose_last_frame_is_right_behind_it_is_told_in_one(body: bytes) -> None:
    talk = Talk()
    (request,) = talk.feed(talk.request(1) + data(1, body, end=True))
    assert isinstance(request, RequestReceived)
    assert (request.stream_id, request.head.path, request.ended, request.data) == (1, b"/s/m", True, body)
    assert talk.feed(data(1, b"late")) == [StreamReset(1, ErrorCode.STREAM_CLOSED, by_peer=False)]


@pytest.mark.parametrize(
    ("more", "event"),
    [
        (frames.rst_stream(1, ErrorCode.CANCEL), StreamReset(1, ErrorCode.CANCEL, by_peer=True)),
        (data(1, b"late"), StreamReset(1, ErrorCode.STREAM_CLOSED, by_peer=False)),
        (frames.window_update(1, 2**31 - 1), StreamReset(1, ErrorCode.FLOW_CONTROL_ERROR, by_peer=False)),
        (frames.window_update(0, 0), ConnectionEnded(1, "a window of the connection that grows by nothing")),
    ],
)
def test_whatever_else_comes_for_a_request_in_the_read_that_brought_it_whole_makes_it_go_on(
    more: bytes, event: Event[Request]
) -> None:
    talk = Talk()
    (request, end) = talk.feed(talk.request(1) + data(1, b"all", end=True) + more)
    assert isinstance(request, RequestReceived)
    assert end == event
    assert not talk.answers.unopened
    assert talk.answers.is_sendable(1) == isinstance(event, ConnectionEnded)


def test_requests_that_came_whole_count_as_streams() -> None:
    talk = Talk(replace(Http2Limits(), streams_max=2))
    talk.feed(b"".join(talk.request(number) + data(number, b"all", end=True) for number in (1, 3, 5)))
    assert list(talk.answers.unopened) == [1, 3]
    assert faults(talk.sent()) == [("stream", 5, ErrorCode.REFUSED_STREAM)]


@pytest.mark.parametrize(("length", "is_fine"), [(3, True), (2, False), (4, False)])
def test_a_declared_length_is_held_against_a_body_right_behind(length: int, is_fine: bool) -> None:
    talk = Talk()
    events = talk.feed(talk.request(1, ("content-length", str(length))) + data(1, b"abc", end=True))
    last = DataReceived(1, b"abc", ended=True) if is_fine else StreamReset(1, ErrorCode.PROTOCOL_ERROR, by_peer=False)
    assert events[1:] == [last]


def test_a_body_right_behind_is_counted_until_its_stream_ends_and_refused_over_the_limit() -> None:
    talk = Talk(replace(Http2Limits(), stream_window=100, untaken_bytes_max=150))
    talk.feed(talk.request(1) + data(1, bytes(100), end=True))
    assert talk.connection._intake.untaken == 0, "until it is known whether it goes on"
    talk.answers.open(1)
    assert talk.connection._intake.untaken == 100
    (_, too_much) = talk.feed(talk.request(3) + data(3, bytes(60), end=True))
    assert too_much == StreamReset(3, ErrorCode.ENHANCE_YOUR_CALM, by_peer=False)
    (_, too_long) = talk.feed(talk.request(5) + data(5, bytes(101), end=True))
    assert too_long == StreamReset(5, ErrorCode.FLOW_CONTROL_ERROR, by_peer=False)
    talk.answers.send_trailers(1, OK)
    assert talk.connection._intake.untaken == 0


def test_a_request_that_is_malformed_is_reset_and_its_body_ignored() -> None:
    talk = Talk()
    assert talk.feed(talk.request(1, ("Upper", "1")) + data(1, b"abc", end=True)) == []
    assert talk.connection._intake.untaken == 0
    assert faults(talk.sent()) == [("stream", 1, ErrorCode.PROTOCOL_ERROR)]


def test_the_same_block_means_the_same_until_the_table_changes() -> None:
    talk = Talk()
    talk.feed(talk.request(1, ("x-a", "1")))
    first = talk.feed(talk.request(3, ("x-a", "1")))[0]
    again = talk.feed(talk.request(5, ("x-a", "1")))[0]
    assert isinstance(first, RequestReceived)
    assert isinstance(again, RequestReceived)
    assert first.head is again.head
    block = talk.block(*REQUEST, ("x-a", "1"))
    talk.feed(talk.request(7, ("x-b", "2")))
    (shifted,) = talk.feed(frames.headers(0, 9, block))
    assert isinstance(shifted, RequestReceived)
    assert [(name, value) for name, value, _, _ in shifted.head.fields] != [(b"x-a", b"1")]


def test_trailers_end_a_request() -> None:
    talk = Talk()
    talk.open()
    trailers = frames.headers(frames.END_STREAM, 1, talk.block(("x-sum", "1")))
    assert talk.feed(data(1, b"x") + trailers) == [DataReceived(1, b"x", ended=False), DataReceived(1, b"", ended=True)]


def test_a_header_block_may_go_on_in_continuations() -> None:
    talk = Talk()
    block = talk.block(*REQUEST)
    parts = frame(FrameType.HEADERS, frames.END_STREAM, 1, block[:3]) + frame(FrameType.CONTINUATION, 0, 1, block[3:6])
    assert talk.feed(parts) == []
    (request,) = talk.feed(frame(FrameType.CONTINUATION, frames.END_HEADERS, 1, block[6:]))
    assert isinstance(request, RequestReceived)
    assert request.ended


def test_padding_and_priority_are_taken_off_and_padding_is_credited() -> None:
    talk = Talk()
    flags = frames.PADDED | frames.PRIORITY_FIELDS | frames.END_HEADERS
    block = b"\x02" + bytes(5) + talk.block(*REQUEST) + b"\0\0"
    assert len(talk.feed(frame(FrameType.HEADERS, flags, 1, block))) == 1
    assert talk.feed(frame(FrameType.DATA, frames.PADDED, 1, b"\x03abc\0\0\0")) == [
        DataReceived(1, b"abc", ended=False)
    ]


def test_a_reset_by_the_peer_is_told_apart_from_an_end() -> None:
    talk = Talk()
    talk.open()
    assert talk.feed(frames.rst_stream(1, ErrorCode.CANCEL)) == [StreamReset(1, 8, by_peer=True)]
    assert not talk.answers.is_sendable(1)


def test_ping_and_settings_are_answered() -> None:
    talk = Talk()
    talk.feed(frame(FrameType.PING, 0, 0, b"12345678") + frame(FrameType.SETTINGS, 0, 0))
    assert talk.sent() == [(6, 1, 0, b"12345678"), (4, 1, 0, b"")]
    assert talk.feed(frame(FrameType.PING, frames.ACK, 0, b"kinferen")) == [PingAcknowledged()]


def test_a_frame_of_unknown_type_and_priority_are_ignored() -> None:
    talk = Talk()
    assert talk.feed(frame(FrameType.PRIORITY, 0, 9, bytes(5)) + b"\0\0\1\x63\0\0\0\0\0x") == []
    assert talk.feed(frame(FrameType.GOAWAY, 0, 0, bytes(8))) == []
    talk.open()


# --- flow control --------------------------------------------------------------------------------


def test_what_larger_windows_let_go_follows_the_acknowledgement() -> None:
    talk = Talk()
    talk.open(end=True)
    talk.answers.send_headers(1, OK)
    talk.answers.send_data(1, bytes(frames.WINDOW_DEFAULT + 500))
    talk.sent()
    talk.feed(frames.window_update(0, 1000) + frames.settings({4: frames.WINDOW_DEFAULT + 1000}))
    sent = [(kind, flags, len(payload)) for kind, flags, _, payload in talk.sent()]
    assert sent == [(FrameType.SETTINGS, frames.ACK, 0), (FrameType.DATA, 0, 500)]


def test_a_window_always_has_room_for_the_largest_message_however_the_taken_bytes_fall() -> None:
    limits = Http2Limits()
    talk = Talk(limits)
    talk.open()
    for size in (500_000, 60_000, 5, 1_048_585, 65_535, 1_048_585):
        for at in range(0, size, 60_000):
            assert len(talk.feed(data(1, bytes(min(60_000, size - at))))) == 1
        talk.answers.consume(1, size)
        assert limits.stream_window - talk.connection._streams.live[1].owed >= 1_048_585
        assert not talk.connection.is_closed


def test_the_connections_credit_comes_back_as_bytes_arrive() -> None:
    talk = Talk(Http2Limits(connection_window=131_072))
    for stream_id in (1, 3):  # nobody takes a byte
        talk.open(stream_id)
        talk.feed(data(stream_id, bytes(40_000)))
    assert talk.sent() == [(8, 0, 0, (80_000).to_bytes(4))]


def test_streams_with_half_a_message_each_do_not_lock_each_other_out() -> None:
    talk = Talk(Http2Limits(connection_window=131_072))
    for number in range(100):
        talk.open(2 * number + 1)
        talk.feed(data(2 * number + 1, bytes(60_000)))
    assert not talk.connection.is_closed
    assert talk.feed(data(1, b"rest")) == [DataReceived(1, b"rest", ended=False)]


def test_the_stream_that_brings_more_than_a_connection_may_hold_is_refused_and_the_others_go_on() -> None:
    talk = Talk(Http2Limits(untaken_bytes_max=100_000))
    talk.open(1)
    talk.open(3)
    talk.feed(data(1, bytes(60_000)))
    assert talk.feed(data(3, bytes(60_000))) == [StreamReset(3, ErrorCode.ENHANCE_YOUR_CALM, by_peer=False)]
    assert talk.feed(data(1, bytes(40_000))) == [DataReceived(1, bytes(40_000), ended=False)]


def test_no_byte_of_credit_is_lost_over_many_streams_however_they_end() -> None:
    limits = Http2Limits(stream_window=70_000, connection_window=140_000, untaken_bytes_max=3_000)
    talk = Talk(limits)
    for number in range(200):
        stream_id = 2 * number + 1
        talk.open(stream_id)
        talk.feed(data(stream_id, bytes(1_000)))
        talk.answers.consume(stream_id, number % 3 * 500)
        match number % 4:
            case 0:
                talk.feed(frames.rst_stream(stream_id, 8))
            case 1:
                talk.answers.send_trailers(stream_id, OK)
                talk.feed(data(stream_id, bytes(500), end=True))
            case 2:
                talk.feed(data(stream_id, b"", end=True))
                talk.answers.send_trailers(stream_id, OK)
            case _:
                talk.answers.reset(stream_id, ErrorCode.CANCEL)
    intake = talk.connection._intake
    assert intake.window + intake.owed == limits.connection_window
    assert intake.untaken == 0


def test_what_a_peer_cannot_take_waits_and_its_end_is_told() -> None:
    talk = Talk()
    talk.feed(frames.settings({4: 10}))
    talk.open(end=True)
    talk.answers.send_headers(1, OK)
    assert not talk.answers.send_data(1, b"x" * 25)
    assert talk.feed(frames.window_update(1, 10)) == []
    assert talk.feed(frames.settings({4: 20})) == [StreamDrained(1)]
    assert [len(payload) for kind, _, _, payload in talk.sent() if kind == 0] == [10, 10, 5]


def test_a_pause_holds_data_and_its_end_lets_it_go() -> None:
    talk = Talk()
    talk.open(end=True)
    talk.connection.pause()
    assert not talk.answers.send_data(1, b"x")
    assert talk.sent() == []
    assert talk.connection.resume() == [StreamDrained(1)]
    assert len(talk.sent()) == 1


# --- faults --------------------------------------------------------------------------------------

ENDED: Callable[[Talk], bytes] = lambda talk: talk.request(1, end=True)  # noqa: E731 - rows of a table
CASES: list[tuple[str, Callable[[Talk], bytes], str, ErrorCode]] = [
    ("DATA on stream 0", lambda _: data(0, b"x"), "connection", ErrorCode.PROTOCOL_ERROR),
    ("DATA on an idle stream", lambda _: data(1, b"x"), "connection", ErrorCode.PROTOCOL_ERROR),
    ("DATA after the end", lambda t: ENDED(t) + data(1, b"x"), "stream", ErrorCode.STREAM_CLOSED),
    ("HEADERS after the end", lambda t: ENDED(t) + t.request(1), "stream", ErrorCode.STREAM_CLOSED),
    ("HEADERS on stream 0", lambda t: t.request(0), "connection", ErrorCode.PROTOCOL_ERROR),
    ("HEADERS on an even stream", lambda t: t.request(2), "connection", ErrorCode.PROTOCOL_ERROR),
    ("HEADERS on a lower stream", lambda t: t.request(5) + t.request(3), "connection", ErrorCode.PROTOCOL_ERROR),
    ("HEADERS after a reset", lambda t: t.request(1) + frames.rst_stream(1, 8) + t.request(1), "connection", ErrorCode.STREAM_CLOSED),
    ("more padding than payload", lambda t: t.request(1) + frame(FrameType.DATA, 8, 1, b"\x05ab"), "connection", ErrorCode.PROTOCOL_ERROR),
    ("HEADERS too short for priority", lambda _: frame(FrameType.HEADERS, 0x24, 1, b"abc"), "connection", ErrorCode.FRAME_SIZE_ERROR),
    ("HEADERS padded over their priority", lambda _: frame(FrameType.HEADERS, 0x2C, 1, b"\x05" + bytes(5)), "connection", ErrorCode.PROTOCOL_ERROR),
    ("a broken header block", lambda _: frames.headers(0, 1, b"\x80"), "connection", ErrorCode.COMPRESSION_ERROR),
    ("a malformed request", lambda t: frames.headers(0, 1, t.block(("x", "y"))), "stream", ErrorCode.PROTOCOL_ERROR),
    ("trailers that do not end", lambda t: t.request(1) + frames.headers(0, 1, t.block(("x", "y"))), "stream", ErrorCode.PROTOCOL_ERROR),
    ("trailers with a path", lambda t: t.request(1) + frames.headers(1, 1, t.block((":path", "/"))), "stream", ErrorCode.PROTOCOL_ERROR),
    ("too long a body", lambda t: t.request(1, ("content-length", "1")) + data(1, b"ab"), "stream", ErrorCode.PROTOCOL_ERROR),
    ("too short a body", lambda t: t.request(1, ("content-length", "3")) + data(1, b"ab", end=True), "stream", ErrorCode.PROTOCOL_ERROR),
    ("a body that never came", lambda t: t.request(1, ("content-length", "3"), end=True), "stream", ErrorCode.PROTOCOL_ERROR),
    ("PRIORITY on stream 0", lambda _: frame(FrameType.PRIORITY, 0, 0, bytes(5)), "connection", ErrorCode.PROTOCOL_ERROR),
    ("PRIORITY of a wrong length", lambda t: t.request(1) + frame(FrameType.PRIORITY, 0, 1, bytes(4)), "stream", ErrorCode.FRAME_SIZE_ERROR),
    ("PRIORITY of a wrong length on an idle stream", lambda _: frame(FrameType.PRIORITY, 0, 1, bytes(4)), "connection", ErrorCode.FRAME_SIZE_ERROR),
    ("RST_STREAM on stream 0", lambda _: frames.rst_stream(0, 8), "connection", ErrorCode.PROTOCOL_ERROR),
    ("RST_STREAM on an idle stream", lambda _: frames.rst_stream(1, 8), "connection", ErrorCode.PROTOCOL_ERROR),
    ("RST_STREAM of a wrong length", lambda _: frame(FrameType.RST_STREAM, 0, 1, bytes(3)), "connection", ErrorCode.FRAME_SIZE_ERROR),
    ("SETTINGS on a stream", lambda _: frame(FrameType.SETTINGS, 0, 1), "connection", ErrorCode.PROTOCOL_ERROR),
    ("SETTINGS of a wrong length", lambda _: frame(FrameType.SETTINGS, 0, 0, bytes(5)), "connection", ErrorCode.FRAME_SIZE_ERROR),
    ("an acknowledgement with payload", lambda _: frame(FrameType.SETTINGS, 1, 0, bytes(6)), "connection", ErrorCode.FRAME_SIZE_ERROR),
    ("a window too large by settings", lambda t: t.request(1) + frames.window_update(1, 2**31 - 65_536) + frames.settings({4: 65_537}), "connection", ErrorCode.FLOW_CONTROL_ERROR),
    ("PUSH_PROMISE", lambda _: frame(FrameType.PUSH_PROMISE, 4, 1, bytes(4)), "connection", ErrorCode.PROTOCOL_ERROR),
    ("PING on a stream", lambda _: frame(FrameType.PING, 0, 1, bytes(8)), "connection", ErrorCode.PROTOCOL_ERROR),
    ("PING of a wrong length", lambda _: frame(FrameType.PING, 0, 0, bytes(6)), "connection", ErrorCode.FRAME_SIZE_ERROR),
    ("GOAWAY on a stream", lambda _: frame(FrameType.GOAWAY, 0, 1, bytes(8)), "connection", ErrorCode.PROTOCOL_ERROR),
    ("GOAWAY of a wrong length", lambda _: frame(FrameType.GOAWAY, 0, 0, bytes(7)), "connection", ErrorCode.FRAME_SIZE_ERROR),
    ("a connection's window grown by 0", lambda _: frames.window_update(0, 0), "connection", ErrorCode.PROTOCOL_ERROR),
    ("a stream's window grown by 0", lambda t: t.request(1) + frames.window_update(1, 0), "stream", ErrorCode.PROTOCOL_ERROR),
    ("a connection's window too large", lambda _: frames.window_update(0, 2**31 - 1), "connection", ErrorCode.FLOW_CONTROL_ERROR),
    ("a stream's window too large", lambda t: t.request(1) + frames.window_update(1, 2**31 - 1), "stream", ErrorCode.FLOW_CONTROL_ERROR),
    ("WINDOW_UPDATE on an idle stream", lambda _: frames.window_update(1, 1), "connection", ErrorCode.PROTOCOL_ERROR),
    ("WINDOW_UPDATE of a wrong length", lambda _: frame(FrameType.WINDOW_UPDATE, 0, 0, bytes(3)), "connection", ErrorCode.FRAME_SIZE_ERROR),
    ("CONTINUATION of nothing", lambda _: frame(FrameType.CONTINUATION, 4, 1, b""), "connection", ErrorCode.PROTOCOL_ERROR),
    ("a block broken off by DATA", lambda _: frame(FrameType.HEADERS, 0, 1, b"") + data(1, b"x"), "connection", ErrorCode.PROTOCOL_ERROR),
    ("a block broken off by another stream", lambda _: frame(FrameType.HEADERS, 0, 1, b"") + frame(FrameType.CONTINUATION, 4, 3, b""), "connection", ErrorCode.PROTOCOL_ERROR),
    ("a frame too large", lambda t: t.request(1) + data(1, bytes(65_537)), "connection", ErrorCode.FRAME_SIZE_ERROR),
    ("a header block without end", lambda _: frame(FrameType.HEADERS, 0, 1, bytes(60_000)) + frame(FrameType.CONTINUATION, 0, 1, bytes(60_000)), "connection", ErrorCode.ENHANCE_YOUR_CALM),
    ("too many header fields", lambda t: t.request(1, ("x", "v" * 16_384)), "stream", ErrorCode.ENHANCE_YOUR_CALM),
]  # fmt: skip


@pytest.mark.parametrize(("name", "received", "scope", "code"), CASES, ids=[case[0] for case in CASES])
def test_a_broken_rule_has_its_code_and_its_scope(
    name: str, received: Callable[[Talk], bytes], scope: str, code: ErrorCode
) -> None:
    talk = Talk()
    events = talk.feed(received(talk))
    (found_scope, _, found_code), *more = faults(talk.sent())
    assert (found_scope, ErrorCode(found_code)) == (scope, code)
    assert not more
    if scope == "connection":
        assert isinstance(events[-1], ConnectionEnded)
        assert talk.feed(talk.request(99)) == []
    else:
        assert len(talk.feed(talk.request(99))) == 1


def test_a_client_that_is_none_is_turned_away() -> None:
    connection = Http2Connection(same, Http2Limits(), 0)
    (ended,) = connection.feed(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", 0)
    assert isinstance(ended, ConnectionEnded)


def test_the_first_frame_is_settings() -> None:
    connection = Http2Connection(same, Http2Limits(), 0)
    (ended,) = connection.feed(frames.PREFACE + frame(FrameType.PING, 0, 0, bytes(8)), 0)
    assert isinstance(ended, ConnectionEnded)


@pytest.mark.parametrize("window", ["stream", "connection"])
def test_more_than_a_window_is_a_fault(window: str) -> None:
    limits = Http2Limits(stream_window=65_535 if window == "stream" else 10**6, connection_window=70_000)
    talk = Talk(limits)
    talk.open()
    talk.feed(data(1, bytes(30_000)) + data(1, bytes(36_000 if window == "stream" else 40_001)))
    assert [(scope, code) for scope, _, code in faults(talk.sent())] == [(window, ErrorCode.FLOW_CONTROL_ERROR)]


def test_more_streams_than_allowed_are_refused_and_the_others_go_on() -> None:
    talk = Talk(Http2Limits(streams_max=2))
    for stream_id in (1, 3):
        talk.open(stream_id)
    talk.feed(talk.request(5))
    assert faults(talk.sent()) == [("stream", 5, ErrorCode.REFUSED_STREAM)]
    assert talk.feed(data(1, b"x")) == [DataReceived(1, b"x", ended=False)]
    talk.feed(frames.rst_stream(1, 8))
    talk.open(7)


def floods() -> dict[str, Callable[[Talk, int], bytes]]:
    return {
        "resets": lambda t, n: t.request(2 * n + 3) + frames.rst_stream(2 * n + 3, 8),
        "settings": lambda t, n: frame(FrameType.SETTINGS, 0, 0),
        "pings": lambda t, n: frame(FrameType.PING, 0, 0, bytes(8)),
        "priorities": lambda t, n: frame(FrameType.PRIORITY, 0, 3, bytes(5)),
        "unknown frames": lambda t, n: b"\0\0\0\x63\0\0\0\0\0",
        "empty data": lambda t, n: data(1, b""),
        "window updates": lambda t, n: frames.window_update(1, 1),
        "malformed requests": lambda t, n: frames.headers(0, 2 * n + 3, b"\x82"),
        "data of ended streams": lambda t, n: data(1, b"") if n else frames.rst_stream(1, 0),
    }


@pytest.mark.parametrize("flood", floods().values(), ids=floods().keys())
def test_a_flood_is_cut_off_and_a_burst_is_not(flood: Callable[[Talk, int], bytes]) -> None:
    talk = Talk(Http2Limits(rates={kind: Rate(100, 1) for kind in Nuisance}))
    talk.open()
    for number in range(90):
        talk.feed(flood(talk, number))
    assert not talk.connection.is_closed
    for number in range(90, 120):
        talk.feed(flood(talk, number))
    assert faults(talk.sent())[-1] == ("connection", 0, ErrorCode.ENHANCE_YOUR_CALM)


def test_a_reader_may_grow_its_windows_as_often_as_it_reads() -> None:
    talk = Talk(Http2Limits(rates={kind: Rate(100, 1) for kind in Nuisance}))
    talk.open()
    for _ in range(1000):
        talk.feed(frames.window_update(1, 16_384) + frames.window_update(0, 16_384))
    assert not talk.connection.is_closed


def test_continuations_are_cut_off_by_their_number_too() -> None:
    talk = Talk(replace(Http2Limits(), rates={kind: Rate(100, 1) for kind in Nuisance}))
    talk.feed(frame(FrameType.HEADERS, 0, 1, b""))
    for _ in range(101):
        talk.feed(frame(FrameType.CONTINUATION, 0, 1, b""))
    assert faults(talk.sent())[-1] == ("connection", 0, ErrorCode.ENHANCE_YOUR_CALM)


def test_answers_that_nobody_reads_end_the_connection() -> None:
    talk = Talk(
        Http2Limits(answers_bytes_max=100, output_bytes_max=100, rates={kind: Rate(1e9, 1) for kind in Nuisance})
    )
    talk.connection.pause()
    for _ in range(20):
        talk.feed(frame(FrameType.PING, 0, 0, bytes(8)))
    assert talk.connection.is_closed


def test_a_goodbye_comes_in_two_steps() -> None:
    talk = Talk()
    talk.open()
    talk.connection.announce_end()
    assert len(talk.feed(talk.request(3))) == 1, "what was on its way is still taken"
    talk.connection.close()
    talk.connection.close()
    goodbyes = [int.from_bytes(payload[:4]) for kind, _, _, payload in talk.sent() if kind == FrameType.GOAWAY]
    assert goodbyes == [2**31 - 1, 3]


# --- any bytes, cut anywhere ---------------------------------------------------------------------


def session() -> bytes:
    """All kinds of frames, and a fault at the end."""
    talk = Talk()
    first, block = talk.request(1), talk.block(*REQUEST, ("x-a", "1"))
    return b"".join(
        (
            first,
            data(1, b"hello"),
            frame(FrameType.DATA, frames.PADDED, 1, b"\x01x\0"),
            frame(FrameType.HEADERS, 0, 3, block[:4]) + frame(FrameType.CONTINUATION, 4, 3, block[4:]),
            frames.window_update(0, 10) + frames.window_update(3, 10),
            frame(FrameType.PING, 0, 0, bytes(8)) + frames.settings({4: 100}),
            frames.rst_stream(3, 8),
            talk.request(5, end=True),
            data(1, b"", end=True),
            frames.headers(0, 7, b"\x82"),
            frame(FrameType.PING, frames.ACK, 0, bytes(8)),
            talk.request(4),
        )
    )


def outcome(pieces: list[bytes]) -> tuple[list[Event[Request]], bytes]:
    connection = Http2Connection(same, Http2Limits(), 0)
    events = [event for piece in pieces for event in connection.feed(piece, 0)]
    return events, connection.take_output()


def test_a_session_means_the_same_wherever_it_is_cut() -> None:
    whole = HELLO + session()
    expected = outcome([whole])
    assert len(expected[0]) == 10
    for at in range(len(whole)):
        assert outcome([whole[:at], whole[at:]]) == expected
    assert outcome([whole[at : at + 1] for at in range(len(whole))]) == expected


kinds = st.one_of(st.integers(0, 9), st.integers(0, 255))
flags = st.sampled_from([0, 1, 4, 5, 8, 0x20, 0x2D])
ids = st.one_of(st.integers(0, 9), st.integers(0, 2**32 - 1))
payloads = st.one_of(
    st.binary(max_size=40), st.integers(0, 2**32 - 1).map(lambda n: n.to_bytes(4)), st.just(Talk().block(*REQUEST))
)
anything = st.builds(
    lambda kind, flag, stream_id, payload: frames.HEADER.pack(len(payload) << 8 | kind, flag, stream_id) + payload,
    kinds, flags, ids, payloads,
)  # fmt: skip


@given(st.lists(anything, max_size=30))
@settings(max_examples=300)
def test_any_frames_end_in_events_and_well_formed_answers(received: list[bytes]) -> None:
    connection = Http2Connection(same, Http2Limits(), 0)
    connection.feed(HELLO, 0)
    alive: set[int] = set()
    for piece in received:
        for event in connection.feed(piece, 0):
            match event:
                case RequestReceived(stream_id, _, _):
                    assert stream_id not in alive
                    alive.add(stream_id)
                case DataReceived(stream_id, taken, _):
                    assert stream_id in alive
                    connection.answers.consume(stream_id, len(taken))
                case StreamReset(stream_id):
                    alive.discard(stream_id)
                case _:
                    pass
    for stream_id in sorted(alive):
        if connection.answers.is_sendable(stream_id):
            connection.answers.send_headers(stream_id, STOP)
            if connection.answers.send_data(stream_id, b"x"):
                connection.answers.send_trailers(stream_id, OK)
    split(connection.take_output())
