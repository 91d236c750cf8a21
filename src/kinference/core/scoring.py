"""What a policy is made of: cost terms, one list for each kind of class, and a chooser; and how they make a choice."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import add
from random import Random
from typing import Any, ClassVar, Final, Protocol, TypeAlias

from kinference.core.choose import Chooser
from kinference.core.cost import Case, CostTerm, Interference
from kinference.core.decision import Weighed
from kinference.ids import Milliseconds
from kinference.vocabulary import QosClass

MANY: Final = 32
"""So many places are quicker added up all at once."""
_INTERACTIVE: Final = QosClass.INTERACTIVE  # Python 3.11 finds a member by a hook each time
Column: TypeAlias = tuple[str, list[Milliseconds]]
"""A term by its name, and its milliseconds for each candidate."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """A policy ready for use."""

    terms: tuple[CostTerm, ...]
    batch_terms: tuple[CostTerm, ...]
    """For BATCH and DEFERRABLE."""
    chooser: Chooser
    by_prefix: bool = True
    """False: the policy looks at neither prompts nor caches, so nothing is hashed."""
    guards: bool = True
    """Whoever would have to evict running requests for this one is left out while another has room."""
    in_milliseconds: bool = False
    """The terms are times: what a tenant's money is worth in time can be added."""
    harm: Interference | None = None
    """Of prefill: where that is reckoned with a prefix is worth one more copy when enough was lost for want of it."""


class Policy(Protocol):
    """A frozen dataclass whose fields are the policy's parameters and whose docstring is its help."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def scoring(self) -> Scoring:
        """The terms and the chooser with these parameters."""
        ...


class Draw:
    """What a choice is made by, beside its candidates."""

    __slots__ = ("extra", "policy", "qos", "rng", "scoring")

    def __init__(self, policy: str, scoring: Scoring, qos: QosClass, extra: Sequence[Column], rng: Random) -> None:
        self.policy, self.scoring, self.qos, self.rng = policy, scoring, qos, rng
        self.extra = extra
        """Columns that depend on more than the candidates."""


def weigh(case: Case, draw: Draw) -> Weighed:
    """Every term for every candidate, the sums, and the choice."""
    scoring = draw.scoring
    terms = scoring.terms if draw.qos is _INTERACTIVE else scoring.batch_terms
    named: list[Column] = [(term.name, term.column(case)) for term in terms]
    if draw.extra:
        named += draw.extra
    names = case.names
    totals = _summed(named, len(case.destinations))
    chosen = scoring.chooser.choose(case, totals, draw.rng)
    return Weighed(draw.policy, names, named, totals, case.hits, chosen, scoring.in_milliseconds)


def _summed(named: list[Column], places: int) -> list[Milliseconds]:
    """Added up place by place."""
    totals: list[Milliseconds] | None = None
    if places > MANY:
        return _summed_at_once(named, places)
    for _, column in named:
        if not column:
            continue
        if totals is None:
            totals = column.copy()
        else:
            for place, ms in enumerate(column):
                totals[place] += ms
    return [0.0] * places if totals is None else totals


def _summed_at_once(named: list[Column], places: int) -> list[Milliseconds]:
    """The same without a list or a step for each."""
    totals: Iterable[Milliseconds] = ()
    is_any = False
    for _, column in named:
        if column:
            totals, is_any = map(add, totals, column) if is_any else column, True
    return list(totals) if is_any else [0.0] * places
