"""The choosers: one candidate out of those weighed."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import Protocol

from kinference.core.cost import Case
from kinference.ids import Milliseconds


class Chooser(Protocol):
    """Picks one. A frozen dataclass; its fields are its parameters. Never called with no candidate."""

    def choose(self, case: Case, totals: list[Milliseconds], rng: Random) -> int:
        """The place of the chosen candidate."""
        ...


@dataclass(frozen=True, slots=True)
class Cheapest:
    """The least cost; ties at random by weight, so that routers that share no state do not herd.

    `band` widens a tie to what cannot be told apart: the learned error of the best candidate's rates, but never more
    than this share of the work that the request itself brings, or bursts would not spread evenly.
    """

    band: float = 0.0

    def choose(self, case: Case, totals: list[Milliseconds], rng: Random) -> int:
        if len(totals) == 1:
            return 0
        best, least = 0, totals[0]
        for place, total in enumerate(totals):
            if total < least:
                best, least = place, total
        error_ms, width = case.rates[best].error_ms, self.band * case.slopes[best] * case.uncached[best]
        limit = least + (error_ms if error_ms < width else width)
        near = [place for place, total in enumerate(totals) if total <= limit]
        return best if len(near) == 1 else weighted(near, case, rng)


@dataclass(frozen=True, slots=True)
class AnyOne:
    """Any, by weight."""

    def choose(self, case: Case, totals: list[Milliseconds], rng: Random) -> int:
        return weighted(range(len(totals)), case, rng)


@dataclass(frozen=True, slots=True)
class InTurn:
    """Each in its turn."""

    def choose(self, case: Case, totals: list[Milliseconds], rng: Random) -> int:  # noqa: ARG002 - the protocol's
        return case.turn % len(totals)


@dataclass(frozen=True, slots=True)
class LesserOfTwo:
    """Two drawn at random, the cheaper of them."""

    def choose(self, case: Case, totals: list[Milliseconds], rng: Random) -> int:  # noqa: ARG002 - the protocol's
        if len(totals) == 1:
            return 0
        one, other = rng.sample(range(len(totals)), 2)
        return one if totals[one] <= totals[other] else other


def weighted(places: Sequence[int], case: Case, rng: Random) -> int:
    """One of the places at random, each as often as its weight says."""
    sums = list(accumulate([max(0, case.destinations[place].weight) for place in places]))
    return places[min(bisect_right(sums, rng.random() * sums[-1]), len(places) - 1)]
