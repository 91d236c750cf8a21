"""The filters, one by one."""

import pytest

from kinference.core.filters import FILTERS, Question, Verdict, screen
from kinference.core.fleet import BackendSpec, Endpoint, EndpointSpec, Lacking
from kinference.core.limits import Limits
from kinference.core.policy import TargetKind, TenantRule
from kinference.core.prices import FREE, PricedModel
from kinference.core.request import Request
from kinference.core.roster import Destination
from kinference.ids import Address, ObjectRef
from kinference.vocabulary import Api, Engine, Need

POOL = ObjectRef("default", "pool")


def local(
    *, ready: bool = True, draining: bool = False, models: str = "m", engine: Engine = Engine.VLLM
) -> Destination:
    endpoint = Endpoint(EndpointSpec(POOL, Address("h:1")), 0, 1, ready, draining, engine, frozenset(models.split()))
    return Destination(TargetKind.POOL, POOL, "pool", endpoint)


def backend(api: Api, priced: str = "", lacks: tuple[Lacking, ...] = ()) -> Destination:
    ref, prices = ObjectRef("default", "openai"), (PricedModel(priced, FREE),)
    spec = BackendSpec(ref, api, {}, prices=prices, lacks=lacks)
    return Destination(TargetKind.BACKEND, ref, "backend", backend=spec)


def verdict(destination: Destination, api: Api = Api.OPENAI_CHAT, model: str | None = "m") -> Verdict | None:
    return screen(Question(Request("m", api, (), 0), None, destination, model))


def test_a_ready_endpoint_with_the_model_passes_every_filter() -> None:
    assert verdict(local()) is None


def test_each_cause_has_its_verdict() -> None:
    assert verdict(local(models="other")) is Verdict.NOT_SERVED
    assert verdict(local(), model=None) is Verdict.NOT_SERVED
    assert verdict(local(ready=False)) is Verdict.NOT_READY
    assert verdict(local(draining=True)) is Verdict.DRAINING


def test_an_engine_that_never_told_its_models_is_not_ready_rather_than_without_the_model() -> None:
    assert verdict(local(models="", ready=False)) is Verdict.NOT_READY
    assert verdict(local(models="", ready=True)) is Verdict.NOT_SERVED


@pytest.mark.parametrize("engine", list(Engine))
def test_every_engine_speaks_openai_and_some_speak_anthropic(engine: Engine) -> None:
    for api in (Api.OPENAI_CHAT, Api.OPENAI_COMPLETIONS, Api.OPENAI_EMBEDDINGS, Api.OPENAI_RESPONSES):
        assert verdict(local(engine=engine), api) is None
    speaks = engine in {Engine.AUTO, Engine.VLLM, Engine.SGLANG}
    assert (verdict(local(engine=engine), Api.ANTHROPIC_MESSAGES) is None) == speaks


@pytest.mark.parametrize("engine", list(Engine))
@pytest.mark.parametrize("api", [Api.ANTHROPIC_MESSAGES, Api.GEMINI])
def test_every_engine_serves_whoever_can_put_it_in_chat(engine: Engine, api: Api) -> None:
    for reached, serves in ((Api.OPENAI_CHAT, True), (Api.BEDROCK_CONVERSE, False)):
        request = Request("m", api, (), 0, reaches=frozenset({reached}))
        found = screen(Question(request, None, local(engine=engine), "m"))
        speaks = api is Api.ANTHROPIC_MESSAGES and engine in {Engine.AUTO, Engine.VLLM, Engine.SGLANG}
        assert (found is None) == (serves or speaks)


def test_a_backend_serves_its_own_api_or_a_caller_that_translates() -> None:
    assert verdict(backend(Api.OPENAI_CHAT)) is None
    assert verdict(backend(Api.ANTHROPIC_MESSAGES)) is Verdict.WRONG_API
    translating = Request("m", Api.OPENAI_CHAT, (), 0, reaches=frozenset({Api.ANTHROPIC_MESSAGES}))
    assert screen(Question(translating, None, backend(Api.ANTHROPIC_MESSAGES), "m")) is None


def test_the_tenants_limits_come_last() -> None:
    closed = TenantRule(("t",), destinations=())
    request = Request("m", Api.OPENAI_CHAT, (), 0, tenant="t")
    assert screen(Question(request, closed, local(), "m")) is Verdict.FORBIDDEN
    assert screen(Question(request, closed, local(ready=False), "m")) is Verdict.NOT_READY
    assert len(FILTERS) == 7


@pytest.mark.parametrize(
    "rule", [TenantRule(("t",), limits=Limits(usd_per_month=1.0)), TenantRule(("t",), usd_per_hour=1.0)]
)
def test_who_minds_money_goes_nowhere_at_an_unknown_price(rule: TenantRule) -> None:
    request = Request("m", Api.OPENAI_CHAT, (), 0, tenant="t")
    assert screen(Question(request, rule, backend(Api.OPENAI_CHAT), "m")) is Verdict.UNPRICED
    assert screen(Question(request, rule, backend(Api.OPENAI_CHAT, "m"), "m")) is None
    assert screen(Question(request, rule, local(), "m")) is None
    careless = TenantRule(("t",), limits=Limits(concurrent=1))
    assert screen(Question(request, careless, backend(Api.OPENAI_CHAT), "m")) is None


def test_every_verdict_says_what_would_help() -> None:
    assert all(one.cause and one.remedy for one in Verdict)


@pytest.mark.parametrize("need", list(Need))
def test_who_is_known_to_lack_a_need_is_left_out_and_of_whom_nothing_is_known_is_not(need: Need) -> None:
    lacks = (Lacking("m*", frozenset({need})),)
    there = backend(Api.OPENAI_CHAT, lacks=lacks)
    spec = EndpointSpec(POOL, Address("h:1"), lacks=lacks)
    served = Endpoint(spec, 0, 1, ready=True, models=frozenset({"m", "n"}))
    here = Destination(TargetKind.POOL, POOL, "pool", served)
    asks = Request("m", Api.OPENAI_CHAT, (), 0, needs=frozenset({need}))
    asks_other = Request("m", Api.OPENAI_CHAT, (), 0, needs=frozenset(set(Need) - {need}))
    for destination in (there, here):
        assert screen(Question(asks, None, destination, "m")) is Verdict.LACKS
        assert screen(Question(asks, None, destination, "n")) is None
        assert screen(Question(asks_other, None, destination, "m")) is None
    assert screen(Question(asks, None, backend(Api.OPENAI_CHAT), "m")) is None
