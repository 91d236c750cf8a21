import pytest

from kinference.wire.alarm import REPRIEVE_MAX, STOOD_STILL, Alarm, reprieve
from tests.unit.wire.steppedloop import SteppedLoop


def alarm_of(loop: SteppedLoop, seconds: float) -> tuple[Alarm, list[float]]:
    rung: list[float] = []
    return Alarm(loop, seconds, lambda: rung.append(loop.seconds)), rung  # type: ignore[arg-type] # all of a loop that is used


def test_it_rings_once_when_it_is_time() -> None:
    loop = SteppedLoop()
    _, rung = alarm_of(loop, 30)
    loop.pass_by(29.9)
    assert rung == []
    loop.pass_by(0.1)
    loop.pass_by(1000)
    assert rung == [130.0]


@pytest.mark.parametrize(("late", "longer"), [(0.2, 0.2), (3.0, 3.0), (3600.0, REPRIEVE_MAX)])
def test_after_a_standstill_it_waits_as_long_again_as_it_was_late(late: float, longer: float) -> None:
    loop = SteppedLoop()
    _, rung = alarm_of(loop, 30)
    loop.pass_by(30 + late)
    loop.pass_by(longer - 0.01)
    assert rung == []
    loop.pass_by(0.02)
    assert len(rung) == 1


def test_it_waits_once_more_and_not_for_ever() -> None:
    loop = SteppedLoop()
    _, rung = alarm_of(loop, 30)
    loop.pass_by(60)
    loop.pass_by(60)
    assert rung == [220.0]


@pytest.mark.parametrize("stands_still", [False, True])
def test_one_that_is_called_off_never_rings(*, stands_still: bool) -> None:
    loop = SteppedLoop()
    alarm, rung = alarm_of(loop, 30)
    if stands_still:
        loop.pass_by(60)
    alarm.cancel()
    loop.pass_by(60)
    assert rung == []


def test_a_busy_loop_has_not_stood_still() -> None:
    assert [reprieve(late) for late in (-0.001, 0.0, STOOD_STILL)] == [0.0, 0.0, 0.0]
