"""The policies of others, whole."""

from random import Random

import pytest

from kinference.core.fleet import EndpointSpec, Fleet
from kinference.core.pick import Router
from kinference.core.policy import RoutingRules
from kinference.core.request import Request
from kinference.core.rivals.policies import RIVALS
from kinference.ids import Address, ObjectRef
from kinference.vocabulary import Api, Outcome

POOL = ObjectRef("default", "pool")


@pytest.mark.parametrize("name", list(RIVALS))
def test_each_serves_and_spreads_what_shares_nothing(name: str) -> None:
    fleet = Fleet()
    specs = [EndpointSpec(POOL, Address(f"h{place}:1"), models=("m",)) for place in range(4)]
    fleet.set_pool(POOL, specs)
    for spec in specs:
        fleet.set_ready(POOL, spec.address, ready=True)
    router, rng = Router(fleet, RoutingRules(policy=name), Random(1)), Random(2)
    for _ in range(80):
        prompt = rng.randbytes(4_096)
        decision = router.decide(Request("m", Api.OPENAI_CHAT, (prompt,), len(prompt)), 0.0)
        assert decision.outcome is Outcome.OK
    assert min(one.picks for one in router.snapshot(100.0)) > 0
