"""What goes out on streams, and what is taken from them, behind a connection that a client talks to."""

import pytest

from kinference.wire.http2 import frames
from kinference.wire.http2.events import RequestReceived
from kinference.wire.http2.frames import ErrorCode, FrameType, WholeAnswer
from kinference.wire.http2.guard import Http2Limits
from kinference.wire.http2.headers import literal
from tests.unit.wire.http2.peer import Talk, data, faults

OK = literal(b":status", b"200")


def test_a_request_that_came_whole_is_answered_without_a_stream_or_goes_on_as_one() -> None:
    talk, answer = Talk(), WholeAnswer(OK, literal(b"grpc-status", b"0"), "I")
    told = talk.feed(b"".join(talk.request(number) + data(number, b"all", end=True) for number in (1, 3, 5)))
    assert [event.stream_id for event in told if isinstance(event, RequestReceived)] == [1, 3, 5]
    answers = talk.answers
    assert answers.takes(1, 65_535)
    assert not answers.takes(1, 65_536), "more than the window"
    assert not answers.send_answer(1, answer, bytes(65_532))
    assert answers.send_answer(1, answer, b"hello")
    assert [(kind, flags, stream_id) for kind, flags, stream_id, _ in talk.sent()] == [(1, 4, 1), (0, 0, 1), (1, 5, 1)]
    assert not answers.send_answer(1, answer, b"again")
    assert not answers.takes(1, 1)
    assert not answers.is_sendable(3), "it is not open yet"
    answers.open(5)
    answers.open(3)
    assert answers.is_sendable(3)
    assert talk.connection._intake.untaken == 6
    assert not answers.unopened
    (opened,) = talk.feed(talk.request(7))
    assert isinstance(opened, RequestReceived)
    assert talk.feed(frames.rst_stream(1, ErrorCode.CANCEL)) == []
    assert talk.feed(data(1, b"late")) == []
    assert faults(talk.sent()) == [("stream", 1, ErrorCode.STREAM_CLOSED)]


def test_an_answer_is_headers_data_and_trailers() -> None:
    talk = Talk()
    talk.open(end=True)
    talk.answers.send_headers(1, OK)
    assert talk.answers.send_data(1, b"hello")
    talk.answers.send_trailers(1, literal(b"grpc-status", b"0"))
    kinds = [(kind, flags) for kind, flags, _, _ in talk.sent()]
    assert kinds == [(1, frames.END_HEADERS), (0, 0), (1, frames.END_HEADERS | frames.END_STREAM)]


def test_a_whole_answer_goes_at_once_or_not_at_all() -> None:
    talk, answer = Talk(), WholeAnswer(OK, literal(b"grpc-status", b"0"), "I")
    talk.open()
    assert not talk.answers.takes(1, 1), "the peer has not sent all"
    assert not talk.answers.send_answer(1, answer, b"hello")
    talk.feed(data(1, b"", end=True))
    assert talk.answers.takes(1, 5)
    assert not talk.answers.send_answer(1, answer, bytes(65_536)), "more than the window"
    assert talk.sent() == []
    assert talk.answers.send_answer(1, answer, b"hello")
    assert [(kind, flags) for kind, flags, _, _ in talk.sent()] == [
        (1, frames.END_HEADERS),
        (0, 0),
        (1, frames.END_HEADERS | frames.END_STREAM),
    ]
    assert not talk.answers.is_sendable(1)
    assert not talk.answers.takes(1, 1)
    talk.open(3, end=True)
    talk.feed(frames.window_update(3, 1))
    assert not talk.answers.send_data(3, bytes(70_000))
    assert not talk.answers.takes(3, 1), "something waits to be sent"


@pytest.mark.parametrize(
    ("told", "length", "sizes"),
    [
        ({}, 16_380, [16_384]),
        ({}, 16_381, [16_384, 1]),
        ({}, 65_531, [16_384, 16_384, 16_384, 16_383]),
        ({4: 16_385}, 16_381, [16_384, 1]),
        ({4: 16_385}, 16_382, None),
        ({5: 20_000}, 20_000, [20_000, 4]),
    ],
)
@pytest.mark.parametrize("is_open", [False, True])
def test_an_answer_larger_than_the_peers_frames_goes_at_once_where_its_windows_are_large_enough(
    told: dict[int, int], length: int, sizes: list[int] | None, is_open: bool
) -> None:
    talk, answer = Talk(), WholeAnswer(OK, literal(b"grpc-status", b"0"), "I")
    talk.feed(frames.settings(told) + talk.request(1) + data(1, b"all", end=True))
    if is_open:
        talk.answers.open(1)
    talk.sent()
    assert talk.answers.takes(1, length + 4) == (sizes is not None)
    assert talk.answers.send_answer(1, answer, bytes(length)) == (sizes is not None)
    assert [len(payload) for kind, _, _, payload in talk.sent() if kind == 0] == (sizes or [])
    assert talk.answers.send_answer(1, answer, b"small") == (sizes is None)


def test_an_answer_may_end_without_trailers() -> None:
    talk = Talk()
    talk.open(1, end=True)
    talk.answers.send_headers(1, literal(b":status", b"200"))
    talk.answers.send_end(1)
    assert [frame[:3] for frame in talk.sent()] == [(FrameType.HEADERS, 4, 1), (FrameType.DATA, 1, 1)]
    assert not talk.answers.is_sendable(1)


def test_an_answer_before_the_end_of_the_request_asks_for_no_more() -> None:
    talk = Talk()
    talk.open()
    talk.answers.send_trailers(1, OK)
    assert faults(talk.sent()) == [("stream", 1, ErrorCode.NO_ERROR)]
    assert talk.feed(data(1, b"late") + data(1, b"", end=True)) == []
    assert talk.sent() == []


def test_a_peer_without_a_table_is_told_that_ours_is_empty() -> None:
    talk = Talk()
    talk.feed(frames.settings({1: 0}))
    talk.open(end=True)
    talk.sent()
    talk.answers.send_headers(1, OK)
    talk.answers.send_trailers(1, OK)
    blocks = [payload for _, _, _, payload in talk.sent()]
    assert blocks == [b"\x20" + OK, OK]


def test_a_streams_credit_comes_back_when_its_bytes_are_taken_and_not_before() -> None:
    talk = Talk(Http2Limits(stream_window=65_536, credit_bytes=32_768))
    talk.open()
    talk.feed(data(1, bytes(40_000)))
    assert talk.sent() == []
    talk.answers.consume(1, 40_000)
    assert talk.sent() == [(8, 0, 1, (40_000).to_bytes(4))]


def test_a_reset_drops_what_waits() -> None:
    talk = Talk()
    talk.feed(frames.settings({4: 0}))
    talk.open(end=True)
    talk.answers.send_data(1, b"x" * 10)
    talk.answers.reset(1, ErrorCode.CANCEL)
    talk.sent()
    assert talk.feed(frames.window_update(1, 100)) == []
    assert talk.sent() == []
