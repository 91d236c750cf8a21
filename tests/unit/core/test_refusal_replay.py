"""Recorded refusals made again."""

from random import Random

import msgspec
import pytest

from kinference.core.fleet import BackendSpec, EndpointSpec, Fleet, Lacking
from kinference.core.pick import Router
from kinference.core.policy import ModelRule, RoutingRules, Target, TargetKind, TenantRule, UnmatchedTenant
from kinference.core.refusal import Refusal
from kinference.core.refusal_replay import replay_refusal
from kinference.core.request import Request
from kinference.ids import Address, ObjectRef
from kinference.vocabulary import AbortReason, Api, Engine, Need, Outcome, QosClass

POOL, CLOUD, EMPTY = (ObjectRef("default", name) for name in ("pool", "cloud", "empty"))
HERE = Address("h:1")
CHAT = Request("m", Api.OPENAI_CHAT, (b"x",), 4_000, tenant="acme")
RULED = RoutingRules(
    models=(ModelRule("m[1]*", (Target(TargetKind.BACKEND, CLOUD, model="m"),)),),
    tenants=(
        TenantRule(("acme",), models=("m", "m[[]1]x", "gone"), classes=(QosClass.INTERACTIVE,)),
        TenantRule(("poor",), usd_per_hour=1.0),
        TenantRule(("*",), destinations=("nowhere",)),
    ),
    unmatched_tenant=UnmatchedTenant.REJECT,
)


def router_of(rules: RoutingRules, ready: bool = True, draining: bool = False) -> Router:
    fleet = Fleet()
    lacks = (Lacking("m", frozenset({Need.VISION})),)
    fleet.set_pool(POOL, [EndpointSpec(POOL, HERE, engine=Engine.TRTLLM, lacks=lacks, context_tokens=2_000)])
    fleet.set_pool(EMPTY, [])
    fleet.set_models(POOL, HERE, ["m", "n"], 2_000)
    fleet.set_ready(POOL, HERE, ready)
    fleet.set_draining(POOL, HERE, draining)
    fleet.set_backends([BackendSpec(CLOUD, Api.ANTHROPIC_MESSAGES, {"m": "claude", "m[1]x": "claude"})])
    router = Router(fleet, rules, Random(1))
    router.refusals.resize(10)
    return router


def made_again(router: Router) -> tuple[Refusal, Outcome | None, str]:
    """After a trip through the admin port."""
    (recorded,) = router.refusals.newest(1)
    refusal = msgspec.json.decode(msgspec.json.encode(recorded), type=Refusal)
    decision = replay_refusal(refusal)
    return (refusal, None, "") if decision is None else (refusal, decision.outcome, decision.reason)


OTHERS = {
    "unknown pool": {"pool": ObjectRef("default", "x")},
    "empty pool": {"pool": EMPTY},
    "unknown model": {"model": "gone"},
    "lacking": {"needs": frozenset({Need.VISION}), "pool": POOL},
    "other api": {"api": Api.ANTHROPIC_MESSAGES, "pool": POOL},
    "too long": {"prompt_bytes": 40_000, "pool": POOL},
    "failed": {"failed": frozenset({HERE, CLOUD}), "attempts_left": 3},
}


@pytest.mark.parametrize("changed", OTHERS.values(), ids=OTHERS.keys())
@pytest.mark.parametrize(("ready", "draining"), [(True, False), (True, True), (False, False)])
def test_what_filters_refused_comes_out_the_same(changed: dict[str, object], ready: bool, draining: bool) -> None:
    router = router_of(RoutingRules(), ready, draining)
    told = router.decide(msgspec.structs.replace(CHAT, **changed), 7.25)
    refusal, outcome, reason = made_again(router)
    assert (outcome, reason) == (told.outcome, told.reason) == (refusal.outcome, refusal.reason)


@pytest.mark.parametrize(
    "changed",
    [
        {"tenant": ""},
        {"tenant": "other"},
        {"tenant": "*"},
        {"tenant": "poor", "model": "m[1]x"},
        {"model": "secret"},
        {"qos": QosClass.BATCH},
        {"model": "m[1]x"},
    ],
)
def test_what_rules_refused_comes_out_the_same(changed: dict[str, object]) -> None:
    router = router_of(RULED)
    told = router.decide(msgspec.structs.replace(CHAT, **changed), 7.25)
    assert told.choice is None
    refusal, outcome, reason = made_again(router)
    assert (outcome, reason) == (told.outcome, told.reason) == (refusal.outcome, refusal.reason)


def test_a_circuit_and_when_it_is_tried_again_come_out_the_same() -> None:
    router = router_of(RULED)
    request = msgspec.structs.replace(CHAT, model="m1", tenant="acme", api=Api.ANTHROPIC_MESSAGES)
    router.reconfigure(RoutingRules(models=(ModelRule("m1", (Target(TargetKind.BACKEND, CLOUD, model="m"),)),)))
    picked = router.decide(request, 0.1)
    router.abort(picked.reservation, AbortReason.BACKEND_UNAUTHORIZED, 0.3)
    told = router.decide(request, 1.7)
    assert told.retry_after == 29.0
    refusal, outcome, reason = made_again(router)
    assert (outcome, reason) == (told.outcome, told.reason) == (refusal.outcome, refusal.reason)
    assert "a caller had no valid credential for it" in reason


def test_what_could_be_served_by_now_is_no_refusal_any_more() -> None:
    router = router_of(RoutingRules(), ready=False)
    router.decide(CHAT, 0.0)
    (refusal,) = router.refusals.newest(1)
    (endpoint,) = refusal.endpoints
    ready = msgspec.structs.replace(endpoint, ready=True)
    assert replay_refusal(msgspec.structs.replace(refusal, endpoints=(ready,))) is None
