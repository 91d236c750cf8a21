"""What comes to our ports, counted below whatever answers there, and shown beside the rest."""

from dataclasses import dataclass, field

from kinference.observe.metrics import (
    CONNECTIONS,
    CONNECTIONS_REFUSED,
    PEER_FAULTS,
    STREAMS_RESET,
    UNTAKEN_BYTES,
    Metrics,
)
from kinference.wire.connections import Tally
from kinference.wire.untaken import Untaken

OF_BOUNDS = ("refused_stream", "enhance_your_calm")
"""Shown as 0 from the start, so that the first is seen as a change."""
FLOOD, HEAD_TOO_LARGE = "enhance_your_calm", "431"
"""And these."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The counts of all ports."""

    account: Untaken
    picker: Tally = field(default_factory=Tally)
    """The control plane's, where there is no picker."""
    gateway: Tally = field(default_factory=Tally)
    admin: Tally = field(default_factory=Tally)

    def publish(self, metrics: Metrics) -> None:
        """Show them as they are now."""
        metrics.gauge(UNTAKEN_BYTES, self.account.held)
        for port, tally in (("picker", self.picker), ("gateway", self.gateway), ("admin", self.admin)):
            metrics.gauge(CONNECTIONS, tally.open, port)
            metrics.count(CONNECTIONS_REFUSED, port, amount=tally.refused)
            for code in (*OF_BOUNDS, *tally.resets):
                metrics.count(STREAMS_RESET, port, code, amount=tally.resets.pop(code, 0))
            for code in (FLOOD, HEAD_TOO_LARGE, *tally.faults):
                metrics.count(PEER_FAULTS, port, code, amount=tally.faults.pop(code, 0))
            tally.refused = 0
