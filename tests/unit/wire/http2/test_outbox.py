"""Sending under two windows, a pause and a bound."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinference.wire.http2.frames import WholeAnswer
from kinference.wire.http2.outbox import Outbox
from kinference.wire.http2.streams import Stream
from tests.unit.wire.http2.peer import split


def sizes(outbox: Outbox) -> list[tuple[int, int]]:
    return [(stream_id, len(payload)) for _, _, stream_id, payload in split(outbox.take())]


def stream(stream_id: int, window: int) -> Stream:
    return Stream(stream_id, window, 0)


def test_what_fits_goes_at_once() -> None:
    outbox = Outbox(1000)
    assert outbox.send(stream(1, 10), b"x" * 10)
    assert sizes(outbox) == [(1, 10)]
    assert outbox.window == 65_525


def test_a_small_window_lets_a_part_through_and_the_rest_follows() -> None:
    outbox, slow = Outbox(1000), stream(1, 4)
    assert not outbox.send(slow, b"x" * 10)
    assert sizes(outbox) == [(1, 4)]
    slow.send_window += 3
    outbox.window_grew(slow)
    assert list(outbox.turn()) == []
    slow.send_window += 3
    outbox.window_grew(slow)
    assert list(outbox.turn()) == [slow]
    assert sizes(outbox) == [(1, 3), (1, 3)]


def test_streams_take_turns_a_frame_each() -> None:
    outbox = Outbox(10**9)
    outbox.window, outbox.frame_bytes = 0, 10
    large, small = stream(1, 100), stream(3, 100)
    outbox.send(large, b"x" * 30)
    outbox.send(small, b"x" * 5)
    outbox.window = 100
    assert list(outbox.turn()) == [small, large]
    assert sizes(outbox) == [(1, 10), (3, 5), (1, 10), (1, 10)]


def test_a_stalled_stream_holds_up_nobody() -> None:
    outbox = Outbox(10**9)
    assert not outbox.send(stream(1, 0), b"x" * 100)
    assert outbox.send(stream(3, 100), b"y")
    assert not outbox.has_turns


def test_a_pause_and_a_full_output_hold_everything_back() -> None:
    outbox, one = Outbox(5), stream(1, 100)
    outbox.paused = True
    assert not outbox.send(one, b"x" * 8)
    assert not outbox.has_turns
    outbox.paused = False
    assert list(outbox.turn()) == [one]
    assert not outbox.send(stream(3, 100), b"y"), "17 bytes wait for the shell already"
    assert sizes(outbox) == [(1, 8)]
    assert outbox.has_turns


def test_a_window_taken_back_by_settings_waits_for_its_return() -> None:
    outbox, one = Outbox(10**6), stream(1, 10)
    outbox.window = 0
    outbox.send(one, b"x" * 10)
    one.send_window = -5
    outbox.window = 100
    assert list(outbox.turn()) == []
    one.send_window = 10
    outbox.window_grew(one)
    assert list(outbox.turn()) == [one]


def test_a_forgotten_stream_sends_no_more() -> None:
    outbox, one = Outbox(10**6), stream(1, 10)
    outbox.window = 0
    outbox.send(one, b"x" * 10)
    outbox.forget(one)
    outbox.window = 100
    assert list(outbox.turn()) == []
    assert outbox.take() == b""


grants = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 50)), max_size=60)


@given(st.lists(st.tuples(st.sampled_from([1, 3]), st.binary(max_size=60)), max_size=10), grants)
def test_bytes_arrive_in_order_and_never_beyond_a_window(
    sent: list[tuple[int, bytes]], given: list[tuple[int, int]]
) -> None:
    outbox = Outbox(100)
    outbox.window, outbox.frame_bytes = 20, 16
    streams = {1: stream(1, 10), 3: stream(3, 10)}
    allowed, total = {1: 10, 3: 10}, 20
    got = {1: b"", 3: b""}
    for stream_id, data in sent:
        outbox.send(streams[stream_id], data)
    for which, increment in [*given, *[(0, 1000), (1, 1000), (2, 1000)] * 3]:
        if which == 0:
            outbox.window += increment
            total += increment
        else:
            one = streams[2 * which - 1]
            one.send_window += increment
            allowed[one.id] += increment
            outbox.window_grew(one)
        list(outbox.turn())
        for _, _, stream_id, payload in split(outbox.take()):
            got[stream_id] += payload
            assert len(payload) <= 16
        assert all(len(got[key]) <= allowed[key] for key in got)
        assert sum(map(len, got.values())) <= total
    for _ in range(10):
        list(outbox.turn())
        for _, _, stream_id, payload in split(outbox.take()):
            got[stream_id] += payload
    assert got == {key: b"".join(data for stream_id, data in sent if stream_id == key) for key in got}


def test_a_whole_answer_goes_at_once_or_not_at_all() -> None:
    outbox, answer = Outbox(1000), WholeAnswer(b"head", b"end", "H")
    assert not outbox.send_whole(1, 12, answer, b"x" * 11)
    assert outbox.take() == b""
    for length in (10, 10, 5000, 5000):
        window = outbox.window
        assert outbox.send_whole(1, length + 2, answer, b"x" * length)
        size, written = outbox.size, outbox.take()
        assert size == len(written)
        message = length.to_bytes(2) + b"x" * length
        assert split(written) == [(1, 4, 1, b"head"), (0, 0, 1, message), (1, 5, 1, b"end")]
        assert outbox.window == window - len(message)


@pytest.mark.parametrize(
    ("length", "frames"),
    [(98, [100]), (99, [100, 1]), (198, [100, 100]), (199, [100, 100, 1]), (430, [100] * 4 + [32])],
)
def test_a_whole_answer_larger_than_a_frame_goes_in_as_many_as_it_takes(length: int, frames: list[int]) -> None:
    outbox, answer = Outbox(1000), WholeAnswer(b"head", b"end", "H")
    outbox.frame_bytes = 100
    data = bytes(number % 251 for number in range(length))
    assert not outbox.send_whole(1, length + 1, answer, data)
    assert outbox.send_whole(1, length + 2, answer, data)
    assert outbox.window == 65_535 - 2 - length
    size, written = outbox.size, outbox.take()
    assert size == len(written)
    begin, *middle, end = split(written)
    assert (begin, end) == ((1, 4, 1, b"head"), (1, 5, 1, b"end"))
    assert [(kind, flags, stream_id, len(payload)) for kind, flags, stream_id, payload in middle] == [
        (0, 0, 1, size) for size in frames
    ]
    assert b"".join(payload for _, _, _, payload in middle) == length.to_bytes(2) + data


def test_more_than_a_frame_goes_ahead_of_no_turn_and_is_no_more_than_the_output_holds() -> None:
    outbox, other = Outbox(300), stream(3, 100)
    outbox.frame_bytes = 100
    assert outbox.takes(300, 300)
    assert not outbox.takes(301, 301)
    outbox.write(b"x" * 299)
    assert outbox.takes(300, 300)
    outbox.write(b"x")
    assert not outbox.takes(101, 300)
    outbox.take()
    outbox.paused = True
    outbox.send(other, b"waits")
    outbox.paused = False
    assert not outbox.takes(101, 300)
    assert outbox.takes(100, 300)
    assert list(outbox.turn()) == [other]
    assert outbox.takes(101, 300)
    outbox.window = 100
    assert not outbox.takes(101, 300)


def test_nothing_is_taken_at_once_beyond_a_window_or_where_the_shell_is_full() -> None:
    outbox = Outbox(1000)
    assert outbox.takes(100, 100)
    assert not outbox.takes(101, 100)
    outbox.window = 50
    assert not outbox.takes(51, 100)
    outbox.paused = True
    assert not outbox.takes(1, 100)
    outbox.paused = False
    outbox.write(b"x" * 1000)
    assert not outbox.takes(1, 100)
