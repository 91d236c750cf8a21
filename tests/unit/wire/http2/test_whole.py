"""Requests that are all here, read one behind the other."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinference.wire.http2 import frames
from kinference.wire.http2.events import DataReceived, RequestReceived
from kinference.wire.http2.frames import FrameType
from kinference.wire.http2.guard import Http2Limits
from kinference.wire.untaken import Untaken
from tests.unit.wire.http2.peer import Talk, data, faults

BLOCK, OTHER = b"\x83\x86\x84", b"\x83\x87\x84"
NARROW = Http2Limits(frame_bytes_max=16_384, connection_window=65_536, streams_max=3)


def headers(stream_id: int, block: bytes = BLOCK, flags: int = 0) -> bytes:
    return frames.headers(flags, stream_id, block)


def request(stream_id: int, body: bytes = b"body", block: bytes = BLOCK) -> bytes:
    return headers(stream_id, block) + data(stream_id, body, end=True)


class Read:
    """The requests of a connection, whose intake has been measured."""

    def __init__(self, limits: Http2Limits = NARROW) -> None:
        self.talk = Talk(limits)
        connection = self.talk.connection
        self.streams, self.unopened, self.intake = connection._streams, connection._unopened, connection._intake
        self.requests = connection._whole
        self.intake.measure()

    def read(self, buffer: bytes) -> tuple[int, list[tuple[int, bytes]]]:
        at = self.requests.read(buffer, 0)
        events, self.requests.events = self.requests.events, []
        return at, [(event.stream_id, event.data) for event in events if isinstance(event, RequestReceived)]


def test_all_that_stand_one_behind_the_other_are_told_and_counted() -> None:
    read, more = Read(), b"\0\0"
    first, second = request(1, b"one"), headers(3) + data(3, b"tw") + data(3, b"o") + data(3, b"", end=True)
    assert read.read(first + second + more) == (len(first + second), [(1, b"one"), (3, b"two")])
    assert (read.streams.last_id, read.unopened, read.intake.owed) == (3, {1: 3, 3: 3}, 6)


@pytest.mark.parametrize(
    "unusual",
    [
        headers(3),
        headers(3) + data(3, b"part"),
        headers(3) + data(3, b"cut", end=True)[:-1],
        headers(3) + data(3, b"") + data(3, b"", end=True),
        headers(3) + data(5, b"another's", end=True),
        headers(3) + frames.frame(FrameType.DATA, frames.END_STREAM | frames.PADDED, 3, b"\x01xx"),
        headers(3) + frames.frame(FrameType.PING, frames.ACK, 3, bytes(8)),
        headers(3) + data(3, bytes(NARROW.frame_bytes_max + 1), end=True),
        headers(3, flags=frames.END_STREAM) + data(3, b"late", end=True),
        headers(3, bytes(NARROW.frame_bytes_max + 1)) + data(3, b"", end=True),
        request(1),
        request(4),
        request(3 + 2**31),
        data(3, b"of nobody", end=True),
    ],
)
def test_what_is_anything_else_is_left(unusual: bytes) -> None:
    read, first = Read(), request(1)
    assert read.read(first + unusual) == (len(first), [(1, b"body")])
    assert (read.streams.last_id, read.unopened) == (1, {1: 4})


def test_no_more_are_taken_than_may_be_open() -> None:
    read, four = Read(), [request(number) for number in (1, 3, 5, 7)]
    assert read.read(b"".join(four))[0] == len(b"".join(four[:3]))


def test_data_that_needs_a_look_is_read_by_itself() -> None:
    account = Untaken(2 * 4)
    read, large = Read(Http2Limits(account=account)), request(7, b"large")
    before = request(1) + request(3) + request(5)
    at, told = read.read(before + large)
    assert told == [(1, b"body"), (3, b"body"), (5, b"body"), (7, b"")], "none of them is anyone's to hold"
    assert (before + large)[at:] == data(7, b"large", end=True)
    assert (read.unopened, read.intake.owed) == ({1: 4, 3: 4, 5: 4}, 12)
    assert list(read.streams.live) == [7]


@pytest.mark.parametrize(
    ("block", "events", "resets"),
    [(b"\x83\x86\x84\x0f\x0d\x013", [(3, b"")], []), (b"\x83\x86\x86\x84", [], [("stream", 3, 1)])],
)
def test_a_head_that_declares_a_length_or_breaks_a_rule_is_told_and_its_data_read_by_itself(
    block: bytes, events: list[tuple[int, bytes]], resets: list[tuple[str, int, int]]
) -> None:
    read, rest = Read(), data(3, b"abc", end=True) + request(5)
    at, told = read.read(request(1) + headers(3, block) + rest)
    assert (request(1) + headers(3, block) + rest)[at:] == rest
    assert told == [(1, b"body"), *events]
    assert (read.streams.last_id, read.unopened, read.intake.owed) == (3, {1: 4}, 4)
    assert faults(read.talk.sent()) == resets


PIECES: Sequence[bytes] = (
    *(request(number, b"x" * number) for number in (1, 3, 5, 7, 9)),
    *(request(number, block=OTHER) for number in (3, 9, 11)),
    headers(5) + data(5, b"in ") + data(5, b"two", end=True),
    headers(13),
    data(13, b"late", end=True),
    headers(7, flags=frames.END_STREAM),
    request(8),
    request(15, bytes(9_000)),
    request(17, bytes(20_000)),
    request(19, bytes(16_384)),
    headers(21, b"\x83\x86\x84\x0f\x0d\x013"),
    frames.rst_stream(5, 8),
    frames.frame(FrameType.PING, 0, 0, bytes(8)),
    frames.window_update(0, 5000),
)


def told(talk: Talk, reads: Sequence[bytes]) -> list[object]:
    """What all reads come to: requests and the ends of their bodies apart, bodies joined."""
    bodies: dict[int, bytes] = {}
    others: list[object] = []
    for event in (event for received in reads for event in talk.feed(received)):
        if isinstance(event, RequestReceived):
            others.append(("request", event.stream_id, event.head))
        if isinstance(event, RequestReceived | DataReceived):
            bodies[event.stream_id] = bodies.get(event.stream_id, b"") + event.data
            others += [("end", event.stream_id)] * event.ended
        else:
            others.append(event)
    return [others, bodies, talk.connection.take_output()]


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.lists(st.integers(1, 60_000), max_size=3))
def test_it_makes_no_difference_but_that_of_speed(pieces: list[bytes], cuts: list[int]) -> None:
    whole, here, by_frame = b"".join(pieces), Talk(NARROW), Talk(NARROW)
    by_frame.connection._reader._on_request = lambda _buffer, at: at
    edges = sorted({min(cut, len(whole)) for cut in cuts} | {0, len(whole)})
    reads = [whole[begin:end] for begin, end in pairwise(edges)]
    assert told(here, reads) == told(by_frame, reads)
