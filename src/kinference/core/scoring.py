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
from kinference.structs import FrozenLeaf
from kinference.vocabulary import QosClass

_INTERACTIVE: Final = QosClass.INTERACTIVE  # Python 3.11 finds a member by a hook each time
Column: TypeAlias = tuple[str, Sequence[Milliseconds]]
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


class Draw(FrozenLeaf, frozen=True):
    """What a choice is made by, beside its candidates."""

    policy: str
    scoring: Scoring
    qos: QosClass
    extra: Sequence[Column]
    """Columns that depend on more than the candidates."""
    rng: Random


def weigh(case: Case, draw: Draw) -> Weighed:
    """Every term for every candidate, the sums, and the choice."""
    scoring = draw.scoring
    terms = scoring.terms if draw.qos is _INTERACTIVE else scoring.batch_terms
    named: list[Column] = [(term.name, term.column(case)) for term in terms]
    named += draw.extra
    totals = _summed(named, len(case.destinations))
    chosen = scoring.chooser.choose(case, totals, draw.rng)
    return Weighed(draw.policy, case.names, named, totals, case.hits, chosen, scoring.in_milliseconds)


def _summed(named: Sequence[Column], places: int) -> list[Milliseconds]:
    """Added up place by place, without a list for each step."""
    totals: Iterable[Milliseconds] = ()
    is_any = False
    for _, column in named:
        if column:
            totals, is_any = map(add, totals, column) if is_any else column, True
    return list(totals) if is_any else [0.0] * places
