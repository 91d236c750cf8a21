"""Requests that are read in one go."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinference.wire.http2 import frames
from kinference.wire.http2.events import Event, RequestReceived
from kinference.wire.http2.frames import FrameType
from kinference.wire.http2.guard import Http2Limits
from kinference.wire.http2.intake import Intake
from kinference.wire.http2.requests import Request
from kinference.wire.http2.streams import Streams
from kinference.wire.http2.usual import UsualRequests
from kinference.wire.untaken import Untaken
from tests.unit.wire.http2.peer import Talk, data

BLOCK, OTHER = b"\x83\x86\x84", b"\x83\x87\x84"
NARROW = Http2Limits(frame_bytes_max=16_384, connection_window=65_536, streams_max=3)


def headers(stream_id: int, block: bytes = BLOCK, flags: int = 0) -> bytes:
    return frames.headers(flags, stream_id, block)


def request(stream_id: int, body: bytes = b"body", block: bytes = BLOCK) -> bytes:
    return headers(stream_id, block) + data(stream_id, body, end=True)


class Usual:
    """The heads of one block are known, and the intake has been measured."""

    def __init__(self, limits: Http2Limits = NARROW) -> None:
        self.streams, self.unopened, self.intake = Streams(), dict[int, int](), Intake(limits, lambda _: None)
        self.requests = UsualRequests(limits, self.streams, self.intake, {BLOCK: "head"}, self.unopened)
        self.intake.measure()

    def read(self, buffer: bytes) -> tuple[int, list[tuple[int, bytes]]]:
        at = self.requests.read(buffer, 0)
        return at, [
            (event.stream_id, event.data) for event in self.requests.events if isinstance(event, RequestReceived)
        ]


def test_all_that_stand_one_behind_the_other_are_told_and_counted() -> None:
    usual, more = Usual(), b"\0\0"
    first, second = request(1, b"one"), headers(3) + data(3, b"tw") + data(3, b"o") + data(3, b"", end=True)
    assert usual.read(first + second + more) == (len(first + second), [(1, b"one"), (3, b"two")])
    assert (usual.streams.last_id, usual.unopened, usual.intake.owed) == (3, {1: 3, 3: 3}, 6)
    assert usual.requests.come


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
        headers(3, BLOCK + BLOCK) + data(3, b"", end=True),
        request(1),
        request(4),
        request(3 + 2**31),
        data(3, b"of nobody", end=True),
    ],
)
def test_what_is_anything_else_is_left(unusual: bytes) -> None:
    usual, first = Usual(), request(1)
    assert usual.read(first + unusual) == (len(first), [(1, b"body")])
    assert (usual.streams.last_id, usual.unopened) == (1, {1: 4})


def test_no_more_are_taken_than_may_be_open_or_than_need_no_look() -> None:
    usual, four = Usual(), [request(number) for number in (1, 3, 5, 7)]
    assert usual.read(b"".join(four))[0] == len(b"".join(four[:3])), "streams"
    account = Untaken(8 * 2)
    usual = Usual(Http2Limits(account=account))
    assert usual.read(b"".join(four))[0] == len(b"".join(four[:2])), "bytes of all connections"
    account.held = 5
    usual.intake.measure()
    usual.requests.events.clear()
    assert usual.read(request(5)) == (0, [])


def test_none_is_looked_for_where_the_blocks_are_new() -> None:
    usual = Usual()
    assert usual.read(request(1, block=OTHER)) == (0, [])
    assert not usual.requests.come
    talk = Talk()
    for stream_id, block, come in ((1, BLOCK, False), (3, BLOCK, True), (5, OTHER, False), (7, BLOCK, True)):
        talk.feed(request(stream_id, block=block))
        assert talk.connection._usual.come == come


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


def told(talk: Talk, read: Sequence[bytes]) -> tuple[list[list[Event[Request]]], bytes]:
    return [talk.feed(received) for received in read], talk.connection.take_output()


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.lists(st.integers(1, 60_000), max_size=3))
def test_it_makes_no_difference_but_that_of_speed(pieces: list[bytes], cuts: list[int]) -> None:
    whole, usual, plain = b"".join(pieces), Talk(NARROW), Talk(NARROW)
    plain.connection._reader._on_usual = lambda _buffer, at: at
    edges = sorted({min(cut, len(whole)) for cut in cuts} | {0, len(whole)})
    read = [whole[begin:end] for begin, end in pairwise(edges)]
    assert told(usual, read) == told(plain, read)
