"""The windows that we grant."""

from dataclasses import replace

import pytest

from kinference.wire.http2.frames import ConnectionFault, StreamFault, window_update
from kinference.wire.http2.guard import Http2Limits
from kinference.wire.http2.intake import Intake
from kinference.wire.http2.streams import Event, Stream, Streams
from kinference.wire.untaken import Untaken

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


def test_what_would_be_no_fault_and_open_no_window_passes_and_is_counted() -> None:
    intake, written, stream = opened()
    assert [intake.passes(size) for size in (0, 100, 99, 1)] == [True, False, True, False], (
        "the window is opened at 100"
    )
    assert (intake.window, intake.owed, intake.untaken) == (101, 99, 0), "nobody's yet"
    wide = Intake(replace(LIMITS, connection_window=1000), written.append)
    assert [wide.passes(size) for size in (101, 60)] == [False, True], "the stream's window"
    wide.hold(60, stream)
    assert (wide.window, wide.owed, wide.untaken, stream.untaken) == (940, 60, 60, 60)
    assert [wide.passes(size) for size in (91, 90)] == [False, True], "what a connection may hold"
    wide.forget(stream)
    assert wide.untaken == 0
    shared = Untaken(100)
    both = Intake(replace(LIMITS, account=shared), written.append)
    assert [both.passes(size) for size in (51, 50)] == [False, True], "what all may hold"


def test_a_streams_window_opens_in_steps_as_bytes_are_taken() -> None:
    intake, written, stream = opened()
    intake.arrived(100, stream)
    written.clear()
    intake.taken(stream, 19)
    assert written == []
    intake.taken(stream, 1)
    assert written == [window_update(1, 20)]
    assert (stream.receive_window, stream.untaken, intake.untaken) == (20, 80, 80)


def test_a_stream_that_has_ended_gets_no_more_window() -> None:
    intake, written, stream = opened()
    streams = Streams()
    streams.open(stream)
    intake.arrived(50, stream)
    streams.advance(stream, Event.PEER_ENDS)
    intake.taken(stream, 50)
    assert written == []
    assert intake.untaken == 0


def test_more_than_a_window_is_a_fault_of_who_granted_it() -> None:
    intake, _, stream = opened()
    with pytest.raises(StreamFault, match="FLOW_CONTROL_ERROR"):
        intake.arrived(101, stream)
    with pytest.raises(ConnectionFault, match="FLOW_CONTROL_ERROR"):
        intake.arrived(201)


def test_what_a_connection_holds_is_bounded_and_the_end_of_a_stream_makes_room() -> None:
    intake, _, stream = opened()
    other = Stream(3, 0, LIMITS.stream_window)
    intake.arrived(100, stream)
    with pytest.raises(StreamFault, match="ENHANCE_YOUR_CALM"):
        intake.arrived(51, other)
    intake.forget(other)
    intake.forget(stream)
    assert intake.untaken == 0


def two_of(account: Untaken) -> tuple[Intake, Intake]:
    limits = replace(LIMITS, account=account)
    return Intake(limits, lambda _: None), Intake(limits, lambda _: None)


def test_what_all_connections_hold_is_one_account_and_one_that_is_lost_gives_back_once() -> None:
    account = Untaken()
    first, second = two_of(account)
    streams = [Stream(number, 0, LIMITS.stream_window) for number in (1, 3)]
    first.arrived(60, streams[0])
    second.arrived(30, streams[1])
    first.taken(streams[0], 10)
    assert (account.held, account.connections) == (80, 2)
    first.close()
    first.close()
    first.taken(streams[0], 50)
    assert (account.held, account.connections) == (30, 1)
    second.forget(streams[1])
    assert account.held == 0


def test_over_half_of_the_bound_of_all_only_who_holds_more_than_an_even_share_is_refused() -> None:
    first, second = two_of(Untaken(160))
    first.arrived(80, Stream(1, 0, LIMITS.stream_window))
    second.arrived(40, Stream(1, 0, LIMITS.stream_window))
    with pytest.raises(StreamFault, match="ENHANCE_YOUR_CALM"):
        first.arrived(1, Stream(3, 0, LIMITS.stream_window))
    with pytest.raises(StreamFault, match="ENHANCE_YOUR_CALM"):
        second.arrived(1, Stream(3, 0, LIMITS.stream_window))


def test_while_room_is_short_the_connections_window_is_for_the_shell_to_open() -> None:
    account, written = Untaken(160), list[bytes]()
    intake = Intake(replace(LIMITS, account=account), written.append)
    account.held = 41
    intake.arrived(100)
    assert (written, intake.is_withholding, intake.window) == ([], True, 100)
    intake.open_window()
    assert (written, intake.is_withholding, intake.window) == ([window_update(0, 100)], False, 200)
