"""Load as a share of what a fleet can do."""

import pytest

from kinference.sim.cluster.demand import at_load, engine_seconds
from kinference.sim.cluster.job import Arrival
from kinference.sim.cluster.scenarios import ENGINE, SLOW_ENGINE
from kinference.sim.kv_cache import BlockHash

BLOCKS = tuple(map(BlockHash, range(8)))


def test_what_one_great_cache_would_hit_is_no_work() -> None:
    cold = [Arrival(0.0, 4_096, 1, BLOCKS)]
    assert engine_seconds(cold * 3, (ENGINE,)) == pytest.approx(engine_seconds(cold, (ENGINE,)), rel=0.01)


def test_twice_the_load_comes_in_half_the_time(arrivals: list[Arrival]) -> None:
    slow, fast = (at_load(arrivals, (ENGINE,) * 2, load) for load in (0.4, 0.8))
    assert (slow[0].at, fast[0].at) == (0.0, 0.0)
    assert fast[-1].at == pytest.approx(slow[-1].at / 2)


def test_slow_engines_count_for_what_they_can_do(arrivals: list[Arrival]) -> None:
    equal, mixed = (at_load(arrivals, engines, 0.8) for engines in ((ENGINE,) * 2, (ENGINE, SLOW_ENGINE)))
    assert mixed[-1].at == pytest.approx(equal[-1].at * 2 / 1.4, rel=0.05)
