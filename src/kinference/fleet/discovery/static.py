"""Discovery from the configuration: the pools it names, and no others."""

from collections.abc import Iterable, Mapping

from kinference.core.fleet import EndpointSpec, Fleet
from kinference.ids import ObjectRef


def set_static_pools(fleet: Fleet, pools: Mapping[ObjectRef, Iterable[EndpointSpec]]) -> None:
    """Make the fleet's pools exactly these; an endpoint that stays keeps its state. One that was ready in a pool of
    another name is ready in this one too, or a new name would have no engine until the next probe.
    """
    known = fleet.endpoints()
    places = {(one.spec.pool, one.spec.address) for one in known}
    ready = {one.spec.address: one for one in known if one.ready}
    for pool, endpoints in pools.items():
        fleet.set_pool(pool, endpoints)
    for one in fleet.endpoints():
        pool, address = place = one.spec.pool, one.spec.address
        twin = ready.get(address)
        if twin is not None and place not in places and (one.spec.models is not None or twin.spec.models is None):
            fleet.set_engine(pool, address, twin.engine)
            fleet.set_models(pool, address, twin.models, twin.max_model_tokens, twin.adapters)
            fleet.set_ready(pool, address, True)
    for gone in [pool for pool in fleet.pools() if pool not in pools]:
        fleet.remove_pool(gone)
