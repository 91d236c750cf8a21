"""Splits and canaries: as often as the weights say, and a session moves only when it has to."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from kinference.core.decision import EndpointChoice
from kinference.core.fleet import EndpointSpec, Fleet
from kinference.core.pick import Router
from kinference.core.policy import ModelRule, RoutingRules, Target, TargetKind
from kinference.core.request import Request
from kinference.ids import Address, ObjectRef
from kinference.vocabulary import AbortReason, Api

WEIGHTS = st.lists(st.integers(1, 20), min_size=2, max_size=5).filter(lambda weights: set(weights) != {1})
SESSIONS = [f"session {number}" for number in range(60)]


def pool(number: int) -> ObjectRef:
    return ObjectRef("default", f"p{number}")


def rules_of(weights: list[int]) -> RoutingRules:
    targets = [Target(TargetKind.POOL, pool(number), weight=weight) for number, weight in enumerate(weights)]
    return RoutingRules((ModelRule("m", tuple(targets)),))


def split(weights: list[int]) -> tuple[Router, Fleet]:
    fleet = Fleet()
    for number in range(len(weights)):
        address = Address(f"h{number}:1")
        fleet.set_pool(pool(number), [EndpointSpec(pool(number), address, models=("m",))])
        fleet.set_ready(pool(number), address, ready=True)
    return Router(fleet, rules_of(weights), Random(0)), fleet


def side(router: Router, session: str) -> ObjectRef:
    decision = router.decide(Request("m", Api.OPENAI_CHAT, (), 400, session=session), 0.0)
    router.abort(decision.reservation, AbortReason.NOT_DISPATCHED, 0.0)
    assert isinstance(decision.choice, EndpointChoice)
    return decision.choice.pool


@settings(deadline=None, max_examples=40)
@given(WEIGHTS, st.data())
def test_when_a_side_goes_only_its_own_sessions_move(weights: list[int], data: st.DataObject) -> None:
    router, fleet = split(weights)
    before = {session: side(router, session) for session in SESSIONS}
    gone = data.draw(st.integers(0, len(weights) - 1))
    fleet.set_ready(pool(gone), Address(f"h{gone}:1"), ready=False)
    after = {session: side(router, session) for session in SESSIONS}
    assert all(after[session] == before[session] for session in SESSIONS if before[session] != pool(gone))
    fleet.set_ready(pool(gone), Address(f"h{gone}:1"), ready=True)
    assert {session: side(router, session) for session in SESSIONS} == before


@settings(deadline=None, max_examples=40)
@given(WEIGHTS, st.integers(1, 40))
def test_a_canary_that_grows_takes_sessions_and_gives_none_away(weights: list[int], more: int) -> None:
    router, _ = split(weights)
    before = {session: side(router, session) for session in SESSIONS}
    router.reconfigure(rules_of([weights[0] + more, *weights[1:]]))
    after = {session: side(router, session) for session in SESSIONS}
    assert all(after[session] in (before[session], pool(0)) for session in SESSIONS)


@settings(deadline=None, max_examples=10)
@given(WEIGHTS)
def test_without_sessions_and_with_ever_new_ones_the_shares_are_the_weights(weights: list[int]) -> None:
    router, _ = split(weights)
    for session in ("", "s"):
        sides = [side(router, session and f"{session}{number}") for number in range(600)]
        for number, weight in enumerate(weights):
            expected = 600 * weight / sum(weights)
            assert abs(sides.count(pool(number)) - expected) < 6 * max(expected, 10.0) ** 0.5
