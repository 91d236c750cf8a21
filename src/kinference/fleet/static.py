"""Discovery from the configuration: the pools it names, and no others."""

from collections.abc import Iterable, Mapping

from kinference.core.fleet import EndpointSpec, Fleet
from kinference.ids import ObjectRef


def set_static_pools(fleet: Fleet, pools: Mapping[ObjectRef, Iterable[EndpointSpec]]) -> None:
    """Make the fleet's pools exactly these; an endpoint that stays keeps its state."""
    for gone in [pool for pool in fleet.pools() if pool not in pools]:
        fleet.remove_pool(gone)
    for pool, endpoints in pools.items():
        fleet.set_pool(pool, endpoints)
