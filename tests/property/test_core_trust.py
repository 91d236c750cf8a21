"""What is believed of caches follows what engines report of them, without any events."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinference.core.fleet import EndpointSpec, Fleet
from kinference.core.pick import Router
from kinference.core.policy import RoutingRules, TargetKind
from kinference.core.request import Request
from kinference.core.roster import Destination
from kinference.ids import Address, ObjectRef
from kinference.vocabulary import Api

POOL = ObjectRef("default", "pool")
SIZE = 40_000


def router_of(size: int) -> Router:
    fleet = Fleet()
    specs = [EndpointSpec(POOL, Address(f"h{number}:1"), models=("m",)) for number in range(size)]
    fleet.set_pool(POOL, specs)
    for spec in specs:
        fleet.set_ready(POOL, spec.address, ready=True)
    return Router(fleet, RoutingRules(), Random(1))


def prompt(seed: int) -> Request:
    return Request("m", Api.OPENAI_CHAT, (Random(seed).randbytes(SIZE),), SIZE)


@given(share=st.floats(0.0, 1.0), believed=st.lists(st.integers(1, 100_000), min_size=40, max_size=80))
def test_trust_becomes_the_share_of_hits_that_the_engine_confirms(share: float, believed: list[int]) -> None:
    destination = Destination(TargetKind.POOL, POOL, "")
    for tokens in believed:
        destination.learn_hit(tokens, int(share * tokens))
    assert destination.hit_trust == pytest.approx(share, abs=1.0 / min(believed[-20:]) + 0.02)


@given(st.lists(st.tuples(st.integers(-10, 10**9), st.integers(-10, 10**12)), max_size=60))
def test_trust_stays_a_share_whatever_is_reported(reports: list[tuple[int, int]]) -> None:
    destination = Destination(TargetKind.POOL, POOL, "")
    for believed, cached in reports:
        destination.learn_hit(believed, cached)
        assert 0.0 <= destination.hit_trust <= 1.0


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1_000), share=st.sampled_from([0.0, 0.5, 1.0]))
def test_a_hit_that_the_engine_does_not_confirm_is_expected_no_more(seed: int, share: float) -> None:
    router, tokens = router_of(1), SIZE // 4
    for now in range(30):
        decision = router.decide(prompt(seed), float(now))
        router.first_token(decision.reservation, 100.0, 200, float(now))
        router.final_token(decision.reservation, tokens, 10, int(share * tokens) if now else 0, float(now))
    expected = router.decide(prompt(seed), 30.0).hit_tokens
    assert expected == pytest.approx(share * tokens, abs=0.06 * tokens)


def test_absent_counts_teach_nothing() -> None:
    router = router_of(1)
    for now in range(10):
        decision = router.decide(prompt(1), float(now))
        router.final_token(decision.reservation, SIZE // 4, 10, None, float(now))
    assert router.decide(prompt(1), 10.0).hit_tokens > 0.9 * SIZE / 4
