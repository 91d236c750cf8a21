"""Every limit of the Picker service, in one place."""

from dataclasses import dataclass, field

from kinference.core.waiting import AdmissionRules
from kinference.ids import Seconds

MIB = 1024 * 1024

EXPIRE_AT_ONCE = 512
"""Of each kind, how many are reclaimed in one turn, so that a flood of them does not hold the loop."""


@dataclass(frozen=True, slots=True)
class PickerLimits:
    """Bytes, times and counts that bound what callers can make us hold."""

    body_max_bytes: int = 32 * MIB
    buffer_max_bytes: int = 1024 * MIB
    """All bodies together, in every state."""
    chunk_max_bytes: int = MIB
    """Of a chunk's own bytes, its framing not counted."""
    push_idle_timeout: Seconds = 30.0
    """Between two chunks, while we are willing to read."""
    body_ttl: Seconds = 120.0
    """Of a body that nobody picks, and of a picked one that nobody pulls."""
    ticket_ttl: Seconds = 3600.0
    """Of a request that was dispatched and then never reported final."""
    drain_timeout: Seconds = 30.0
    stalled_pull_ttl: Seconds = 600.0
    """Of a pull that takes nothing: slow is back-pressure, this long is abandonment."""
    stall_grace: Seconds = 1.0
    """A pull that took something this recently is never reset to make room for a push."""
    pull_chunk_max_bytes: int = 256 * 1024
    empty_chunks_max: int = 65_536
    """In one push: they carry nothing and cost memory nothing, but each costs a turn of the loop."""
    tombstones_max: int = 200_000
    """Ids of consumed bodies that are remembered, so that a second Pick learns what happened."""
    name_max_chars: int = 1024
    """Of a tenant, a pool or a model: they go into answers, logs and the record of decisions."""
    decisions_max: int = 256
    """Decisions kept for the admin port."""
    admission: AdmissionRules = field(default_factory=AdmissionRules)

    @property
    def shortest_ttl(self) -> Seconds:
        """Nothing that begins now is due sooner."""
        return min(self.body_ttl, self.ticket_ttl, self.stalled_pull_ttl)
