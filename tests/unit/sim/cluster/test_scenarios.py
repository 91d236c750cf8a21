"""Fleets by name."""

import pytest

from kinference.sim.cluster.scenarios import HANGS, SCENARIOS, SLOW_ENGINE


@pytest.mark.parametrize("name", list(SCENARIOS))
@pytest.mark.parametrize("count", [1, 4, 64])
def test_a_fleet_has_its_size_and_trouble_ends(name: str, count: int) -> None:
    fleet = SCENARIOS[name].fleet(count, 100.0, "round_robin", 1)
    assert len(fleet.engines) == count
    times = [(one.begins_at, one.ends_at) for one in (*fleet.outages, *fleet.untold)]
    times += [(one.begins_at, one.ends_at) for one in fleet.slownesses]
    assert len(times) == (0 if name in ("steady", "mixed_gpus") else max(1, count // 8))
    assert all(0.0 <= begins_at < ends_at < 100.0 for begins_at, ends_at in times)


def test_half_of_mixed_gpus_are_slow() -> None:
    assert SCENARIOS["mixed_gpus"].engines(8).count(SLOW_ENGINE) == 4


def test_each_trouble_is_of_its_kind() -> None:
    kinds = [
        (bool(fleet.outages), [one.times_slower for one in fleet.slownesses], bool(fleet.untold))
        for fleet in (SCENARIOS[name].fleet(4, 10.0, "p", 1) for name in ("pod_dies", "pod_hangs", "metrics_hang"))
    ]
    assert kinds == [(True, [], False), (False, [HANGS], False), (False, [], True)]
