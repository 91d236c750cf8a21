"""Fleets by name."""

import pytest

from kinference.sim.cluster.scenarios import SCENARIOS, SLOW_ENGINE


@pytest.mark.parametrize("name", list(SCENARIOS))
@pytest.mark.parametrize("count", [1, 4, 64])
def test_a_fleet_has_its_size_and_outages_end(name: str, count: int) -> None:
    scenario = SCENARIOS[name]
    assert len(scenario.engines(count)) == count
    assert all(0.0 <= one.begins_at < one.ends_at < 100.0 for one in scenario.outages(count, 100.0))


def test_half_of_mixed_gpus_are_slow() -> None:
    assert SCENARIOS["mixed_gpus"].engines(8).count(SLOW_ENGINE) == 4
