"""The engine behind `kinference sim` and the one of `kinference simulate`, given the same traffic, agree within 5%.

Over a real socket the traffic is what arrived, by the engine's own clock: a machine that is busy changes when requests
arrive, and not what follows from that.
"""

import asyncio
from random import Random

import msgspec
import pytest

from kinference.ports import UpstreamRequest
from kinference.sim.cluster.demand import at_load
from kinference.sim.cluster.engine import LeapingEngine
from kinference.sim.cluster.gaps import Gaps
from kinference.sim.cluster.job import Arrival, Job
from kinference.sim.cluster.scenarios import ENGINE
from kinference.sim.cluster.summary import percentile
from kinference.sim.events import FirstToken, SimRequest
from kinference.sim.kv_cache import BlockHash
from kinference.sim.model import EngineModel
from kinference.sim.options import EngineOptions
from kinference.sim.serving import serve_engine
from kinference.sim.workloads.catalogue import WORKLOADS
from kinference.wire.aiohttp_upstream import AiohttpUpstream

HALF_A_STEP_S = ENGINE.step_s(ENGINE.batched_tokens_max, 0, 0) / 2
"""As below, of prompts in a queue: over a socket arrivals are what they happen to be, on whatever percentile they fall."""
A_DECODE_STEP_S = 0.01
"""Who arrives a moment before or after a step begins waits one step less or more: of the least times to first token, which
are no more than a few such steps, that is more than 5%.
"""


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
@pytest.mark.parametrize("name", list(WORKLOADS))
def test_percentiles_of_the_time_to_first_token_agree(name: str, load: float) -> None:
    arrivals = at_load(WORKLOADS[name](Random(5), 400, 1.5), (ENGINE,), load)
    exact, near = stepped(arrivals), leapt(arrivals)
    assert len(exact) == len(near) == len(arrivals)
    assert percentile(near, 0.1) == pytest.approx(percentile(exact, 0.1), rel=0.05, abs=A_DECODE_STEP_S)
    for share in (0.5, 0.9, 0.99):
        assert percentile(near, share) == pytest.approx(percentile(exact, share), rel=0.05)


class Asked(msgspec.Struct):
    id: int
    prompt_tokens: int
    output_tokens: int
    blocks: list[BlockHash]


class Lived(msgspec.Struct):
    request: Asked
    submitted_at: float
    first_token_at: float
    finished_at: float


class LivedPage(msgspec.Struct):
    requests: list[Lived]


def conversation(rng: Random, number: int) -> bytes:
    """A prompt that begins like some of the others."""
    shared = f"You are assistant {number % 7} of many. " * 150
    own = "".join(rng.choice("abcdefgh ") for _ in range(rng.choice([200, 1_500, 9_000])))
    body = {"model": "tiny", "prompt": shared + own, "max_tokens": rng.choice([2, 30, 120])}
    return msgspec.json.encode(body)


async def served(options: EngineOptions, requests: int, gap_s: float) -> list[Lived]:
    """What an engine says of requests that came over a socket, about so far apart."""
    rng = Random(11)
    async with serve_engine(options) as engine, AiohttpUpstream() as upstream, asyncio.TaskGroup() as group:

        async def ask(body: bytes) -> None:
            request = UpstreamRequest(
                "POST", engine.url, "/v1/completions", ((b"content-type", b"application/json"),), (body,)
            )
            answer = await upstream.send(request)
            assert answer.status == 200
            async for _ in answer.chunks():
                pass

        asking = []
        for number in range(requests):
            asking.append(group.create_task(ask(conversation(rng, number))))
            await asyncio.sleep(rng.expovariate(1.0 / gap_s))
        for task in asking:
            await task
        answer = await upstream.send(UpstreamRequest("GET", engine.url, "/sim/requests", ()))
        page = msgspec.json.decode(b"".join([chunk async for chunk in answer.chunks()]), type=LivedPage)
    return sorted(page.requests, key=lambda one: one.request.id)


async def test_what_was_served_over_a_socket_takes_as_long_as_in_the_simulation() -> None:
    lived = await served(EngineOptions(("tiny",), timing=ENGINE, speed=20.0), requests=150, gap_s=0.008)
    arrivals = [
        Arrival(one.submitted_at, one.request.prompt_tokens, one.request.output_tokens, tuple(one.request.blocks))
        for one in lived
    ]
    exact, near = sorted(one.first_token_at - one.submitted_at for one in lived), leapt(arrivals)
    assert len(exact) == len(near) == 150
    for share in (0.1, 0.5, 0.9, 0.99):
        assert percentile(near, share) == pytest.approx(percentile(exact, share), rel=0.05, abs=HALF_A_STEP_S)
    assert percentile(exact, 0.9) > 2 * ENGINE.step_s(0, 1, 0), "somebody had to wait"
