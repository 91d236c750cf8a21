"""Endpoints that have left: a while later the metrics show them no more, or those that come and go would fill them."""

from typing import Final

from kinference.core.fleet import Fleet
from kinference.ids import Seconds
from kinference.observe.metrics import Metrics

SHOWN_FOR: Final[Seconds] = 300.0
"""After they have left: what they did last is still to be scraped, and what is under way there to end."""


class Departed:
    """Keeps watch over one fleet, whenever its metrics are asked for."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._present: frozenset[str] = frozenset()
        self._left_at: dict[str, Seconds] = {}

    def publish(self, metrics: Metrics, now: Seconds) -> None:
        """Forget whoever has been away for long enough."""
        specs = [endpoint.spec for endpoint in self._fleet.endpoints()]
        present = frozenset(spec.address for spec in specs) | {f"{spec.pool}/{spec.address}" for spec in specs}
        self._left_at.update(dict.fromkeys(sorted(self._present - present), now))
        self._left_at = {name: at for name, at in self._left_at.items() if name not in present}
        self._present = present
        gone = frozenset(name for name, at in self._left_at.items() if now - at >= SHOWN_FOR)
        for name in gone:
            del self._left_at[name]
        for label in ("endpoint", "destination"):
            metrics.forget(label, gone)
