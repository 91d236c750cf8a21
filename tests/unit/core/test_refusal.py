"""What is recorded of a refusal, and what is not."""

from random import Random

import msgspec

from kinference.core.candidates import Options
from kinference.core.fleet import BackendSpec, EndpointSpec, Fleet
from kinference.core.health import Circuit
from kinference.core.limits import Limits
from kinference.core.pick import Router
from kinference.core.policy import RoutingRules, TenantRule
from kinference.core.reasons import REASON_MAX
from kinference.core.refusal import ANOTHER_MODEL, Refusal, refuse
from kinference.core.request import Request
from kinference.ids import Address, ObjectRef
from kinference.vocabulary import Api, Outcome

POOL = ObjectRef("default", "pool")
CHAT = Request("m", Api.OPENAI_CHAT, (b"secret" * 100,), 600, tenant="acme", session="s-1", salt="salty")


def router_of(rules: RoutingRules | None = None, ready: bool = False) -> Router:
    fleet = Fleet()
    fleet.set_pool(POOL, [EndpointSpec(POOL, Address(f"h{n}:1"), models=("m", "others", "more")) for n in range(2)])
    for n in range(2):
        fleet.set_ready(POOL, Address(f"h{n}:1"), ready)
    router = Router(fleet, rules or RoutingRules(), Random(1))
    router.refusals.resize(2)
    return router


def test_of_the_request_there_are_no_prompt_no_session_and_no_salt() -> None:
    router = router_of()
    decision = router.decide(CHAT, 3.0)
    (refusal,) = router.refusals.newest(5)
    assert (refusal.at, refusal.outcome, refusal.reason) == (3.0, Outcome.NO_WORKERS, decision.reason)
    assert (refusal.request.prompt, refusal.request.session, refusal.request.salt) == ((), "", "")
    assert (refusal.request.tenant, refusal.request.prompt_bytes) == ("acme", 600)
    encoded = msgspec.json.encode(refusal)
    assert b"secret" not in encoded
    assert b"salty" not in encoded
    assert msgspec.json.decode(encoded, type=Refusal) == refusal


def test_of_a_backend_there_is_nothing_that_was_reckoned_from_its_credential() -> None:
    fleet = Fleet()
    fleet.set_backends([BackendSpec(ObjectRef("default", "far"), Api.OPENAI_CHAT, {"x": "y"}, revision="0dd5")])
    router = Router(fleet, RoutingRules(), Random(1))
    router.refusals.resize(1)
    router.decide(CHAT, 0.0)
    (refusal,) = router.refusals.newest(1)
    assert [(one.spec.models, one.spec.revision) for one in refusal.backends] == [({"x": "y"}, "")]


def test_of_the_models_there_are_only_those_that_were_asked_for() -> None:
    router = router_of()
    router.decide(CHAT, 0.0)
    router.decide(msgspec.structs.replace(CHAT, model="nope"), 0.0)
    newest, older = router.refusals.newest(5)
    assert [one.models for one in older.endpoints] == [("m",), ("m",)]
    assert [one.models for one in newest.endpoints] == [(ANOTHER_MODEL,), (ANOTHER_MODEL,)]
    assert newest.size == 2


def test_whoever_is_served_waits_or_looks_for_a_fallback_leaves_nothing() -> None:
    served = router_of(ready=True)
    served.decide(CHAT, 0.0)
    assert served.refusals.newest(5) == ()
    router = router_of()
    router.weigh(msgspec.structs.replace(CHAT, is_patient=True), 0.0)
    router.weigh(CHAT, 0.0, skip=1)
    assert router.refusals.newest(5) == ()


def test_a_refusal_at_a_limit_is_of_its_moment_and_not_kept() -> None:
    router = router_of(RoutingRules(tenants=(TenantRule(("acme",), limits=Limits(1)),)), ready=True)
    router.decide(CHAT, 0.0)
    assert router.decide(CHAT, 0.0).limit == "requests_per_minute"
    assert router.refusals.newest(5) == ()


def test_only_so_many_are_kept_and_none_unless_asked() -> None:
    router = router_of()
    for number in range(5):
        router.decide(CHAT, float(number))
    assert [one.at for one in router.refusals.newest(5)] == [4.0, 3.0]
    router.refusals.resize(0)
    router.decide(CHAT, 9.0)
    assert router.refusals.newest(5) == ()


def test_a_reason_says_when_to_try_again_and_stays_within_its_length() -> None:
    circuit = Circuit()
    circuit.reject("no key", 0.0)
    options = Options(tripped=[circuit])
    long = refuse(msgspec.structs.replace(CHAT, model="m" * 80, pool=ObjectRef("n" * 80, "p" * 80)), options, 0.0)
    assert long.reason.endswith("; try again in 30 s")
    assert long.retry_after == 30.0
    assert len(long.reason) <= REASON_MAX
