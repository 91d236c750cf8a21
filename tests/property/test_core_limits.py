"""Whatever tenants do, in whatever order it ends: no limit is passed, and everything that was held is given back."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from kinference.core.decision import Decision
from kinference.core.fleet import BackendSpec, EndpointSpec, Fleet
from kinference.core.limits import Limits
from kinference.core.pick import Router
from kinference.core.policy import RoutingRules, TenantRule
from kinference.core.prices import Price, PricedModel
from kinference.core.request import Request
from kinference.ids import Address, ObjectRef
from kinference.vocabulary import AbortReason, Api, Outcome

POOL, CLOUD = ObjectRef("default", "pool"), ObjectRef("default", "cloud")
REQUESTS, TOKENS, AT_ONCE, DOLLARS = 20, 4_000, 3, 2.0
LIMITS = Limits(REQUESTS, TOKENS, AT_ONCE, DOLLARS)
PRICE = Price(100.0, 200.0, 10.0)
TENANTS = ("a", "b")


def router_of(limits: Limits = LIMITS, price: Price = PRICE) -> Router:
    fleet = Fleet()
    fleet.set_pool(POOL, [EndpointSpec(POOL, Address("h:1"), models=("m",), prices=(PricedModel("*", price),))])
    fleet.set_ready(POOL, Address("h:1"), ready=True)
    fleet.set_backends([BackendSpec(CLOUD, Api.OPENAI_CHAT, {"m": "n"}, prices=(PricedModel("n", price),))])
    return Router(fleet, RoutingRules(tenants=(TenantRule(("*",), limits=limits),)), Random(0))


class LimitedTenants(RuleBasedStateMachine):
    """Two tenants against a model that counts what was let through by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.router, self.now = router_of(), 0.0
        self.open: list[tuple[str, Decision]] = []
        self.admitted: dict[str, list[float]] = {tenant: [] for tenant in TENANTS}

    @rule(seconds=st.floats(0.0, 90.0))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(tenant=st.sampled_from(TENANTS), prompt_bytes=st.integers(4, 40_000), output=st.integers(1, 400))
    def one_asks(self, tenant: str, prompt_bytes: int, output: int) -> None:
        request = Request("m", Api.OPENAI_CHAT, (b"x",), prompt_bytes, output_tokens=output, tenant=tenant)
        decision = self.router.decide(request, self.now)
        if decision.outcome is Outcome.OK:
            self.open.append((tenant, decision))
            self.admitted[tenant].append(self.now)
        else:
            assert decision.outcome is Outcome.POLICY_REJECTED
            assert decision.reason.startswith("quota:"), decision.reason
            assert decision.retry_after is None or decision.retry_after > 0

    @precondition(lambda self: self.open)
    @rule(
        place=st.integers(0, 99),
        prompt=st.integers(0, 8_000),
        completion=st.integers(0, 8_000),
        cached=st.none() | st.integers(0, 9_000),
    )
    def one_ends(self, place: int, prompt: int, completion: int, cached: int | None) -> None:
        _, decision = self.open.pop(place % len(self.open))
        for _ in range(2):  # the second time changes nothing
            self.router.final_token(decision.reservation, prompt, completion, cached, self.now)

    @precondition(lambda self: self.open)
    @rule(place=st.integers(0, 99), reason=st.sampled_from(AbortReason), status=st.sampled_from((None, 200, 400, 503)))
    def one_fails(self, place: int, reason: AbortReason, status: int | None) -> None:
        _, decision = self.open.pop(place % len(self.open))
        if status is not None:
            self.router.first_token(decision.reservation, 5.0, status, self.now)
        self.router.abort(decision.reservation, reason, self.now)

    @precondition(lambda self: self.open)
    @rule(place=st.integers(0, 99), dispatched=st.booleans())
    def one_is_never_heard_of_again(self, place: int, dispatched: bool) -> None:
        _, decision = self.open.pop(place % len(self.open))
        self.router.expire(decision.reservation, dispatched, self.now)

    @invariant()
    def what_is_in_flight_is_counted_exactly_and_never_over_the_limit(self) -> None:
        for account in self.router.accounts.page(None, 1_000):
            mine = [decision for tenant, decision in self.open if tenant == account.tenant]
            assert account.in_flight == len(mine) <= AT_ONCE
            assert account.held_usd >= 0.0
            assert mine or account.held_usd == 0.0

    @invariant()
    def money_is_never_taken_back_and_buckets_hold_no_more_than_their_minute(self) -> None:
        for account in self.router.accounts.page(None, 1_000):
            assert account.unbooked_usd >= 0.0
            for bucket in (account.requests, account.tokens):
                assert bucket is not None
                assert bucket.level <= bucket.size


TestLimitedTenants = LimitedTenants.TestCase
TestLimitedTenants.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)


@given(st.lists(st.tuples(st.floats(0.0, 20.0), st.integers(4, 20_000)), max_size=120))
def test_no_minute_sees_more_than_a_full_bucket_and_what_flows_into_it(steps: list[tuple[float, int]]) -> None:
    router, now, admitted = router_of(Limits(REQUESTS, TOKENS)), 0.0, list[tuple[float, int]]()
    for pause, prompt_bytes in steps:
        now += pause
        decision = router.decide(Request("m", Api.OPENAI_CHAT, (), prompt_bytes, output_tokens=1, tenant="a"), now)
        if decision.outcome is Outcome.OK:
            admitted.append((now, min(TOKENS, decision.prompt_tokens + 1)))
    for began, _ in admitted:
        minute = [tokens for at, tokens in admitted if began <= at <= began + 60.0]
        assert len(minute) <= 2 * REQUESTS + 1
        assert sum(minute) <= 2 * TOKENS + 1


@given(st.lists(st.integers(4, 40_000), min_size=1, max_size=60))
def test_what_is_expected_never_adds_up_to_more_than_the_budget(sizes: list[int]) -> None:
    router = router_of(Limits(usd_per_month=DOLLARS))
    expected = 0.0
    for prompt_bytes in sizes:
        decision = router.decide(Request("m", Api.OPENAI_CHAT, (), prompt_bytes, output_tokens=10, tenant="a"), 0.0)
        if decision.outcome is Outcome.OK:
            expected += PRICE.of(decision.prompt_tokens, 0, 10)
    assert expected <= DOLLARS + 1e-9


@given(st.integers(1, 50), st.integers(1, 5))
def test_of_any_number_at_one_instant_as_many_pass_as_the_limit_says(asking: int, at_once: int) -> None:
    router = router_of(Limits(concurrent=at_once))
    weighed = [router.weigh(Request("m", Api.OPENAI_CHAT, (), 400, tenant="a"), 0.0) for _ in range(asking)]
    passed = [router.commit(one, 0.0) for one in weighed if not isinstance(one, Decision)]
    assert sum(decision.outcome is Outcome.OK for decision in passed) == min(asking, at_once)


@given(st.floats(0.01, 1_000.0), st.floats(0.01, 1_000.0))
def test_the_dearer_waiting_is_to_a_tenant_the_less_a_price_weighs(low: float, high: float) -> None:
    low, high = sorted((low, high))
    prices = []
    for usd_per_hour in (low, high):
        router = router_of(Limits())
        router.reconfigure(RoutingRules(tenants=(TenantRule(("*",), usd_per_hour=usd_per_hour),)))
        decision = router.decide(replace(Request("m", Api.OPENAI_CHAT, (), 4_000), tenant="a"), 0.0)
        (column,) = {dict(one.terms)["price"] for one in decision.explain().candidates}
        prices.append(column)
    assert prices[0] >= prices[1] > 0
