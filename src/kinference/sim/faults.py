"""Faults on demand: which requests go wrong, and how."""

from dataclasses import dataclass, replace
from enum import Enum
from random import Random

import msgspec

from kinference.ids import Seconds

FAULTS_MAX = 64
STATUS_MIN, STATUS_MAX = 400, 599


class FaultKind(Enum):
    REFUSE = "refuse"
    """The connection breaks off before a byte of an answer."""
    HANG = "hang"
    """The request is taken and never answered."""
    STATUS = "status"
    """An error answer, 429 or 500 for example."""
    CUT = "cut"
    """The answer breaks off after some chunks."""
    SLOW = "slow"
    """The whole engine works slower, until cleared."""


class Scope(Enum):
    REQUESTS = "requests"
    """Whatever asks for inference."""
    ALL = "all"
    """Also health, metrics and the list of models: the whole server but for its fault switch."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault, in force for `count` requests, or until it is cleared when there is no count."""

    kind: FaultKind
    status: int = 500
    retry_after: Seconds | None = None
    after_chunks: int = 3
    factor: float = 10.0
    count: int | None = None
    probability: float = 1.0
    scope: Scope = Scope.REQUESTS

    def __post_init__(self) -> None:
        if not STATUS_MIN <= self.status <= STATUS_MAX:
            raise ValueError(f"status has to be from {STATUS_MIN} to {STATUS_MAX}")
        if not 0 < self.probability <= 1:
            raise ValueError("probability has to be above 0 and at most 1")
        if self.factor <= 0 or self.after_chunks < 0:
            raise ValueError("factor has to be above 0, after_chunks at least 0")
        if self.count is not None and self.count < 1:
            raise ValueError("count has to be at least 1; leave it out for a fault that stays until cleared")
        if self.kind is FaultKind.SLOW and (self.count is not None or self.probability < 1):
            raise ValueError("slow is a state of the whole engine: it takes neither count nor probability")


class FaultBoard:
    """The faults in force, oldest first. Seeded, so that the same requests meet the same faults."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._faults: list[Fault] = []

    @property
    def faults(self) -> tuple[Fault, ...]:
        return tuple(self._faults)

    @property
    def slowdown(self) -> float:
        """How many times slower the engine is; of several such faults the latest holds."""
        factors = [fault.factor for fault in self._faults if fault.kind is FaultKind.SLOW]
        return factors[-1] if factors else 1.0

    def add(self, fault: Fault) -> None:
        if len(self._faults) >= FAULTS_MAX:
            raise ValueError(f"{FAULTS_MAX} faults are in force already; clear some first")
        self._faults.append(fault)

    def clear(self) -> None:
        self._faults.clear()

    def draw(self, *, is_inference: bool) -> Fault | None:
        """The fault that this request meets, counted down; None when it is served well."""
        for place, fault in enumerate(self._faults):
            if fault.kind is FaultKind.SLOW or not (is_inference or fault.scope is Scope.ALL):
                continue
            if fault.probability < 1 and self._random.random() >= fault.probability:
                continue
            self._count_down(place, fault)
            return fault
        return None

    def _count_down(self, place: int, fault: Fault) -> None:
        if fault.count is None:
            return
        if fault.count == 1:
            del self._faults[place]
        else:
            self._faults[place] = replace(fault, count=fault.count - 1)


def parse_fault(raw: bytes) -> Fault:
    """A fault from JSON. Raises ValueError that says what is wrong."""
    try:
        fields = msgspec.json.decode(raw, type=dict[str, object])
        unknown = sorted(set(fields) - set(Fault.__dataclass_fields__))
        if unknown:
            raise ValueError(f"no such field: {', '.join(unknown)}")
        return msgspec.convert(fields, Fault)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
