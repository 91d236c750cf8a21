"""The whole pipeline through its front."""

from random import Random

import pytest
from msgspec.structs import replace

from kinference.core.decision import BackendChoice, Decision, EndpointChoice
from kinference.core.fleet import BackendSpec, CacheFeed, EndpointSpec, Fleet, Observation, PrefixSignal
from kinference.core.health import UNUSABLE_BACKOFF_S
from kinference.core.limits import ACCOUNTS_MAX, Left, Limits
from kinference.core.pick import Router
from kinference.core.policies import POLICIES
from kinference.core.policy import ModelRule, RoutingRules, Target, TargetKind, TenantRule
from kinference.core.prefix.hashing import HASHED_BYTES_MAX
from kinference.core.prices import Price, PricedModel
from kinference.core.request import Request
from kinference.errors import ConfigError
from kinference.ids import Address, ObjectRef, ReservationId
from kinference.vocabulary import AbortReason, Api, Outcome, QosClass

POOL, SPARE = ObjectRef("default", "pool"), ObjectRef("default", "spare")
CLOUD = ObjectRef("default", "cloud")
CHAT = Request("m", Api.OPENAI_CHAT, (b"x" * 4_000,), 4_000)


def address(number: int) -> Address:
    return Address(f"h{number}:1")


def fleet_of(size: int = 2, pool: ObjectRef = POOL, models: tuple[str, ...] = ("m",)) -> Fleet:
    fleet = Fleet()
    fill(fleet, size, pool, models)
    return fleet


def fill(fleet: Fleet, size: int, pool: ObjectRef, models: tuple[str, ...] = ("m",)) -> None:
    fleet.set_pool(pool, [EndpointSpec(pool, address(number), models=models) for number in range(size)])
    for number in range(size):
        fleet.set_ready(pool, address(number), ready=True)


def router_of(fleet: Fleet, *models: ModelRule, tenants: tuple[TenantRule, ...] = (), policy: str = "") -> Router:
    rules = RoutingRules(models, tenants, policy=policy or "expected_latency")
    return Router(fleet, rules, Random(1))


def rule(*targets: Target, pattern: str = "m") -> ModelRule:
    return ModelRule(pattern, targets)


def pool_target(pool: ObjectRef = POOL, model: str = "", weight: int = 1, priority: int = 0) -> Target:
    return Target(TargetKind.POOL, pool, model, weight, priority)


def cloud_target(weight: int = 1, priority: int = 0) -> Target:
    return Target(TargetKind.BACKEND, CLOUD, "", weight, priority)


def local(decision: Decision) -> EndpointChoice:
    assert isinstance(decision.choice, EndpointChoice), decision.reason
    return decision.choice


def blocks(router: Router) -> int:
    return sum(one.prefix_blocks for one in router.snapshot(0.0))


def requests(router: Router) -> int:
    return sum(one.requests for one in router.snapshot(0.0))


def prompt(seed: int, size: int = 4_000) -> Request:
    return replace(CHAT, prompt=(Random(seed).randbytes(size),), prompt_bytes=size)


# --- what is known ------------------------------------------------------------------------------


def test_whatever_changes_what_is_known_of_destinations_is_counted_and_weighing_is_not() -> None:
    fleet = fleet_of()
    router = router_of(fleet)
    one, other, third = (router.decide(prompt(seed), 0.0).reservation for seed in range(3))
    asked = router.weigh(prompt(9), 0.0)
    assert not isinstance(asked, Decision)
    for tell in (
        lambda: router.first_token(one, 100.0, 200, 0.1),
        lambda: router.final_token(one, 1_000, 10, None, 0.2),
        lambda: router.broke(other, 0.3),
        lambda: router.abort(other, AbortReason.UNSPECIFIED, 0.3),
        lambda: router.expire(third, dispatched=True, now=0.3),
        lambda: router.commit(asked, 0.3),
        lambda: fleet.observe(POOL, address(0), Observation(0.4, 1, 1)),
        lambda: router.weigh(prompt(9), 0.4),  # takes over what was scraped
        lambda: fleet.set_ready(POOL, address(0), ready=False),
        lambda: router.weigh(prompt(9), 0.4),
        lambda: router.weigh(prompt(9), 2.0),  # what was learned of idle endpoints has faded
    ):
        before = router.changes
        tell()
        assert router.changes > before
    told = router.changes
    router.weigh(prompt(9), 2.0)
    assert router.changes == told


def test_weighing_again_what_nothing_has_changed_for_collects_nothing_anew() -> None:
    router = router_of(fleet_of())
    first, again = (router.weigh(prompt(1), 0.0) for _ in range(2))
    assert not isinstance(first, Decision)
    assert not isinstance(again, Decision)
    assert again.case.ahead is first.case.ahead
    router.commit(first, 0.0)
    later = router.weigh(prompt(1), 0.0)
    assert not isinstance(later, Decision)
    assert sum(later.case.ahead) == first.case.uncached[first.weighed.chosen]


# --- choosing -----------------------------------------------------------------------------------


def test_a_chosen_endpoint_serves_the_model() -> None:
    fleet = fleet_of(2)
    fill(fleet, 2, SPARE, ("other",))
    decision = router_of(fleet).decide(replace(CHAT, model="other"), 0.0)
    assert decision.outcome is Outcome.OK
    assert (local(decision).pool, local(decision).model) == (SPARE, "other")
    assert decision.reservation != 0
    assert decision.prompt_tokens == 1_000


def test_the_next_turn_goes_where_the_last_one_went() -> None:
    router = router_of(fleet_of(8))
    for seed in range(8):
        first = router.decide(prompt(seed), 0.0)
        router.final_token(first.reservation, 1_000, 10, None, 1.0)
        turn = replace(CHAT, prompt=(*prompt(seed).prompt, b"more" * 100), prompt_bytes=4_400)
        second = router.decide(turn, 2.0)
        router.final_token(second.reservation, 1_000, 10, None, 3.0)
        assert local(second).address == local(first).address
        assert second.hit_tokens > 850


def test_salts_share_no_prefix() -> None:
    router = router_of(fleet_of(1))
    router.decide(CHAT, 0.0)
    assert router.decide(replace(CHAT, salt="s"), 0.0).hit_tokens == 0
    assert router.decide(CHAT, 0.0).hit_tokens > 0


def test_an_alias_asks_for_the_targets_model() -> None:
    router = router_of(fleet_of(models=("real",)), rule(pool_target(model="real"), pattern="alias-*"))
    assert local(router.decide(replace(CHAT, model="alias-1"), 0.0)).model == "real"


def test_the_pool_that_the_request_names_is_the_only_one() -> None:
    fleet = fleet_of(2)
    fill(fleet, 2, SPARE)
    router = router_of(fleet)
    assert {local(router.decide(replace(CHAT, pool=SPARE), 0.0)).pool for _ in range(10)} == {SPARE}
    refused = router.decide(replace(CHAT, pool=ObjectRef("default", "nowhere")), 0.0)
    assert refused.outcome is Outcome.NO_WORKERS
    assert "default/nowhere" in refused.reason


def test_fallbacks_serve_only_when_nobody_before_them_can() -> None:
    fleet = fleet_of(1)
    fill(fleet, 1, SPARE)
    router = router_of(fleet, rule(pool_target(SPARE, priority=1), pool_target()))
    assert {local(router.decide(prompt(n), 0.0)).pool for n in range(20)} == {POOL}
    fleet.set_ready(POOL, address(0), ready=False)
    assert local(router.decide(CHAT, 0.0)).pool == SPARE


def test_weights_split_the_traffic() -> None:
    fleet = fleet_of(1)
    fill(fleet, 1, SPARE)
    router = router_of(fleet, rule(pool_target(weight=80), pool_target(SPARE, weight=20)))
    picks = [local(router.decide(prompt(n), 0.0)).pool for n in range(1_000)]
    assert 750 < picks.count(POOL) < 850


def test_a_session_stays_on_its_side_of_a_split() -> None:
    fleet = fleet_of(1)
    fill(fleet, 1, SPARE)
    router = router_of(fleet, rule(pool_target(weight=50), pool_target(SPARE, weight=50)))
    sides = [
        {local(router.decide(replace(prompt(n), session=f"s{session}"), 0.0)).pool for n in range(5)}
        for session in range(20)
    ]
    assert all(len(side) == 1 for side in sides)
    assert set.union(*sides) == {POOL, SPARE}


def test_a_target_without_weight_gets_nothing() -> None:
    fleet = fleet_of(1)
    fill(fleet, 1, SPARE)
    router = router_of(fleet, rule(pool_target(weight=0), pool_target(SPARE)))
    assert {local(router.decide(prompt(n), 0.0)).pool for n in range(10)} == {SPARE}


# --- backends -----------------------------------------------------------------------------------


def with_cloud(fleet: Fleet, api: Api = Api.OPENAI_CHAT) -> Fleet:
    fleet.set_backends([BackendSpec(CLOUD, api, {"m": "m-2026"}, "/v9/chat")])
    return fleet


def test_a_backend_is_asked_for_its_own_name_and_path() -> None:
    router = router_of(with_cloud(Fleet()))
    assert router.decide(CHAT, 0.0).choice == BackendChoice(CLOUD, "m-2026", Api.OPENAI_CHAT, "/v9/chat")
    assert router.decide(replace(CHAT, model="x"), 0.0).outcome is Outcome.NO_WORKERS


def test_an_engine_that_comes_back_to_a_busy_fleet_gets_no_more_prompts_than_it_can_begin_with_soon() -> None:
    fleet = fleet_of(16)
    for number in range(1, 16):
        fleet.observe(POOL, address(number), Observation(0.0, 0, 150))
    router = router_of(fleet)
    picked = [
        local(router.decide(replace(CHAT, prompt=(b"%d" % number * 4_000,)), 0.0)).address for number in range(16)
    ]
    assert picked[0] == address(0)
    assert picked.count(address(0)) <= len(picked) // 2  # 100 ms each; it was fifteen of sixteen


def test_an_engine_that_accepts_and_never_answers_gets_hardly_anything_more() -> None:
    router, hangs, given, due = router_of(fleet_of(2)), address(0), [0, 0], list[tuple[float, Decision]]()
    for number in range(120):
        now = 0.1 * number
        while due and due[0][0] <= now:
            at, decision = due.pop(0)
            router.first_token(decision.reservation, 120.0, 200, at)
        decision = router.decide(replace(CHAT, prompt=(b"%03d" % number * 2_000,)), now)
        hanging = now >= 2.0 and local(decision).address == hangs
        given[local(decision).address == hangs] += now >= 4.0
        if not hanging:
            due.append((now + 0.12, decision))
    assert given[True] <= 1
    assert given[False] >= 79


def test_our_own_engines_go_before_a_backend_until_they_are_overloaded() -> None:
    router = router_of(with_cloud(fleet_of(2)), rule(pool_target(), cloud_target()))
    picks = [router.decide(prompt(n), 0.0).choice for n in range(100)]
    first_remote = next(n for n, choice in enumerate(picks) if isinstance(choice, BackendChoice))
    assert first_remote > 10


def test_a_backend_of_another_api_needs_a_caller_that_translates() -> None:
    router = router_of(with_cloud(Fleet(), Api.ANTHROPIC_MESSAGES))
    assert "of another API" in router.decide(CHAT, 0.0).reason
    assert router.decide(replace(CHAT, reaches=frozenset({Api.ANTHROPIC_MESSAGES})), 0.0).outcome is Outcome.OK


@pytest.mark.parametrize("reason", [AbortReason.BACKEND_UNRESOLVED, AbortReason.BACKEND_UNAUTHORIZED])
def test_an_unusable_backend_is_out_with_its_reason_until_a_trial(reason: AbortReason) -> None:
    router = router_of(with_cloud(Fleet()))
    router.abort(router.decide(CHAT, 0.0).reservation, reason, 0.0)
    refused = router.decide(CHAT, 1.0)
    assert refused.outcome is Outcome.NO_WORKERS
    assert "a caller" in refused.reason
    trial = router.decide(CHAT, UNUSABLE_BACKOFF_S + 1)
    assert trial.outcome is Outcome.OK
    router.first_token(trial.reservation, 100.0, 200, UNUSABLE_BACKOFF_S + 1)
    assert router.decide(CHAT, UNUSABLE_BACKOFF_S + 1).outcome is Outcome.OK


# --- refusing -----------------------------------------------------------------------------------


def test_rules_refuse_as_policy_and_missing_capacity_as_no_workers() -> None:
    closed = TenantRule(("closed",), destinations=("elsewhere",))
    router = router_of(fleet_of(1), tenants=(TenantRule(("a",), models=("x",)), closed))
    for tenant in ("a", "closed"):
        refused = router.decide(replace(CHAT, tenant=tenant), 0.0)
        assert refused.outcome is Outcome.POLICY_REJECTED
        assert refused.reason.startswith("policy: ")
    unknown = router.decide(replace(CHAT, model="x", tenant="a"), 0.0)
    assert unknown.outcome is Outcome.NO_WORKERS
    assert router.decide(replace(CHAT, tenant="b"), 0.0).outcome is Outcome.OK


def test_a_prompt_clearly_too_long_for_every_context_is_refused_and_a_doubtful_one_is_not() -> None:
    fleet = fleet_of(2)
    for number, context in ((0, 500), (1, 900)):
        fleet.set_models(POOL, address(number), ["m"], context)
    router = router_of(fleet)
    assert {local(router.decide(prompt(n), 0.0)).address for n in range(10)} == {address(1)}
    refused = router.decide(prompt(1, 8_000), 0.0)
    assert refused.outcome is Outcome.NO_WORKERS
    assert "2 with too short a context" in refused.reason


def test_reasons_are_short_whatever_the_client_calls_things() -> None:
    router = router_of(fleet_of(1), tenants=(TenantRule(("*",), models=()),))
    long = "\n" * 5_000
    for asked in (replace(CHAT, model=long), replace(CHAT, tenant=long), replace(CHAT, pool=ObjectRef(long, long))):
        refused = router.decide(asked, 0.0)
        assert refused.outcome in {Outcome.NO_WORKERS, Outcome.POLICY_REJECTED}
        assert 0 < len(refused.reason) <= 512
        assert "\n" not in refused.reason


def test_h4_the_very_next_pick_avoids_whoever_was_just_ejected() -> None:
    router = router_of(fleet_of(2))
    failing = local(router.decide(prompt(0), 0.0)).address
    for number in range(1, 100):
        decision = router.decide(prompt(number), 0.0)
        if local(decision).address == failing:
            router.first_token(decision.reservation, 1.0, 503, 0.0)
            router.abort(decision.reservation, AbortReason.UNSPECIFIED, 0.0)
        if "open" in {one.circuit for one in router.snapshot(0.0)}:
            break
    assert [one.circuit for one in router.snapshot(0.0)].count("open") == 1
    assert failing not in {local(router.decide(prompt(number), 0.0)).address for number in range(100, 120)}


def test_h7_when_all_are_ejected_ejection_is_ignored() -> None:
    router = router_of(fleet_of(2))
    for number in range(12):
        decision = router.decide(prompt(number), 0.0)
        router.first_token(decision.reservation, 1.0, 503, 0.0)
        router.abort(decision.reservation, AbortReason.UNSPECIFIED, 0.0)
    assert {one.circuit for one in router.snapshot(0.0)} == {"open"}
    assert router.decide(CHAT, 0.0).outcome is Outcome.OK


def test_the_clients_own_faults_do_not_count_against_the_endpoint() -> None:
    router = router_of(fleet_of(1))
    for _ in range(10):
        decision = router.decide(CHAT, 0.0)
        router.first_token(decision.reservation, 1.0, 400, 0.0)
        router.final_token(decision.reservation, 0, 0, None, 0.0)
    assert router.snapshot(0.0)[0].circuit == "closed"


def test_a_prompt_beyond_what_is_hashed_is_degraded_and_still_served() -> None:
    long = replace(CHAT, prompt=(b"x" * (HASHED_BYTES_MAX + 1),), prompt_bytes=HASHED_BYTES_MAX + 1)
    decision = router_of(fleet_of(1)).decide(long, 0.0)
    assert decision.outcome is Outcome.DEGRADED
    assert decision.choice is not None
    assert router_of(with_cloud(Fleet())).decide(long, 0.0).outcome is Outcome.OK


# --- what then happens --------------------------------------------------------------------------


@pytest.mark.parametrize("reason", list(AbortReason))
def test_abort_gives_everything_back_and_takes_back_prefixes_where_nothing_was_seen(reason: AbortReason) -> None:
    router = router_of(fleet_of(2))
    decision = router.decide(CHAT, 0.0)
    router.abort(decision.reservation, reason, 0.0)
    router.abort(decision.reservation, reason, 0.0)
    assert requests(router) == 0
    assert (blocks(router) == 0) == (reason is not AbortReason.UNSPECIFIED)


@pytest.mark.parametrize("status", [0, 429, 503])
def test_a_refused_prompt_is_not_believed_to_be_cached(status: int) -> None:
    router = router_of(fleet_of(1))
    decision = router.decide(CHAT, 0.0)
    router.first_token(decision.reservation, 1.0, status, 0.0)
    assert blocks(router) == 0
    router.final_token(decision.reservation, 0, 0, 0, 0.0)
    assert router.snapshot(0.0)[0].hit_trust == 1.0


@pytest.mark.parametrize("dispatched", [False, True])
def test_expiry_gives_everything_back(dispatched: bool) -> None:
    router = router_of(fleet_of(2))
    router.expire(router.decide(CHAT, 0.0).reservation, dispatched, 0.0)
    assert requests(router) == 0
    assert (blocks(router) > 0) == dispatched


def test_reports_for_nobody_are_ignored() -> None:
    router = router_of(fleet_of(1))
    for number in (0, 7):
        router.first_token(ReservationId(number), 1.0, 200, 0.0)
        router.final_token(ReservationId(number), 1, 1, 1, 0.0)
        router.abort(ReservationId(number), AbortReason.BACKEND_UNRESOLVED, 0.0)
    assert requests(router) == 0


def test_a_slower_endpoint_is_learned_and_gets_less() -> None:
    router, picks = router_of(fleet_of(2)), []
    for number in range(200):
        decision = router.decide(prompt(number), float(number))
        slow = local(decision).address == address(1)
        router.first_token(decision.reservation, 900.0 if slow else 100.0, 200, float(number))
        router.final_token(decision.reservation, 1_000, 100, None, number + 0.5)
        picks.append(slow)
    assert picks[50:].count(True) < 30


def test_an_engine_that_never_hits_is_no_longer_believed() -> None:
    router, hits = router_of(fleet_of(1)), []
    for number in range(30):
        decision = router.decide(CHAT, float(number))
        hits.append(decision.hit_tokens)
        router.final_token(decision.reservation, 1_000, 10, 0, number + 0.5)
    assert hits[1] > 850
    assert hits[-1] < 10


def test_a_full_kv_cache_is_left_alone_while_another_has_room() -> None:
    fleet = fleet_of(2)
    router = router_of(fleet)
    router.decide(CHAT, 0.0)
    warm = local(router.decide(CHAT, 0.0)).address
    fleet.observe(POOL, warm, Observation(0.0, 0, 9, kv_usage_ratio=0.99, kv_blocks=1_000, block_tokens=16))
    assert local(router.decide(CHAT, 0.0)).address != warm
    fleet.set_ready(POOL, address(0 if warm == address(1) else 1), ready=False)
    assert local(router.decide(CHAT, 0.0)).address == warm


def test_batch_work_packs_where_the_cache_is_warm_in_spite_of_a_queue() -> None:
    fleet = fleet_of(2)
    router = router_of(fleet)
    warm = local(router.decide(CHAT, 0.0)).address
    fleet.observe(POOL, warm, Observation(0.0, waiting=4, running=0))
    assert local(router.decide(replace(CHAT, qos=QosClass.BATCH, output_tokens=1), 0.0)).address == warm
    assert local(router.decide(replace(CHAT, output_tokens=1), 0.0)).address != warm


# --- policies, rules, explanations --------------------------------------------------------------


@pytest.mark.parametrize("policy", list(POLICIES))
def test_every_policy_serves_and_spreads(policy: str) -> None:
    router = router_of(fleet_of(3), policy=policy)
    decisions = [router.decide(prompt(n), 0.0) for n in range(30)]
    assert {local(one).address for one in decisions} == {address(0), address(1), address(2)}
    assert router.explain(decisions[-1]).policy == policy


def test_round_robin_keeps_turning_while_one_endpoint_is_ejected() -> None:
    router = router_of(fleet_of(3), policy="round_robin")
    for number in range(9):
        decision = router.decide(prompt(number), 0.0)
        status = 503 if local(decision).address == address(0) else 200
        router.first_token(decision.reservation, 1.0, status, 0.0)
    picks = [local(router.decide(prompt(n), 0.5)).address for n in range(6)]
    assert [picks.count(address(n)) for n in range(3)] == [0, 3, 3]


def test_rules_can_be_replaced_and_bad_ones_change_nothing() -> None:
    router = router_of(fleet_of(1))
    held = router.decide(CHAT, 0.0)
    with pytest.raises(ConfigError):
        router.reconfigure(RoutingRules(policy="nonsense"))
    assert router.decide(CHAT, 0.0).outcome is Outcome.OK
    router.reconfigure(RoutingRules(models=(rule(pool_target(SPARE)),)))
    assert router.decide(CHAT, 0.0).outcome is Outcome.NO_WORKERS
    router.final_token(held.reservation, 1, 1, None, 1.0)
    assert requests(router) == 1


def test_an_explanation_adds_up_and_names_the_runner_up() -> None:
    fleet = fleet_of(3)
    fleet.set_draining(POOL, address(2), draining=True)
    router = router_of(fleet)
    router.decide(CHAT, 0.0)
    decision = router.decide(CHAT, 0.0)
    table = router.explain(decision)
    assert [one.destination for one in table.candidates] == ["default/pool/h0:1", "default/pool/h1:1"]
    for one in table.candidates:
        assert one.total_ms == pytest.approx(sum(ms for _, ms in one.terms))
    assert table.pick == f"default/pool/{local(decision).address}"
    assert table.runner_up not in {"", table.pick}
    assert [(one.destination, one.verdict) for one in table.rejected] == [("default/pool/h2:1", "draining")]


def test_the_terms_before_the_first_token_are_what_the_reason_expects_also_of_requests_that_nobody_tells_of() -> None:
    fleet = fleet_of(1)
    router = router_of(fleet)
    ids = [router.decide(prompt(seed), 0.0).reservation for seed in range(8)]
    router.first_token(ids[0], 120.0, 200, 0.1)
    waits = []
    for at in (0.2, 1.0, 2.0, 3.0):
        fleet.observe(POOL, address(0), Observation(at, 0, 2))
        decision = router.weigh(prompt(9), at)
        assert not isinstance(decision, Decision)
        told = router.commit(decision, at)
        (one,) = router.explain(told).candidates
        terms = dict(one.terms)
        assert terms["base"] + terms["queue_wait"] + terms["prefill"] == pytest.approx(told.expected_ttft_ms)
        waits.append(terms["queue_wait"])
        router.abort(told.reservation, AbortReason.NOT_DISPATCHED, at)
    assert waits[0] > 0.0
    assert waits[-1] < waits[0] / 2


# --- the engines' own word on their caches ------------------------------------------------------


@pytest.mark.parametrize("signal", list(PrefixSignal))
def test_a_choice_among_caches_that_are_not_well_known_is_degraded(signal: PrefixSignal) -> None:
    fleet = fleet_of(2)
    router = router_of(fleet)
    fleet.set_prefix_signal(POOL, address(1), signal)
    decision = router.decide(CHAT, 0.0)
    doubtful = signal in (PrefixSignal.WARMING, PrefixSignal.GAP, PrefixSignal.BROKEN)
    assert decision.outcome is (Outcome.DEGRADED if doubtful else Outcome.OK)
    assert (str(address(1)) in decision.reason) == doubtful
    fleet.set_prefix_signal(POOL, address(1), PrefixSignal.LIVE)
    assert router.decide(CHAT, 0.0).outcome is Outcome.OK


def test_a_policy_without_an_eye_for_caches_is_not_degraded_by_them() -> None:
    fleet = fleet_of(2)
    fleet.set_prefix_signal(POOL, address(0), PrefixSignal.BROKEN)
    assert router_of(fleet, policy="round_robin").decide(CHAT, 0.0).outcome is Outcome.OK


def test_an_endpoint_whose_events_are_to_be_read_is_warming_until_they_are() -> None:
    fleet = Fleet()
    fleet.set_pool(POOL, [EndpointSpec(POOL, address(0), models=("m",), cache_feed=CacheFeed(5557))])
    fleet.set_ready(POOL, address(0), ready=True)
    router = router_of(fleet)
    assert router.decide(CHAT, 0.0).outcome is Outcome.DEGRADED
    fleet.set_pool(POOL, [EndpointSpec(POOL, address(0), models=("m",))])
    assert router.decide(CHAT, 0.0).outcome is Outcome.OK


def test_a_prompt_under_way_can_be_asked_for_where_its_endpoint_tells_of_its_cache() -> None:
    fleet = fleet_of(1)
    router = router_of(fleet)
    assert router.sent(router.decide(CHAT, 0.0).reservation) is None
    fleet.set_pool(POOL, [EndpointSpec(POOL, address(0), models=("m",), cache_feed=CacheFeed(5557))])
    decision = router.decide(CHAT, 0.0)
    sent = router.sent(decision.reservation)
    assert sent is not None
    assert (len(sent.blocks), sent.prompt_bytes) == (4_000 // 512, 4_000)
    assert sent.endpoint.spec.address == local(decision).address
    router.final_token(decision.reservation, 1_000, 10, None, 1.0)
    assert router.sent(decision.reservation) is None


# --- limits -------------------------------------------------------------------------------------

CLOUD_PRICE = Price(1_000.0, 1_000.0, 100.0)


def limited(
    limits: Limits | None = None, usd_per_hour: float | None = None, prices: bool = True
) -> tuple[Router, Fleet]:
    """One engine, and a backend that costs about 1.26 dollars for a request of CHAT; both serve `m`."""
    fleet = fleet_of(1)
    priced = (PricedModel("n", CLOUD_PRICE),) if prices else ()
    fleet.set_backends([BackendSpec(CLOUD, Api.OPENAI_CHAT, {"m": "n"}, prices=priced)])
    rule_of_all = TenantRule(("t",), limits=limits, usd_per_hour=usd_per_hour)
    return router_of(fleet, rule(pool_target(), cloud_target()), tenants=(rule_of_all,)), fleet


ASKED = replace(CHAT, tenant="t")


def test_a_limit_refuses_as_quota_naming_it_and_says_when() -> None:
    router, _ = limited(Limits(requests_per_minute=1))
    assert router.decide(ASKED, 0.0).outcome is Outcome.OK
    refused = router.decide(ASKED, 0.0)
    assert (refused.outcome, refused.limit, refused.retry_after) == (
        Outcome.POLICY_REJECTED,
        "requests_per_minute",
        60.0,
    )
    assert refused.reason.startswith("quota: tenant 't' is at its requests_per_minute of 1")
    assert refused.left is not None
    assert refused.left[0] == Left(1, 0, 60.0)
    assert router.decide(replace(CHAT, tenant="other"), 0.0).outcome is Outcome.OK
    assert router.decide(ASKED, 60.0).outcome is Outcome.OK


def test_a_pick_without_limits_says_nothing_of_what_is_left() -> None:
    router, _ = limited()
    assert router.decide(ASKED, 0.0).left is None
    assert router.accounts.page(None, 9) == ()


@pytest.mark.parametrize("reason", list(AbortReason))
def test_a_request_that_failed_before_its_answer_does_not_count_again_when_it_is_tried_elsewhere(
    reason: AbortReason,
) -> None:
    router, _ = limited(Limits(requests_per_minute=1, tokens_per_minute=2_000, concurrent=1))
    first = router.decide(ASKED, 0.0)
    router.first_token(first.reservation, 1.0, 503, 0.0)
    router.abort(first.reservation, reason, 0.0)
    assert router.decide(ASKED, 0.0).outcome is Outcome.OK


def test_a_tenant_without_money_is_served_by_what_is_free_and_refused_what_is_not() -> None:
    router, fleet = limited(Limits(usd_per_month=1.0))
    router.accounts.month_ends_at = 1_000.0
    assert local(router.decide(ASKED, 0.0))
    fleet.set_ready(POOL, address(0), ready=False)
    refused = router.decide(ASKED, 100.0)
    assert (refused.outcome, refused.limit, refused.retry_after) == (Outcome.POLICY_REJECTED, "usd_per_month", 900.0)
    assert refused.reason.startswith("quota: budget: tenant 't' has used 0.00 of its usd_per_month of 1")


def test_money_that_is_expected_to_be_spent_is_gone_until_it_is_known_how_much_was() -> None:
    router, fleet = limited(Limits(usd_per_month=2.0))
    fleet.set_ready(POOL, address(0), ready=False)
    first = router.decide(ASKED, 0.0)
    assert isinstance(first.choice, BackendChoice)
    assert router.decide(ASKED, 0.0).limit == "usd_per_month"
    router.final_token(first.reservation, 200, 100, 100, 1.0)
    (account,) = router.accounts.page(None, 9)
    assert account.spent_usd == pytest.approx(0.1 + 0.01 + 0.1)
    assert router.decide(ASKED, 1.0).outcome is Outcome.OK


def test_who_minds_money_is_not_sent_where_nobody_knows_the_price() -> None:
    router, fleet = limited(Limits(usd_per_month=5.0), prices=False)
    assert local(router.decide(ASKED, 0.0))
    fleet.set_ready(POOL, address(0), ready=False)
    refused = router.decide(ASKED, 0.0)
    assert refused.outcome is Outcome.POLICY_REJECTED
    assert refused.reason.startswith("policy: tenant 't' minds money, and nobody knows the price")
    assert router.decide(CHAT, 0.0).outcome is Outcome.OK


def test_an_unknown_price_is_told_and_not_taken_for_none() -> None:
    router, fleet = limited(Limits(concurrent=5), prices=False)
    fleet.set_ready(POOL, address(0), ready=False)
    router.final_token(router.decide(ASKED, 0.0).reservation, 1_000, 10, None, 1.0)
    assert router.accounts.take_unreported() == (("t", 0.0, 1),)


def test_who_holds_time_cheap_waits_for_what_is_free_and_who_holds_it_dear_pays() -> None:
    def where(usd_per_hour: float) -> set[bool]:
        router, _ = limited(usd_per_hour=usd_per_hour)
        decisions = [router.decide(replace(prompt(n, 80_000), tenant="t"), 0.0) for n in range(20)]
        return {isinstance(decision.choice, BackendChoice) for decision in decisions}

    assert where(0.01) == {False}
    assert where(1_000_000.0) == {False, True}


def test_what_is_weighed_within_the_limits_is_refused_when_others_have_used_them_up_meanwhile() -> None:
    router, _ = limited(Limits(concurrent=1))
    weighed = [router.weigh(ASKED, 0.0) for _ in range(2)]
    outcomes = [router.commit(one, 0.0).outcome for one in weighed if not isinstance(one, Decision)]
    assert outcomes == [Outcome.OK, Outcome.POLICY_REJECTED]
    assert requests(router) == 1


def test_more_tenants_than_can_be_counted_are_asked_to_wait() -> None:
    fleet = fleet_of(1)
    router = router_of(fleet, tenants=(TenantRule(("*",), limits=Limits(concurrent=1)),))
    for number in range(ACCOUNTS_MAX):
        account = router.accounts.of(f"t{number}", Limits(concurrent=1), 0.0)
        assert account is not None
        account.hold(1, None, 0.0)
    refused = router.decide(replace(CHAT, tenant="another"), 0.0)
    assert (refused.outcome, refused.retry_after) == (Outcome.POLICY_REJECTED, 60.0)
    assert refused.reason.startswith("quota: ")


# --- adapters -----------------------------------------------------------------------------------


def with_adapter(size: int) -> tuple[Fleet, Router]:
    fleet = Fleet()
    fleet.set_pool(POOL, [EndpointSpec(POOL, address(number)) for number in range(size)])
    for number in range(size):
        fleet.set_ready(POOL, address(number), ready=True)
        fleet.set_models(POOL, address(number), ["m", "ada"], adapters=["ada"])
    return fleet, router_of(fleet)


def adapted(seed: int) -> Request:
    return replace(prompt(seed, 400), model="ada")


def test_an_adapter_goes_where_it_is_loaded_and_another_engine_loads_it_when_that_one_is_busy() -> None:
    _, router = with_adapter(3)
    first = local(router.decide(adapted(0), 0.0))
    assert {local(router.decide(adapted(seed), 0.0)).address for seed in range(1, 4)} == {first.address}
    assert len({local(router.decide(adapted(seed), 0.0)).address for seed in range(4, 200)}) == 3


def test_a_model_that_is_no_adapter_knows_no_such_term() -> None:
    _, router = with_adapter(2)
    terms = [dict(router.decide(one, 0.0).explain().candidates[0].terms) for one in (CHAT, adapted(1))]
    assert ["adapter_load" in one for one in terms] == [False, True]


def test_what_loading_takes_is_learned_apart_from_the_engines_rates() -> None:
    _, router = with_adapter(1)
    for now, ttft_ms in ((0.0, 2_000.0), (1.0, 30.0)):
        decision = router.decide(adapted(int(now)), now)
        router.first_token(decision.reservation, ttft_ms, 200, now)
        router.final_token(decision.reservation, 100, 5, None, now)
    (row,) = router.snapshot(2.0)
    (rates,) = row.rates
    assert (rates.samples, rates.base_ms < 100.0) == (1, True)
    assert router._roster.endpoints[0].rates["ada"].typical.adapter_ms > 250.0


def test_a_refusal_for_open_circuits_says_when_they_are_tried_again() -> None:
    fleet = Fleet()
    fleet.set_backends([BackendSpec(CLOUD, Api.OPENAI_CHAT, {"m": "m"})])
    router = Router(fleet, RoutingRules(), Random(1))
    router.abort(router.decide(CHAT, 0.0).reservation, AbortReason.BACKEND_UNRESOLVED, 0.0)
    refused = router.decide(CHAT, 5.5)
    assert refused.outcome is Outcome.NO_WORKERS
    assert refused.retry_after == UNUSABLE_BACKOFF_S - 5.0
    assert refused.reason.endswith("; try again in 25 s")
