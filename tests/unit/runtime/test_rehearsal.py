"""A decision tried out."""

from kinference.config.destinations import Endpoint, ModelRoute, Pool, Target
from kinference.config.discovery import Discovery, DnsDiscovery
from kinference.config.schema import Config
from kinference.config.values import Count, Name, Url
from kinference.core.decision import EndpointChoice
from kinference.ids import ObjectRef
from kinference.runtime.rehearsal import EndpointState, Question, rehearse
from kinference.vocabulary import Outcome

BODY = b'{"model": "m", "messages": [{"role": "user", "content": "%s"}]}' % (b"hello " * 500)
QUESTION = Question(BODY, "/v1/chat/completions")
CONFIG = Config(pools=(Pool(Name("p"), tuple(Endpoint(Url("http", host, 8000)) for host in ("a", "b"))),))


def state(address: str, **values: object) -> EndpointState:
    known = {"pool": "default/p", "address": address, "models": ("m",), **values}
    return EndpointState(**known)  # type: ignore[arg-type] # values of a test


def test_without_a_state_every_endpoint_is_idle_and_serves_what_is_asked() -> None:
    explanation = rehearse(CONFIG, None, QUESTION).decision.explain()
    assert [one.destination for one in explanation.candidates] == ["default/p/a:8000", "default/p/b:8000"]
    assert explanation.candidates[0].total_ms == explanation.candidates[1].total_ms


def test_an_alias_is_resolved_to_what_its_target_is_asked_for() -> None:
    routed = Config(
        pools=CONFIG.pools, models=(ModelRoute("m", (Target(pool=ObjectRef("default", "p"), model="real"),)),)
    )
    choice = rehearse(routed, None, QUESTION).decision.choice
    assert isinstance(choice, EndpointChoice)
    assert choice.model == "real"


def test_load_and_readiness_come_from_the_state() -> None:
    busy = [state("a:8000", waiting=20, running=30, kv_usage_ratio=0.5), state("b:8000", waiting=0, running=0)]
    choice = rehearse(CONFIG, busy, QUESTION).decision.choice
    assert isinstance(choice, EndpointChoice)
    assert choice.address == "b:8000"
    gone = [state("a:8000", ready=False), state("b:8000", draining=True)]
    assert rehearse(CONFIG, gone, QUESTION).decision.outcome is Outcome.NO_WORKERS


def test_the_same_seed_decides_the_same() -> None:
    first, second = (rehearse(CONFIG, None, QUESTION).decision for _ in range(2))
    assert first.explain() == second.explain()


def test_a_body_that_is_none_is_said() -> None:
    assert rehearse(CONFIG, [], Question(b"[]", "/v1/chat/completions")).decision.outcome is Outcome.BAD_REQUEST


def test_a_fleet_that_nothing_names_is_that_of_the_state() -> None:
    found = [state("a:8000", pool="here/p"), state("b:8000", pool="there/q"), state("c:8000", models=("other",))]
    explanation = rehearse(Config(), found, QUESTION).decision.explain()
    assert [one.destination for one in explanation.candidates] == ["here/p/a:8000", "there/q/b:8000"]
    assert [one.destination for one in rehearse(CONFIG, found, QUESTION).decision.explain().candidates] == []


def test_a_pool_that_is_discovered_has_what_the_state_lists_of_it() -> None:
    discovery = Discovery(dns=DnsDiscovery(Name("engines"), Count(8000)))
    config = Config(pools=(*CONFIG.pools, Pool(Name("q"), discovery=discovery)))
    found = [state("c:8000", pool="default/q"), state("d:8000", pool="default/elsewhere")]
    explanation = rehearse(config, found, QUESTION).decision.explain()
    assert [one.destination for one in explanation.candidates] == ["default/q/c:8000"]
