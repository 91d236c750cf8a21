from random import Random

import pytest

from kinference.sim.faults import FAULTS_MAX, Fault, FaultBoard, FaultKind, Scope, parse_fault


def board(*faults: Fault) -> FaultBoard:
    made = FaultBoard(Random(1))
    for fault in faults:
        made.add(fault)
    return made


def test_a_fault_without_a_count_stays_until_cleared() -> None:
    fault = Fault(FaultKind.REFUSE)
    faults = board(fault)
    assert [faults.draw(is_inference=True) for _ in range(3)] == [fault] * 3
    faults.clear()
    assert faults.draw(is_inference=True) is None


def test_a_counted_fault_is_used_up() -> None:
    faults = board(Fault(FaultKind.HANG, count=2))
    drawn = [faults.draw(is_inference=True) is not None for _ in range(3)]
    assert drawn == [True, True, False]
    assert faults.faults == ()


def test_faults_meet_inference_only_unless_they_are_for_all() -> None:
    assert board(Fault(FaultKind.HANG)).draw(is_inference=False) is None
    assert board(Fault(FaultKind.HANG, scope=Scope.ALL)).draw(is_inference=False) is not None


def test_a_probable_fault_is_met_by_its_share_of_requests_the_same_ones_each_time() -> None:
    met = [
        [faults.draw(is_inference=True) is not None for _ in range(400)]
        for faults in (board(Fault(FaultKind.REFUSE, probability=0.25)) for _ in range(2))
    ]
    assert met[0] == met[1]
    assert 60 < sum(met[0]) < 140


def test_a_slow_engine_is_slow_as_a_whole() -> None:
    faults = board(Fault(FaultKind.SLOW, factor=4))
    assert faults.draw(is_inference=True) is None
    assert faults.slowdown == 4
    faults.clear()
    assert faults.slowdown == 1


def test_there_is_an_end_to_faults() -> None:
    faults = board(*[Fault(FaultKind.REFUSE)] * FAULTS_MAX)
    with pytest.raises(ValueError, match="clear some first"):
        faults.add(Fault(FaultKind.REFUSE))


def test_a_fault_is_read_from_json() -> None:
    raw = b'{"kind": "status", "status": 429, "retry_after": 2, "count": 5}'
    assert parse_fault(raw) == Fault(FaultKind.STATUS, status=429, retry_after=2.0, count=5)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"{}",
        b'{"kind": "burn"}',
        b'{"kind": "hang", "for": 5}',
        b'{"kind": "status", "status": 200}',
        b'{"kind": "hang", "count": 0}',
        b'{"kind": "hang", "probability": 0}',
        b'{"kind": "cut", "after_chunks": -1}',
        b'{"kind": "slow", "factor": 0}',
        b'{"kind": "slow", "count": 3}',
        b'{"kind": "hang", "count": "many"}',
        b"[" * 100_000,
    ],
)
def test_what_makes_no_sense_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_fault(raw)
