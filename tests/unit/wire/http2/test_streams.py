"""The lives of streams."""

import pytest

from kinference.wire.http2.frames import ConnectionFault, ErrorCode, FrameType, StreamFault
from kinference.wire.http2.streams import NEXT, REMEMBERED_MAX, VERDICTS, Event, State, Stream, Streams, check


def opened(stream_id: int = 1) -> tuple[Streams, Stream]:
    streams = Streams()
    stream = Stream(stream_id, 10, 10)
    streams.open(stream)
    return streams, stream


@pytest.mark.parametrize(
    ("steps", "state"),
    [
        ((Event.PEER_ENDS, Event.WE_END), State.ENDED),
        ((Event.WE_END, Event.PEER_ENDS), State.ENDED),
        ((Event.PEER_RESETS,), State.RESET_BY_PEER),
        ((Event.PEER_ENDS, Event.WE_RESET), State.RESET_BY_US),
        ((Event.WE_END, Event.PEER_RESETS), State.RESET_BY_PEER),
    ],
)
def test_a_life_leads_to_its_end(steps: tuple[Event, ...], state: State) -> None:
    streams, stream = opened()
    for step in steps:
        streams.advance(stream, step)
    assert streams.state_of(1) is state
    assert not streams.live


@pytest.mark.parametrize("twice", [Event.PEER_ENDS, Event.WE_END])
def test_nothing_ends_twice(twice: Event) -> None:
    streams, stream = opened()
    streams.advance(stream, twice)
    with pytest.raises(KeyError):
        streams.advance(stream, twice)


def test_every_state_knows_every_frame_of_a_stream() -> None:
    kinds = {FrameType.DATA, FrameType.HEADERS, FrameType.RST_STREAM, FrameType.WINDOW_UPDATE}
    assert VERDICTS.keys() == set(State)
    assert all(verdicts.keys() == kinds for verdicts in VERDICTS.values())
    assert {state for state, _ in NEXT} == {State.OPEN, State.HALF_CLOSED_LOCAL, State.HALF_CLOSED_REMOTE}


def test_a_stream_beyond_the_last_is_idle_and_one_before_it_is_over() -> None:
    streams, _ = opened(7)
    assert streams.state_of(9) is State.IDLE
    assert streams.state_of(7) is State.OPEN
    assert streams.state_of(5) is State.FORGOTTEN


def test_ends_are_remembered_up_to_a_bound() -> None:
    streams = Streams()
    ids = [2 * number + 1 for number in range(2 * REMEMBERED_MAX)]
    for stream_id in ids:
        stream = Stream(stream_id, 0, 0)
        streams.open(stream)
        streams.advance(stream, Event.WE_RESET)
    assert {streams.state_of(stream_id) for stream_id in ids[:REMEMBERED_MAX]} == {State.FORGOTTEN}
    assert {streams.state_of(stream_id) for stream_id in ids[-REMEMBERED_MAX:]} == {State.RESET_BY_US}


def test_the_end_of_a_stream_that_lived_long_is_remembered_too() -> None:
    streams, first = opened()
    for number in range(1, 2 * REMEMBERED_MAX):
        stream = Stream(2 * number + 1, 0, 0)
        streams.open(stream)
        streams.advance(stream, Event.PEER_RESETS)
    streams.advance(first, Event.WE_RESET)
    assert streams.state_of(1) is State.RESET_BY_US
    assert streams.state_of(2 * REMEMBERED_MAX + 1) is State.FORGOTTEN
    assert streams.state_of(4 * REMEMBERED_MAX - 1) is State.RESET_BY_PEER


def test_the_largest_id_is_remembered() -> None:
    streams, stream = opened(2**31 - 1)
    streams.advance(stream, Event.WE_RESET)
    assert streams.state_of(2**31 - 1) is State.RESET_BY_US
    assert streams.state_of(2**31 - 3) is State.FORGOTTEN


def test_a_verdict_is_told_as_what_it_is() -> None:
    assert check(FrameType.DATA, 1, State.OPEN)
    assert not check(FrameType.DATA, 1, State.RESET_BY_US)
    with pytest.raises(StreamFault, match="STREAM_CLOSED"):
        check(FrameType.DATA, 1, State.ENDED)
    with pytest.raises(ConnectionFault) as dead:
        check(FrameType.HEADERS, 1, State.ENDED)
    assert dead.value.code is ErrorCode.STREAM_CLOSED
    with pytest.raises(ConnectionFault, match="PROTOCOL_ERROR"):
        check(FrameType.DATA, 1, State.IDLE)
