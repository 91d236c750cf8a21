"""The leaping engine and the stepping one, given the same requests, end them at the same times."""

from hypothesis import given, settings
from hypothesis import strategies as st

from kinference.sim.cluster.engine import LeapingEngine
from kinference.sim.cluster.gaps import Gaps
from kinference.sim.cluster.job import Arrival, Job
from kinference.sim.events import Finished, FirstToken, SimRequest
from kinference.sim.kv_cache import BlockHash
from kinference.sim.model import EngineModel
from kinference.sim.timing import Timing

TIMING = Timing(kv_blocks=256, block_tokens=64)
asked = st.tuples(st.floats(0.0, 2.0), st.integers(1, 6_000), st.integers(1, 300), st.integers(0, 2))


def arrivals_of(draws: list[tuple[float, int, int, int]]) -> list[Arrival]:
    return [
        Arrival(at, prompt, output, tuple(BlockHash(1_000 * family + place) for place in range(prompt // 64)))
        for at, prompt, output, family in sorted(draws)
    ]


def stepped(arrivals: list[Arrival]) -> dict[int, tuple[float, float]]:
    model = EngineModel(TIMING)
    events = []
    for number, arrival in enumerate(arrivals):
        events += model.advance(arrival.at)
        model.submit(SimRequest(number, arrival.prompt_tokens, arrival.output_tokens, arrival.blocks), arrival.at)
    events += model.advance(1e9)
    first = {event.request: event.at for event in events if isinstance(event, FirstToken)}
    return {event.request: (first[event.request], event.at) for event in events if isinstance(event, Finished)}


def leapt(arrivals: list[Arrival]) -> dict[int, tuple[float, float]]:
    engine, jobs = LeapingEngine(TIMING, Gaps()), [Job(arrival) for arrival in arrivals]
    for job in jobs:
        while engine.ends_at is not None and engine.ends_at <= job.arrival.at:
            engine.end_leap()
        engine.submit(job, job.arrival.at)
    while engine.ends_at is not None:
        engine.end_leap()
    return {number: (job.first_at or 0.0, job.finished_at or 0.0) for number, job in enumerate(jobs)}


@settings(max_examples=60)
@given(st.lists(asked, min_size=1, max_size=8))
def test_first_and_last_tokens_come_within_a_few_steps_of_each_other(
    draws: list[tuple[float, int, int, int]],
) -> None:
    arrivals = arrivals_of(draws)
    one, other = stepped(arrivals), leapt(arrivals)
    assert one.keys() == other.keys()
    longest_s = TIMING.step_s(TIMING.batched_tokens_max, len(arrivals), 16_384)
    for number in one:
        for exact, near in zip(one[number], other[number], strict=True):
            assert abs(exact - near) <= 3 * longest_s + 0.05 * exact
