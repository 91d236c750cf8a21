import logging

import pytest

from kinference.core.fleet import Fleet
from kinference.errors import UpstreamTimeout
from kinference.fleet.options import WatchOptions
from kinference.fleet.scrape import READERS, Scrape
from kinference.vocabulary import Engine
from tests.unit.fleet.fakes import HERE, POOL, FakeAnswer, FakeUpstream, ManualClock, fleet_of, only, spec, vllm_metrics


class Case:
    """One endpoint, its engine and its scrape."""

    def __init__(self, engine: Engine = Engine.VLLM, *, ready: bool = True) -> None:
        self.clock, self.upstream = ManualClock(), FakeUpstream()
        self.fleet: Fleet = fleet_of(spec(engine=engine))
        self.fleet.set_ready(POOL, HERE, ready)
        self.scrape = Scrape(self.fleet, self.upstream, self.clock, only(self.fleet), WatchOptions())


async def test_a_scrape_is_observed_with_the_time_it_was_asked_for() -> None:
    case = Case()
    case.upstream.engine(metrics=vllm_metrics(waiting=3, running=5))
    case.upstream.answered = lambda _url: setattr(case.clock, "time", 200.0)
    await case.scrape.step()
    observation = only(case.fleet).observation
    assert observation is not None
    assert (observation.waiting, observation.running, observation.seen_at) == (3, 5, 100.0)


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (FakeAnswer(404), "/metrics answered 404"),
        (FakeAnswer(200, b"hello\n"), "/metrics has nothing of vllm"),
        (UpstreamTimeout("slow"), "slow"),
    ],
)
async def test_a_failing_scrape_leaves_the_last_observation_and_is_reported_once(
    page: FakeAnswer | UpstreamTimeout, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    case = Case()
    case.upstream.engine(metrics=vllm_metrics(waiting=3))
    await case.scrape.step()
    before = only(case.fleet).observation
    case.upstream.engine(metrics=page)
    for _ in range(3):
        await case.scrape.step()
    assert only(case.fleet).observation is before
    assert case.scrape.is_failing
    assert [record.message for record in caplog.records if record.levelno == logging.WARNING] == [
        f"endpoint 10.0.0.1:8000 of pool default/pool is routed to without fresh metrics: {why}"
    ]


async def test_a_scrape_that_works_again_is_no_longer_failing() -> None:
    case = Case()
    await case.scrape.step()
    assert case.scrape.is_failing
    case.upstream.engine(metrics=vllm_metrics())
    await case.scrape.step()
    assert not case.scrape.is_failing


@pytest.mark.parametrize("engine", [engine for engine in Engine if engine not in READERS])
async def test_an_engine_whose_metrics_are_not_known_is_asked_nothing(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    case = Case(engine)
    await case.scrape.step()
    assert (case.upstream.requests, caplog.records) == ([], [])


async def test_an_endpoint_that_is_not_ready_is_asked_nothing() -> None:
    case = Case(ready=False)
    await case.scrape.step()
    assert case.upstream.requests == []


async def test_each_engine_is_asked_for_the_page_that_has_its_metrics() -> None:
    case = Case(Engine.TRTLLM)
    await case.scrape.step()
    assert [request.target for request in case.upstream.requests] == ["/prometheus/metrics"]
