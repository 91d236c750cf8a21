"""A run in numbers."""

import pytest

from kinference.sim.cluster.gaps import Gaps
from kinference.sim.cluster.job import Arrival, Job
from kinference.sim.cluster.run import Played
from kinference.sim.cluster.scenarios import ENGINE, SLOW_ENGINE
from kinference.sim.cluster.summary import is_good, percentile, slowdowns, summarize


def served(wait_s: float, gap_s: float = 0.01, tenant: str = "", engine: int = 0) -> Job:
    job = Job(Arrival(10.0, 16_000, 101, (), tenant=tenant))
    job.first_at, job.finished_at, job.engine = 10.0 + wait_s, 10.0 + wait_s + 100 * gap_s, engine
    return job


def test_slow_down_is_against_the_fastest_engine_when_idle_and_cold() -> None:
    assert slowdowns([served(2.0), served(1.0)], (SLOW_ENGINE, ENGINE)) == pytest.approx([2.0, 1.0])


def test_good_is_a_first_token_in_time_and_a_steady_pace() -> None:
    assert is_good(served(3.9))
    assert not is_good(served(4.1))
    assert not is_good(served(1.0, gap_s=0.07))


def test_failures_count_against_goodput_and_the_warm_up_is_left_out() -> None:
    jobs = [served(100.0), *[served(1.0) for _ in range(8)], Job(Arrival(10.0, 100, 5, ()))]
    summary = summarize(Played(jobs, Gaps(), 100.0), (ENGINE,))
    assert (summary.requests, summary.failed) == (9, 1)
    assert summary.goodput == pytest.approx(8 / 9)
    assert summary.ttft_s_p99 == pytest.approx(1.0)


def test_balance_is_by_work_and_fairness_by_tenant() -> None:
    jobs = [served(1.0, tenant="a", engine=0) for _ in range(3)] + [served(3.0, tenant="b", engine=1)]
    summary = summarize(Played(jobs, Gaps(), 100.0), (ENGINE, ENGINE))
    assert summary.work == (0.75, 0.25)
    assert summary.imbalance == pytest.approx(1.5)
    assert summary.tenants == pytest.approx({"a": 1.0, "b": 3.0})
    assert summary.fairness == pytest.approx(0.8)


def test_percentiles_of_nothing_are_zero() -> None:
    assert percentile([], 0.5) == 0.0
    assert percentile([1.0, 2.0, 3.0], 1.0) == 3.0
