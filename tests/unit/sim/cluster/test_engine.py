"""The leaping engine: the schedule of the stepping one, in fewer strides."""

from itertools import count

import pytest

from kinference.sim.cluster.engine import LeapingEngine
from kinference.sim.cluster.gaps import Gaps
from kinference.sim.cluster.job import Arrival, Job
from kinference.sim.kv_cache import BlockHash
from kinference.sim.timing import Timing

TIMING = Timing(kv_blocks=64, block_tokens=512)


def job(prompt: int, output: int, first: int = 0, at: float = 0.0) -> Job:
    return Job(Arrival(at, prompt, output, tuple(map(BlockHash, range(first, first + prompt // 512)))))


def run(engine: LeapingEngine) -> int:
    """Let everything in it end; returns the leaps that took."""
    for leaps in count():
        if engine.ends_at is None:
            return leaps
        engine.end_leap()
    raise AssertionError


def engine(timing: Timing = TIMING) -> LeapingEngine:
    return LeapingEngine(timing, Gaps())


def test_a_lone_prompt_takes_its_prefill_and_then_a_step_a_token() -> None:
    one, alone = engine(), job(4_096, 11)
    one.submit(alone, 0.0)
    assert run(one) <= 4
    assert alone.first_at == pytest.approx(4_096 / 16_000)
    step_s = TIMING.step_s(0, 1, 4_100)
    assert alone.finished_at == pytest.approx(4_096 / 16_000 + 10 * step_s, rel=0.01)
    assert not one.cache.used


def test_the_second_of_equal_prompts_hits_all_but_its_last_block() -> None:
    one, first, second = engine(), job(2_048, 1), job(2_048, 1)
    one.submit(first, 0.0)
    run(one)
    one.submit(second, 1.0)
    run(one)
    assert (first.cached, second.cached) == (0, 1_536)


def test_a_leap_ends_early_for_one_who_arrives() -> None:
    one, early, late = engine(), job(512, 200), job(512, 1, first=50)
    one.submit(early, 0.0)
    one.end_leap()
    ends_at = one.ends_at
    assert ends_at is not None
    assert one.submit(late, 0.1)
    assert one.ends_at is not None
    assert 0.1 <= one.ends_at < 0.12 < ends_at
    run(one)
    assert late.first_at is not None
    assert late.first_at < 0.2


def test_who_grows_beyond_the_cache_pushes_out_the_youngest_and_all_end() -> None:
    one = engine(Timing(kv_blocks=8, block_tokens=512))
    jobs = [job(1_536, 1_000, first=10 * number) for number in range(2)]
    for each in jobs:
        one.submit(each, 0.0)
    run(one)
    assert all(each.finished_at is not None for each in jobs)
    assert jobs[0].finished_at is not None
    assert jobs[1].finished_at is not None
    assert jobs[0].finished_at < jobs[1].finished_at
    assert (one.cache.used, one.context_tokens) == (0, 0)


def test_who_does_not_fit_waits_for_room() -> None:
    one = engine(Timing(kv_blocks=8, block_tokens=512))
    first, second = job(3_000, 50), job(3_000, 1, first=20)
    one.submit(first, 0.0)
    assert not one.submit(second, 0.0)
    run(one)
    assert first.finished_at is not None
    assert second.first_at is not None
    assert second.first_at > first.finished_at


def test_a_dead_engine_gives_everything_back() -> None:
    one, jobs = engine(), [job(4_096, 50, first=10 * number) for number in range(3)]
    for each in jobs:
        one.submit(each, 0.0)
    one.end_leap()
    assert set(one.fail()) == set(jobs)
    assert (one.running, one.ends_at, one.cache.used, one.prefill_left()) == (0, None, 0, 0)


def test_a_leap_goes_on_at_another_pace_from_where_it_is() -> None:
    one, alone = engine(), job(4_096, 1)
    one.submit(alone, 0.0)
    one.change_pace(10.0, 0.064)
    one.change_pace(1.0, 0.704)
    run(one)
    assert alone.first_at == pytest.approx(0.704 + 0.256 - 0.128)


def test_one_that_hangs_computes_nothing_until_it_goes_on() -> None:
    one, before, within = engine(), job(4_096, 1), job(4_096, 1, first=50)
    one.submit(before, 0.0)
    one.change_pace(1e6, 0.128)
    one.submit(within, 1.0)
    one.change_pace(1.0, 2.0)
    run(one)
    assert before.first_at == pytest.approx(2.128, abs=1e-3)
    assert within.first_at == pytest.approx(2.384, abs=1e-3)


def test_one_that_is_slow_takes_as_many_times_as_long() -> None:
    one, slow = engine(), job(2_048, 1)
    one.change_pace(5.0, 0.0)
    one.submit(slow, 1.0)
    run(one)
    assert slow.first_at == pytest.approx(1.0 + 5 * 0.128)
