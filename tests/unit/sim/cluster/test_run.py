"""The fleet in virtual time."""

from collections import Counter
from dataclasses import replace
from statistics import fmean

import pytest

from kinference.sim.cluster.job import Arrival
from kinference.sim.cluster.run import CLAIRVOYANT, ClusterRun, FleetOptions, Outage, Played, Slowness
from kinference.sim.cluster.scenarios import ENGINE, SCENARIOS
from kinference.sim.cluster.summary import ttft_s
from kinference.sim.kv_cache import BlockHash


def test_every_job_ends_in_order_of_cause(played: Played) -> None:
    for job in played.jobs:
        assert job.first_at is not None
        assert job.finished_at is not None
        assert job.arrival.at <= job.sent_at < job.first_at <= job.finished_at <= played.took_s


def test_the_same_seed_gives_the_same_run(arrivals: list[Arrival], played: Played) -> None:
    again = ClusterRun(FleetOptions((ENGINE,) * 2, "expected_latency")).play(arrivals)
    assert [job.finished_at for job in again.jobs] == [job.finished_at for job in played.jobs]


@pytest.mark.parametrize("policy", ["round_robin", "lmetric", CLAIRVOYANT])
def test_policies_by_name_serve_all(policy: str, arrivals: list[Arrival]) -> None:
    jobs = ClusterRun(FleetOptions((ENGINE,) * 2, policy)).play(arrivals).jobs
    assert all(job.finished_at is not None for job in jobs)
    assert {job.engine for job in jobs} == {0, 1}


def test_an_outage_is_survived_and_its_engine_comes_back_into_use(arrivals: list[Arrival]) -> None:
    outage = Outage(0, 20.0, 40.0)
    played = ClusterRun(FleetOptions((ENGINE,) * 2, "expected_latency", outages=(outage,))).play(arrivals)
    lost = [job for job in played.jobs if job.finished_at is None]
    assert len(lost) <= 20
    assert not [job for job in played.jobs if job.engine == 0 and 25.0 < job.sent_at < 40.0]
    assert [job for job in played.jobs if job.engine == 0 and job.sent_at > 45.0]


def test_an_engine_that_joins_later_takes_its_share(arrivals: list[Arrival]) -> None:
    played = ClusterRun(FleetOptions((ENGINE,) * 2, "lmetric", outages=(Outage(1, 0.0, 30.0),))).play(arrivals)
    assert all(job.engine == 0 for job in played.jobs if job.sent_at < 30.0)
    late = [job.engine for job in played.jobs if job.sent_at > 35.0]
    assert 0.2 < late.count(1) / len(late) < 0.8


def test_with_nobody_alive_jobs_are_refused(arrivals: list[Arrival]) -> None:
    played = ClusterRun(FleetOptions((ENGINE,), "expected_latency", outages=(Outage(0, 0.0, 1e6),))).play(arrivals)
    assert all(job.finished_at is None for job in played.jobs)


def test_an_only_engine_that_dies_for_a_while_takes_those_that_are_held_for_it_not_along() -> None:
    """A thousand wait when it dies. Whatever was inside is lost where it had begun; of the others hardly any is."""
    crowd = [Arrival(number / 1e3, 8_000, 50, ()) for number in range(1_000)]
    played = ClusterRun(FleetOptions((ENGINE,), "expected_latency", outages=(Outage(0, 5.0, 25.0),))).play(crowd)
    lost = [job for job in played.jobs if job.finished_at is None]
    assert len(lost) < 20
    assert all(job.sent_at < 7.0 or job.sent_at > 24.0 for job in played.jobs), "its probe tells within two seconds"


@pytest.mark.parametrize("policy", ["expected_latency", "least_request", CLAIRVOYANT])
@pytest.mark.parametrize(("prompt", "output"), [(2_000_000, 5), (1_000_000, 100_000)])
def test_what_is_longer_than_any_kv_cache_is_refused_and_keeps_nobody_waiting(
    prompt: int, output: int, policy: str
) -> None:
    crowd = [Arrival(number / 10, prompt if number % 9 == 0 else 300, output, ()) for number in range(60)]
    jobs = ClusterRun(FleetOptions((ENGINE,) * 2, policy)).play(crowd).jobs
    assert all((job.finished_at is None) == (job.arrival.prompt_tokens == prompt) for job in jobs)


def test_a_prompt_too_long_for_the_older_engines_goes_to_the_newer_ones() -> None:
    engines = SCENARIOS["mixed_gpus"].engines(2)
    crowd = [Arrival(10.0 * number, 800_000 if number % 2 else 300, 5, ()) for number in range(12)]
    jobs = ClusterRun(FleetOptions(engines, "expected_latency")).play(crowd).jobs
    assert all(job.finished_at is not None for job in jobs)
    assert {job.engine for job in jobs if job.arrival.prompt_tokens > 300} == {0}


def test_who_is_held_costs_few_looks() -> None:
    """Each look called for another one when it was overtaken: their number grew with the square of the run's length."""
    crowd = [Arrival(number / 100, 4_000, 50, ()) for number in range(1_000)]
    run = ClusterRun(FleetOptions((ENGINE,) * 2, "expected_latency"))
    jobs = run.play(crowd).jobs
    assert all(job.finished_at is not None for job in jobs)
    assert next(run._order) < 40 * len(jobs)


def test_few_long_prompts_that_many_ask_about_come_to_be_cached_wherever_there_is_an_engine() -> None:
    heads = [tuple(BlockHash(100 * head + number) for number in range(40)) for head in range(2)]
    crowd = [Arrival(number / 60, 40 * 512 + 200, 100, heads[number % 2]) for number in range(1_200)]
    jobs = ClusterRun(FleetOptions((ENGINE,) * 4, "expected_latency")).play(crowd).jobs[600:]
    served = Counter(job.engine for job in jobs)
    assert min(served.values()) > 0.5 * len(jobs) / 4
    assert len(served) == 4
    assert sum(job.cached for job in jobs) > 0.98 * sum(job.arrival.prompt_tokens for job in jobs)


def test_reports_that_come_late_let_no_engine_rest_while_others_are_held() -> None:
    crowd = [Arrival(number / 12, 2_500, 20, ()) for number in range(600)]

    def mean_s(delay_s: float) -> float:
        jobs = ClusterRun(FleetOptions((ENGINE,) * 2, "expected_latency", report_delay_s=delay_s)).play(crowd).jobs
        return fmean(ttft_s(job) for job in jobs)

    assert mean_s(0.5) < 2.0 * mean_s(0.005)


def test_who_is_at_an_engine_that_hangs_waits_until_it_goes_on(arrivals: list[Arrival]) -> None:
    slowness = Slowness(0, 20.0, 40.0, 1e6)
    played = ClusterRun(FleetOptions((ENGINE,) * 2, "round_robin", slownesses=(slowness,))).play(arrivals)
    assert all(job.finished_at is not None for job in played.jobs)
    hung = [job for job in played.jobs if job.engine == 0 and 21.0 < job.sent_at < 39.0]
    assert hung
    assert all(job.first_at is not None and job.first_at >= 40.0 for job in hung)


def test_an_engine_whose_metrics_hang_is_sent_to_as_before(arrivals: list[Arrival]) -> None:
    lasts_s = arrivals[-1].at
    hung = FleetOptions((ENGINE,) * 2, "expected_latency", untold=(Outage(0, 0.2 * lasts_s, lasts_s),))
    jobs = ClusterRun(hung).play(arrivals).jobs
    late = [job.engine for job in jobs if job.arrival.at > 0.3 * lasts_s]
    assert 0.35 < late.count(0) / len(late) < 0.65


def test_what_an_engine_tells_is_not_heard_while_its_metrics_hang() -> None:
    told = FleetOptions((ENGINE,) * 2, "round_robin")
    for untold, is_tried in (((), False), ((Outage(0, 1.5, 30.0),), True), ((Outage(1, 1.5, 30.0),), False)):
        run = ClusterRun(replace(told, untold=untold, outages=(Outage(0, 2.0, 20.0),)))
        jobs = run.play([Arrival(float(second), 600, 10, ()) for second in range(3, 15)]).jobs
        assert any(job.attempts > 1 for job in jobs if job.arrival.at > 4.0) is is_tried
