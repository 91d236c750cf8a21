import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing

import pytest

from kinference.sim.events import BlocksStored, Event
from kinference.sim.kv_cache import BlockHash
from kinference.sim.metrics import EngineMetrics
from kinference.sim.model import EngineModel
from kinference.sim.runner import Job, Runner, run_to_end
from kinference.sim.text import pad
from kinference.sim.timing import Timing

JOB = Job(pad("x" * 400), pad("y" * 40), tuple(BlockHash(number) for number in range(6)))


class ManualClock:
    """Time that passes when a test says so, or a little with every look at it."""

    def __init__(self) -> None:
        self.seconds = 100.0
        self.tick = 0.0

    def now(self) -> float:
        self.seconds += self.tick
        return self.seconds

    def wall(self) -> float:
        return self.seconds


class Rig:
    """A runner under a manual clock."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.model = EngineModel(Timing())
        self.metrics = EngineMetrics(self.model, "m", 0.0)
        self.runner = Runner(self.model, self.clock, 50.0, self.metrics)


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    made = Rig()
    driver = asyncio.create_task(made.runner.drive())
    yield made
    driver.cancel()
    await asyncio.gather(driver, return_exceptions=True)


async def test_simulated_time_runs_faster_than_the_clock(rig: Rig) -> None:
    rig.clock.seconds += 2.0
    assert rig.runner.now() == 100.0


async def test_a_job_makes_no_progress_before_its_time(rig: Rig) -> None:
    work = asyncio.create_task(run_to_end(rig.runner, JOB))
    await asyncio.sleep(0.02)
    assert not work.done()
    rig.clock.seconds += 10
    assert await work == 0


async def test_progress_adds_up_to_the_output_and_ends(rig: Rig) -> None:
    rig.clock.tick = 0.0001
    async with aclosing(rig.runner.run(JOB)) as progress:
        steps = [step async for step in progress]
    assert sum(step.tokens for step in steps) == 10
    assert [step.is_last for step in steps] == [False] * (len(steps) - 1) + [True]


async def test_the_second_job_of_a_prompt_hits_the_cache(rig: Rig) -> None:
    for cached_tokens in (0, 96):
        work = asyncio.create_task(run_to_end(rig.runner, JOB))
        await asyncio.sleep(0)
        rig.clock.seconds += 10
        assert await work == cached_tokens


async def test_whoever_stops_listening_aborts_the_job(rig: Rig) -> None:
    work = asyncio.create_task(run_to_end(rig.runner, JOB))
    await asyncio.sleep(0)
    assert rig.model.running == 1
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    assert (rig.model.running, rig.model.kv_usage) == (0, 0)
    assert 'finished_reason="abort",model_name="m"} 1.0' in rig.metrics.exposition().decode()


async def test_an_observer_is_told_before_the_job_is_forgotten(rig: Rig) -> None:
    told: list[tuple[BlocksStored, Job]] = []

    def observe(events: Sequence[Event], job_of: Callable[[int], Job]) -> None:
        told.extend((event, job_of(event.request)) for event in events if isinstance(event, BlocksStored))

    rig.runner.observe(observe)
    work = asyncio.create_task(run_to_end(rig.runner, JOB))
    await asyncio.sleep(0)
    rig.clock.seconds += 10
    await work
    assert [job for _, job in told] == [JOB] * len(told)
    assert sum(event.count for event, _ in told) == 6


async def test_what_was_answered_is_told_by_the_engines_own_clock(rig: Rig) -> None:
    work = asyncio.create_task(run_to_end(rig.runner, JOB))
    await asyncio.sleep(0.02)
    assert not rig.runner.lived
    rig.clock.seconds += 1_000  # late as we are, it was done when it was done
    await work
    (lived,) = rig.runner.lived
    assert (lived.request.prompt_tokens, lived.request.output_tokens, lived.cached_tokens) == (100, 10, 0)
    assert 0.0 == lived.submitted_at < lived.first_token_at < lived.finished_at < 1.0
