"""A decision, and the explanation that it carries: the one value behind the log line, the admin API and the tests."""

from dataclasses import dataclass

import msgspec

from kinference.core.limits import Left
from kinference.ids import Address, Milliseconds, ObjectRef, ReservationId, Seconds
from kinference.structs import FrozenLeaf, FrozenRecord
from kinference.vocabulary import Api, Engine, Outcome


class EndpointChoice(FrozenLeaf, frozen=True):
    """An engine endpoint, and the model name to ask it for."""

    pool: ObjectRef
    address: Address
    model: str
    generation: int
    engine: Engine = Engine.AUTO


class BackendChoice(FrozenLeaf, frozen=True):
    """A provider, the name it knows the model by, its API, and the path that replaces the client's ("": none)."""

    backend: ObjectRef
    model: str
    api: Api
    path: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """One destination that was weighed, and the terms of its cost, by name, in milliseconds."""

    destination: str
    total_ms: Milliseconds
    terms: tuple[tuple[str, Milliseconds], ...]
    hit_tokens: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """One destination that a filter removed, and why."""

    destination: str
    verdict: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything that was weighed, in the order of the fleet; the pick and the runner-up by destination name."""

    policy: str
    candidates: tuple[Candidate, ...]
    rejected: tuple[Rejected, ...]
    pick: str
    runner_up: str = ""


class Weighed(FrozenRecord, frozen=True):
    """What a decision keeps so that it can be explained later: the columns as they were computed, nothing copied."""

    policy: str
    names: list[str]
    columns: list[tuple[str, list[Milliseconds]]]
    """One that is empty is 0 everywhere."""
    totals: list[Milliseconds]
    hits: list[int]
    chosen: int
    in_milliseconds: bool = True
    """What the totals are."""


class Decision(FrozenRecord, frozen=True):
    """What was decided. A refusal has no choice and reservation 0; its `reason` says why and what would help."""

    outcome: Outcome
    reason: str
    choice: EndpointChoice | BackendChoice | None = None
    reservation: ReservationId = ReservationId(0)
    prompt_tokens: int = 0
    """Estimated."""
    hit_tokens: int = 0
    """Expected to be cached at the choice."""
    expected_ttft_ms: Milliseconds = 0.0
    limit: str = ""
    """The tenant's limit that refuses it."""
    retry_after: Seconds | None = None
    """When a refusal may be over, where that is known."""
    left: tuple[Left | None, Left | None] | None = None
    """What is left of the minute's requests and tokens, where the tenant has limits."""
    _weighed: Weighed | None = None
    _rejected: tuple[Rejected, ...] = ()

    def unexplained(self) -> "Decision":
        """The same without what explains it, which is most of its memory."""
        return msgspec.structs.replace(self, _weighed=None, _rejected=())

    def explain(self) -> Explanation:
        """The table behind this decision, made on demand."""
        return explained(self._weighed, self._rejected)


def explained(weighed: Weighed | None, rejected: tuple[Rejected, ...]) -> Explanation:
    """The table of what was weighed, and of who was not."""
    if weighed is None:
        return Explanation("", (), rejected, "")
    candidates = tuple(
        Candidate(name, total, tuple((term, column[at] if column else 0.0) for term, column in weighed.columns), hit)
        for at, (name, total, hit) in enumerate(zip(weighed.names, weighed.totals, weighed.hits, strict=True))
    )
    others = [candidate for at, candidate in enumerate(candidates) if at != weighed.chosen]
    runner_up = min(others, key=lambda other: other.total_ms).destination if others else ""
    return Explanation(weighed.policy, candidates, rejected, weighed.names[weighed.chosen], runner_up)
