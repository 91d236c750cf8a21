"""Who sends jobs where."""

from kinference.core.policy import RoutingRules
from kinference.core.waiting import AdmissionRules
from kinference.sim.cluster.dispatch import HELD, Clairvoyant, CoreDispatcher
from kinference.sim.cluster.engine import LeapingEngine
from kinference.sim.cluster.gaps import Gaps
from kinference.sim.cluster.job import Arrival, Job
from kinference.sim.cluster.scenarios import ENGINE
from kinference.sim.kv_cache import BlockHash


def job(first: int = 0, at: float = 0.0) -> Job:
    return Job(Arrival(at, 4_096, 10, tuple(map(BlockHash, range(first, first + 8)))))


def engines(count: int) -> list[LeapingEngine]:
    return [LeapingEngine(ENGINE, Gaps()) for _ in range(count)]


def test_the_core_sends_a_known_prefix_back_and_an_unknown_one_away() -> None:
    core = CoreDispatcher(engines(4), RoutingRules(), AdmissionRules(), seed=1)
    for number in range(4):
        core.seen(number, 1, 0.0)
    first, again, other = job(), job(), job(100)
    place = core.send(first, 0.0)
    first.first_at = 0.3
    core.first(first, first.reservation, 0.3)
    core.done(first, first.reservation, 0.4)
    assert core.send(again, 1.0) == place
    assert core.send(other, 1.0) != place


def test_an_engine_that_nobody_can_reach_gets_nothing() -> None:
    core = CoreDispatcher(engines(2), RoutingRules(), AdmissionRules(enabled=False), seed=1)
    core.seen(0, 0, 0.0)
    assert core.send(job(), 0.0) is None
    core.seen(1, 1, 0.0)
    assert {core.send(job(100 * number), 0.0) for number in range(6)} == {1}


def test_a_lost_job_counts_against_its_engine() -> None:
    core = CoreDispatcher(engines(2), RoutingRules(), AdmissionRules(), seed=1)
    core.seen(0, 1, 0.0)
    core.seen(1, 1, 0.0)
    places = []
    for number in range(20):
        one = job(100 * number)
        place = core.send(one, float(number))
        if place == 0:
            core.lost(one, one.reservation, float(number))
        else:
            core.done(one, one.reservation, float(number))
        places.append(place)
    assert places[-5:].count(0) <= 1


def test_the_report_of_a_first_token_that_an_engines_death_overtook_tells_nothing() -> None:
    core = CoreDispatcher(engines(1), RoutingRules(), AdmissionRules(), seed=1)
    core.seen(0, 1, 0.0)
    one = job()
    assert core.send(one, 0.0) == 0
    core.lost(one, one.reservation, 0.301)
    core.first(one, one.reservation, 0.305)
    assert core.send(job(100), 1.0) == 0


def test_the_oracle_sees_caches_and_queues() -> None:
    fleet = engines(3)
    oracle = Clairvoyant(fleet)
    fleet[0].submit(job(100), 0.0)
    fleet[2].submit(job(), 0.0)
    while fleet[2].ends_at is not None:
        fleet[2].end_leap()
    assert oracle.send(job(), 0.1) == 2
    oracle.seen(2, 0, 0.2)
    assert oracle.send(job(), 0.3) == 1


def test_what_nobody_can_start_soon_is_held_until_an_engine_is_done() -> None:
    core = CoreDispatcher(engines(1), RoutingRules(), AdmissionRules(start_within_ms=50.0), seed=1)
    core.seen(0, 1, 0.0)
    first, second = job(), job(100)
    assert core.send(first, 0.0) == 0
    assert core.send(second, 0.0) == HELD
    assert core.release(0.0) == []
    assert core.due(0.0) is not None
    first.first_at = 0.3
    core.first(first, first.reservation, 0.3)
    assert core.release(0.3) == [(second, 0)]
    assert core.due(0.3) is None
