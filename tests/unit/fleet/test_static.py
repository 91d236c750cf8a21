from kinference.core.fleet import EndpointSpec
from kinference.fleet.static import set_static_pools
from kinference.ids import Address, ObjectRef
from tests.unit.fleet.fakes import HERE, POOL, fleet_of, spec


def test_the_fleet_has_exactly_the_configured_pools() -> None:
    fleet = fleet_of(spec())
    other = ObjectRef("default", "other")
    set_static_pools(fleet, {other: [EndpointSpec(other, Address("10.0.0.9:1"))]})
    assert fleet.pools() == (other,)
    assert [endpoint.spec.address for endpoint in fleet.endpoints()] == ["10.0.0.9:1"]


def test_an_endpoint_that_stays_keeps_its_state() -> None:
    fleet = fleet_of(spec())
    fleet.set_ready(POOL, HERE, True)
    set_static_pools(fleet, {POOL: [spec(), spec("10.0.0.2:8000")]})
    assert [(endpoint.spec.address, endpoint.ready) for endpoint in fleet.endpoints()] == [
        ("10.0.0.1:8000", True),
        ("10.0.0.2:8000", False),
    ]
