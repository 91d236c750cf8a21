"""Drains, down to the fleet."""

from random import Random

from kinference.core.fleet import EndpointSpec, Fleet
from kinference.core.pick import Router
from kinference.core.policy import RoutingRules
from kinference.ids import Address, ObjectRef
from kinference.runtime.drains import Drains

A, B = ObjectRef("default", "a"), ObjectRef("default", "b")
ONE, TWO = Address("h1:1"), Address("h2:1")


def test_an_address_drains_in_all_its_pools_or_the_one_that_is_named() -> None:
    fleet = Fleet()
    fleet.set_pool(A, [EndpointSpec(A, ONE), EndpointSpec(A, TWO)])
    fleet.set_pool(B, [EndpointSpec(B, ONE)])
    router = Router(fleet, RoutingRules(), Random(1))
    drains = Drains(fleet, lambda: router.snapshot(0.0))

    def drain(address: Address, pool: str, draining: bool) -> list[tuple[object, object, object]]:
        return [(row.pool, row.address, row.draining) for row in drains.drain(address, pool, draining)]

    assert drain(ONE, "", True) == [("default/a", ONE, True), ("default/b", ONE, True)]
    assert drain(ONE, "default/a", False) == [("default/a", ONE, False)]
    assert [endpoint.draining for endpoint in fleet.endpoints()] == [False, False, True]
    assert drain(TWO, "default/b", True) == drain(Address("h3:1"), "", True) == []
