"""The windows that we grant."""

import pytest

from kinference.wire.http2.frames import ConnectionFault, StreamFault, window_update
from kinference.wire.http2.guard import Http2Limits
from kinference.wire.http2.intake import Intake
from kinference.wire.http2.streams import Event, Stream, Streams

LIMITS = Http2Limits(stream_window=100, credit_bytes=20, connection_window=200, untaken_bytes_max=150)


def opened() -> tuple[Intake, list[bytes], Stream]:
    written: list[bytes] = []
    return Intake(LIMITS, written.append), written, Stream(1, 0, LIMITS.stream_window)


def test_the_connections_window_opens_as_bytes_arrive() -> None:
    intake, written, _ = opened()
    intake.arrived(99)
    assert written == []
    intake.arrived(1)
    assert written == [window_update(0, 100)]
    assert intake.window == 200


def test_a_streams_window_opens_in_steps_as_bytes_are_taken() -> None:
    intake, written, stream = opened()
    intake.hold(stream, 100)
    intake.taken(stream, 19)
    assert written == []
    intake.taken(stream, 1)
    assert written == [window_update(1, 20)]
    assert (stream.receive_window, stream.untaken, intake.untaken) == (20, 80, 80)


def test_a_stream_that_has_ended_gets_no_more_window() -> None:
    intake, written, stream = opened()
    streams = Streams()
    streams.open(stream)
    intake.hold(stream, 50)
    streams.advance(stream, Event.PEER_ENDS)
    intake.taken(stream, 50)
    assert written == []
    assert intake.untaken == 0


def test_more_than_a_window_is_a_fault_of_who_granted_it() -> None:
    intake, _, stream = opened()
    with pytest.raises(StreamFault, match="FLOW_CONTROL_ERROR"):
        intake.hold(stream, 101)
    with pytest.raises(ConnectionFault, match="FLOW_CONTROL_ERROR"):
        intake.arrived(201)


def test_what_a_connection_holds_is_bounded_and_the_end_of_a_stream_makes_room() -> None:
    intake, _, stream = opened()
    other = Stream(3, 0, LIMITS.stream_window)
    intake.hold(stream, 100)
    with pytest.raises(StreamFault, match="ENHANCE_YOUR_CALM"):
        intake.hold(other, 51)
    intake.forget(other)
    intake.forget(stream)
    assert intake.untaken == 0
