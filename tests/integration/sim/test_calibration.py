"""The engine behind `kinference sim` and the one of `kinference simulate`, given the same traffic, agree within 5%."""

from random import Random

import pytest

from kinference.sim.cluster.demand import at_load
from kinference.sim.cluster.engine import LeapingEngine
from kinference.sim.cluster.gaps import Gaps
from kinference.sim.cluster.job import Arrival, Job
from kinference.sim.cluster.scenarios import ENGINE
from kinference.sim.cluster.summary import percentile
from kinference.sim.events import FirstToken, SimRequest
from kinference.sim.model import EngineModel
from kinference.sim.workloads.catalogue import WORKLOADS

HALF_A_STEP_S = ENGINE.step_s(ENGINE.batched_tokens_max, 0, 0) / 2
"""Who arrives a moment before or after a step begins waits one step less or more; in a queue that goes on to others."""


def stepped(arrivals: list[Arrival]) -> list[float]:
    """Times to first token by the model that answers over HTTP."""
    model, events = EngineModel(ENGINE), []
    for number, arrival in enumerate(arrivals):
        events += model.advance(arrival.at)
        model.submit(SimRequest(number, arrival.prompt_tokens, arrival.output_tokens, arrival.blocks), arrival.at)
    events += model.advance(arrivals[-1].at + 1e6)
    return sorted(event.at - arrivals[event.request].at for event in events if isinstance(event, FirstToken))


def leapt(arrivals: list[Arrival]) -> list[float]:
    """The same by the fleet's engine."""
    engine, jobs = LeapingEngine(ENGINE, Gaps()), [Job(arrival) for arrival in arrivals]
    for job in jobs:
        while engine.ends_at is not None and engine.ends_at <= job.arrival.at:
            engine.end_leap()
        engine.submit(job, job.arrival.at)
    while engine.ends_at is not None:
        engine.end_leap()
    return sorted(job.first_at - job.arrival.at for job in jobs if job.first_at is not None)


@pytest.mark.parametrize("load", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("name", ["chats", "agents", "documents"])
def test_percentiles_of_the_time_to_first_token_agree(name: str, load: float) -> None:
    arrivals = at_load(WORKLOADS[name](Random(5), 400, 1.5), (ENGINE,), load)
    exact, near = stepped(arrivals), leapt(arrivals)
    assert len(exact) == len(near) == len(arrivals)
    for share in (0.1, 0.5, 0.9, 0.99):
        assert percentile(near, share) == pytest.approx(percentile(exact, share), rel=0.05, abs=HALF_A_STEP_S)
