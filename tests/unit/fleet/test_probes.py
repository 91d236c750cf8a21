import logging

import pytest

from kinference.core.fleet import EndpointSpec, Fleet
from kinference.errors import NoConnectionLeft, UpstreamTimeout, UpstreamUnreachable
from kinference.fleet.model_list import MODELS_MAX
from kinference.fleet.options import WatchOptions
from kinference.fleet.probes import Probe, Readiness
from kinference.vocabulary import Engine
from tests.unit.fleet.fakes import FakeAnswer, FakeUpstream, ManualClock, fleet_of, models, only, spec

OPTIONS = WatchOptions(models_interval=10.0)
SUBJECT = "endpoint 10.0.0.1:8000 of pool default/pool"


class Case:
    """One endpoint, its engine and its probe."""

    def __init__(self, endpoint: EndpointSpec | None = None) -> None:
        self.clock, self.upstream = ManualClock(), FakeUpstream()
        self.spec = endpoint or spec()
        self.fleet: Fleet = fleet_of(self.spec)
        self.probe = Probe(self.fleet, self.upstream, self.clock, self.spec, OPTIONS)

    @property
    def ready(self) -> bool:
        return only(self.fleet).ready

    @property
    def models(self) -> list[str]:
        return sorted(only(self.fleet).models)

    async def probe_times(self, count: int) -> list[bool]:
        """Readiness after each of so many probes."""
        seen = []
        for _ in range(count):
            await self.probe.step()
            seen.append(self.ready)
        return seen


def test_one_success_makes_ready_and_only_a_row_of_failures_unready() -> None:
    readiness = Readiness(failures_max=2)
    seen = []
    for success in (False, True, False, True, False, False, False, True):
        readiness.succeeded() if success else readiness.failed()
        seen.append(readiness.ready)
    assert seen == [False, True, True, True, True, False, False, True]


async def test_a_healthy_engine_is_ready_and_has_its_models() -> None:
    case = Case()
    case.upstream.engine(health=FakeAnswer(200), models=models("m", "n"))
    await case.probe.step()
    endpoint = only(case.fleet)
    assert (endpoint.ready, endpoint.models) == (True, frozenset({"m", "n"}))
    assert (endpoint.max_model_tokens, endpoint.engine) == (4096, Engine.VLLM)


async def test_an_endpoint_has_its_models_by_the_time_it_is_ready() -> None:
    case = Case()
    case.upstream.engine(health=FakeAnswer(200), models=models("m"))
    ready_when_asked = []
    case.upstream.answered = lambda _url: ready_when_asked.append(case.ready)
    await case.probe.step()
    assert ready_when_asked == [False, False]
    assert case.ready


async def test_one_failed_probe_is_forgiven_and_the_second_is_not() -> None:
    case = Case()
    case.upstream.engine(health=FakeAnswer(200), models=models("m"))
    assert await case.probe_times(1) == [True]
    case.upstream.engine(health=FakeAnswer(503))
    assert await case.probe_times(3) == [True, False, False]
    case.upstream.engine(health=FakeAnswer(200))
    assert await case.probe_times(1) == [True]


async def test_a_probe_that_we_had_no_descriptor_for_says_nothing_of_the_endpoint() -> None:
    case = Case()
    case.upstream.engine(health=FakeAnswer(200), models=models("m"))
    assert await case.probe_times(1) == [True]
    case.upstream.engine(health=NoConnectionLeft("too many open files"))
    assert await case.probe_times(5) == [True] * 5


@pytest.mark.parametrize("status", [404, 405, 501])
async def test_an_engine_without_a_health_page_is_judged_by_its_model_list(status: int) -> None:
    case = Case()
    case.upstream.engine(health=FakeAnswer(status), models=models("m"))
    assert await case.probe_times(1) == [True]
    case.upstream.engine(models=FakeAnswer(500))
    assert await case.probe_times(2) == [True, False]


async def test_models_are_read_again_when_due_and_not_before() -> None:
    case = Case()
    case.upstream.engine(health=FakeAnswer(200), models=models("m"))
    await case.probe.step()
    case.upstream.engine(models=models("m", "lora"))
    await case.probe.step()
    assert case.models == ["m"]
    case.clock.time += OPTIONS.models_interval
    await case.probe.step()
    assert case.models == ["lora", "m"]


async def test_models_are_read_again_when_an_engine_comes_back() -> None:
    case = Case()
    case.upstream.engine(health=FakeAnswer(200), models=models("old"))
    await case.probe.step()
    case.upstream.engine(health=UpstreamUnreachable("down"))
    await case.probe.step()
    await case.probe.step()
    case.upstream.engine(health=FakeAnswer(200), models=models("new"))
    await case.probe.step()
    assert case.models == ["new"]


async def test_a_model_list_that_fails_keeps_the_last_one_and_is_asked_again_at_once() -> None:
    case = Case()
    case.upstream.engine(health=FakeAnswer(200), models=models("m"))
    await case.probe.step()
    case.clock.time += OPTIONS.models_interval
    for fault in (FakeAnswer(500), FakeAnswer(200, b"<html>"), UpstreamTimeout("slow")):
        case.upstream.engine(models=fault)
        await case.probe.step()
    assert (case.ready, case.models) == (True, ["m"])
    assert case.upstream.asked("/v1/models") == 4


async def test_configured_models_and_engine_win_over_what_the_engine_says() -> None:
    case = Case(spec(engine=Engine.SGLANG, names=("mine",)))
    case.upstream.engine(health=FakeAnswer(200), models=models("theirs"))
    await case.probe.step()
    endpoint = only(case.fleet)
    assert (endpoint.models, endpoint.engine, endpoint.max_model_tokens) == (frozenset({"mine"}), Engine.SGLANG, 4096)


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (FakeAnswer(200, b'{"data":[]}'), "its model list is empty"),
        (FakeAnswer(404), "/v1/models answered 404"),
        (FakeAnswer(200, b"hello"), "/v1/models is no model list"),
        (FakeAnswer(200, b"x" * 1000, repeats=10**6), "http://10.0.0.1:8000/v1/models is over 1048576 bytes"),
        (UpstreamTimeout("slow"), "slow"),
    ],
)
async def test_an_engine_without_models_is_reported_once_with_the_fix(
    page: FakeAnswer | UpstreamTimeout, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    case = Case()
    case.upstream.engine(health=FakeAnswer(200), models=page)
    for _ in range(3):
        await case.probe.step()
        case.clock.time += OPTIONS.models_interval
    assert [record.message for record in caplog.records if record.levelno == logging.WARNING] == [
        f"{SUBJECT} has no models to route to ({why}); name them in the pool's `models`"
    ]


async def test_an_engine_without_a_model_list_is_fine_where_the_pool_names_its_models(
    caplog: pytest.LogCaptureFixture,
) -> None:
    case = Case(spec(names=("mine",)))
    case.upstream.engine(health=FakeAnswer(200), models=FakeAnswer(404))
    await case.probe.step()
    assert case.ready
    assert [record for record in caplog.records if record.levelno == logging.WARNING] == []


async def test_the_first_models_are_told_by_name(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    case = Case()
    case.upstream.engine(health=FakeAnswer(200), models=models(*(f"m{n}" for n in range(5))))
    await case.probe.step()
    assert "serves m0, m1, m2 and 2 more on" in caplog.text


async def test_more_models_than_the_limit_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    case = Case()
    case.upstream.engine(health=FakeAnswer(200), models=models(*(f"m{n}" for n in range(10_000))))
    await case.probe.step()
    assert len(case.models) == MODELS_MAX
    assert "the first 1000 are used" in caplog.text


async def test_an_unreachable_engine_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    case = Case()
    for _ in range(3):
        await case.probe.step()
    assert [record.message for record in caplog.records] == [
        f"{SUBJECT} is not ready: http://10.0.0.1:8000 is unreachable"
    ]
