"""A request on its way through the simulated fleet: what was asked, and what became of it."""

from typing import Final

from kinference.ids import ReservationId, Seconds
from kinference.sim.kv_cache import BlockHash
from kinference.structs import FrozenLeaf
from kinference.vocabulary import QosClass

BLOCK_TOKENS: Final = 512
"""Prompts share whole blocks of this many tokens; it is what public traces count in."""


class Arrival(FrozenLeaf, frozen=True):
    """A request as a workload or a trace has it. `blocks` names the full blocks of its prompt."""

    at: Seconds
    prompt_tokens: int
    output_tokens: int
    blocks: tuple[BlockHash, ...]
    tenant: str = ""
    qos: QosClass = QosClass.INTERACTIVE
    session: str = ""


class Job:
    """One arrival's life. While it decodes, `generated` stands as it was when it joined the batch."""

    __slots__ = (
        "arrival",
        "attempts",
        "cached",
        "computed",
        "due_step",
        "ends_at_step",
        "engine",
        "finished_at",
        "first_at",
        "generated",
        "joined_step",
        "named",
        "nameless",
        "reservation",
        "sent_at",
        "total",
    )

    def __init__(self, arrival: Arrival) -> None:
        self.arrival = arrival
        self.attempts = 0
        self.engine = -1
        self.reservation = ReservationId(0)
        self.sent_at: Seconds = arrival.at
        self.first_at: Seconds | None = None
        self.finished_at: Seconds | None = None
        self.cached = 0
        self.restart()

    def restart(self) -> None:
        """Nothing of it is in an engine."""
        self.total = self.arrival.prompt_tokens
        self.computed = 0
        self.generated = 0
        self.named = 0
        self.nameless = 0
        self.joined_step = 0
        self.due_step = 0
        self.ends_at_step = 0
