"""Drains that an operator asks for: an endpoint finishes what it has and takes nothing new until it is told to."""

from collections.abc import Callable, Sequence

from kinference.core.fleet import Fleet
from kinference.core.snapshot import DestinationSnapshot
from kinference.ids import Address


class Drains:
    """Begins and ends them. They last as long as the endpoint does, and no longer than this process."""

    def __init__(self, fleet: Fleet, rows: Callable[[], Sequence[DestinationSnapshot]]) -> None:
        self._fleet, self._rows = fleet, rows

    def drain(self, address: Address, pool: str, draining: bool) -> Sequence[DestinationSnapshot]:
        """The endpoints at the address, in all pools where none is named, as they are now; none where there is none."""
        specs = [endpoint.spec for endpoint in self._fleet.endpoints() if endpoint.spec.address == address]
        pools = [spec.pool for spec in specs if pool in ("", str(spec.pool))]
        for one in pools:
            self._fleet.set_draining(one, address, draining)
        names = {str(one) for one in pools}
        return [row for row in self._rows() if row.address == address and row.pool in names]
