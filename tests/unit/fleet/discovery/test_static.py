from dataclasses import replace

import pytest

from kinference.core.fleet import EndpointSpec
from kinference.fleet.discovery.static import set_static_pools
from kinference.ids import Address, ObjectRef
from kinference.vocabulary import Engine
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


def test_an_engine_whose_pool_has_a_new_name_is_ready_there_at_once() -> None:
    fleet, renamed = fleet_of(spec()), ObjectRef("default", "renamed")
    fleet.set_engine(POOL, HERE, Engine.SGLANG)
    fleet.set_models(POOL, HERE, ["m"], 4096, ["lora"])
    fleet.set_ready(POOL, HERE, True)
    set_static_pools(fleet, {renamed: [EndpointSpec(renamed, HERE), EndpointSpec(renamed, Address("10.0.0.9:1"))]})
    here, elsewhere = fleet.endpoints()
    assert fleet.pools() == (renamed,)
    assert (here.ready, here.engine, here.models) == (True, Engine.SGLANG, frozenset({"m"}))
    assert (here.max_model_tokens, here.adapters) == (4096, frozenset({"lora"}))
    assert not elsewhere.ready


@pytest.mark.parametrize(
    ("before", "after", "ready"), [(None, ("b",), True), (("a",), None, False), (("a",), ("b",), True)]
)
def test_models_that_were_configured_are_no_news_of_the_engine(
    before: tuple[str, ...] | None, after: tuple[str, ...] | None, ready: bool
) -> None:
    fleet, renamed = fleet_of(replace(spec(), models=before)), ObjectRef("default", "renamed")
    fleet.set_ready(POOL, HERE, True)
    set_static_pools(fleet, {renamed: [EndpointSpec(renamed, HERE, models=after)]})
    (endpoint,) = fleet.endpoints()
    assert (endpoint.ready, endpoint.models) == (ready, frozenset(after or ()))
