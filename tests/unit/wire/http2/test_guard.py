"""Buckets of nuisances."""

import pytest

from kinference.wire.http2.frames import ConnectionFault, ErrorCode
from kinference.wire.http2.guard import Guard, Http2Limits, Nuisance, Rate

RATES = {kind: Rate(3, 1, 0.5) for kind in Nuisance}


def spend(guard: Guard, kind: Nuisance, times: int, now: float) -> None:
    for _ in range(times):
        guard.charge(kind, now)


def test_a_burst_is_let_pass_and_no_more() -> None:
    guard = Guard(RATES, 0)
    spend(guard, Nuisance.RESET, 3, 0)
    with pytest.raises(ConnectionFault) as caught:
        guard.charge(Nuisance.RESET, 0.5)
    assert caught.value.code is ErrorCode.ENHANCE_YOUR_CALM


def test_each_kind_has_its_own_bucket() -> None:
    guard = Guard(RATES, 0)
    spend(guard, Nuisance.RESET, 3, 0)
    spend(guard, Nuisance.EMPTY, 3, 0)


def test_time_refills_a_bucket_up_to_its_burst() -> None:
    guard = Guard(RATES, 0)
    spend(guard, Nuisance.CONTROL, 3, 0)
    spend(guard, Nuisance.CONTROL, 3, 1000)
    with pytest.raises(ConnectionFault):
        guard.charge(Nuisance.CONTROL, 1000)


def test_finished_requests_forgive_some_nuisance() -> None:
    guard = Guard(RATES, 0)
    spend(guard, Nuisance.RESET, 3, 0)
    guard.requests_done += 1
    guard.requests_done += 1
    guard.charge(Nuisance.RESET, 0)
    with pytest.raises(ConnectionFault):
        guard.charge(Nuisance.RESET, 0)


def test_the_window_of_a_stream_has_room_for_the_largest_message_and_a_step_of_credit() -> None:
    limits = Http2Limits()
    assert limits.stream_window - limits.credit_bytes >= 1_048_576 + 9
