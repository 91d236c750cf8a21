from random import Random

from kinference.core.fleet import EndpointSpec, Fleet, Observation
from kinference.core.pick import Router
from kinference.core.policy import RoutingRules
from kinference.core.roster import MODELS_MAX as LEARNED_MAX
from kinference.fleet.model_list import MODELS_MAX
from kinference.ids import Address, ObjectRef
from kinference.observe.metrics import Metrics
from kinference.runtime.cuts import publish_cuts

POOL, HERE, THERE = ObjectRef("default", "p"), Address("10.0.0.1:8000"), Address("10.0.0.2:8000")


def test_endpoints_that_tell_more_than_is_taken_are_shown_for_as_long_as_they_do() -> None:
    fleet, metrics = Fleet(), Metrics()
    router = Router(fleet, RoutingRules(), Random(1))
    fleet.set_pool(POOL, [EndpointSpec(POOL, address) for address in (HERE, THERE)])
    fleet.set_models(POOL, HERE, [f"m{n}" for n in range(MODELS_MAX)], None)
    fleet.observe(POOL, THERE, Observation(0.0, 0, 0, is_cut=True))
    publish_cuts(fleet, router, metrics)
    page = metrics.exposition().decode()
    assert 'kinference_endpoints_cut_short{what="models"} 1.0' in page
    assert 'kinference_endpoints_cut_short{what="metrics"} 1.0' in page
    assert "kinference_picker_models_forgotten_total 0.0" in page
    fleet.set_models(POOL, HERE, ["m"], None)
    publish_cuts(fleet, router, metrics)
    assert 'kinference_endpoints_cut_short{what="models"} 0.0' in metrics.exposition().decode()


def test_models_that_are_forgotten_add_up() -> None:
    fleet, metrics = Fleet(), Metrics()
    router = Router(fleet, RoutingRules(), Random(1))
    fleet.set_pool(POOL, [EndpointSpec(POOL, HERE)])
    fleet.set_models(POOL, HERE, [f"m{n}" for n in range(LEARNED_MAX + 3)], None)
    fleet.observe(POOL, HERE, Observation(0.0, 0, 0))
    router.snapshot(0.0)
    for _ in range(2):
        publish_cuts(fleet, router, metrics)
    assert "kinference_picker_models_forgotten_total 3.0" in metrics.exposition().decode()
