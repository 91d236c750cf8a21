"""The rules of others that are no sum: thresholds, gates and rings."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf
from random import Random
from statistics import fmean, pstdev

from xxhash import xxh3_64_intdigest

from kinference.core.choose import weighted
from kinference.core.cost import Case
from kinference.ids import Milliseconds


@dataclass(frozen=True, slots=True)
class BoundedRing:
    """The first on the key's own ring of destinations whose load stays under `factor` times the mean."""

    factor: float

    def choose(self, case: Case, totals: list[Milliseconds], rng: Random) -> int:  # noqa: ARG002 - the protocol's
        key = case.key or rng.getrandbits(64)
        ring = sorted(range(len(case.names)), key=lambda place: xxh3_64_intdigest(case.names[place].encode(), key))
        bound = ceil(self.factor * (sum(case.beside) + 1.0) / len(ring))
        return next((place for place in ring if case.beside[place] < bound), ring[0])


@dataclass(frozen=True, slots=True)
class SameForSession:
    """One and the same for all requests of a session; the least loaded for one without."""

    def choose(self, case: Case, totals: list[Milliseconds], rng: Random) -> int:  # noqa: ARG002 - the protocol's
        if not case.session:
            return _least(case.beside, case, rng)
        claims = [xxh3_64_intdigest(name.encode(), case.session) for name in case.names]
        return claims.index(max(claims))


@dataclass(frozen=True, slots=True)
class HotOrCold:
    """The least cost among those that are not hot: that have no more requests than the quantile of all."""

    quantile: float

    def choose(self, case: Case, totals: list[Milliseconds], rng: Random) -> int:
        places = len(case.beside)
        bound = sorted(case.beside)[min(places - 1, int(self.quantile * places))]
        return _least(
            [inf if load > bound else cost for load, cost in zip(case.beside, totals, strict=True)], case, rng
        )


@dataclass(frozen=True, slots=True)
class MatchUnlessShort:
    """The longest match if no more than so many tokens are missing; else the least loaded."""

    missing: float

    def choose(self, case: Case, totals: list[Milliseconds], rng: Random) -> int:  # noqa: ARG002 - the protocol's
        most = max(case.hits)
        if most == 0 or case.uncached[case.hits.index(most)] > self.missing:
            return _least(case.beside, case, rng)
        return _least([-hit for hit in case.hits], case, rng)


@dataclass(frozen=True, slots=True)
class MostFree:
    """The most room in the KV cache, without what waits for it, for each request there."""

    def choose(self, case: Case, totals: list[Milliseconds], rng: Random) -> int:  # noqa: ARG002 - the protocol's
        taken = [
            (load.resident + ahead - load.prefill_tokens - load.room) / (1.0 + requests)
            for load, ahead, requests in zip(case.loads, case.ahead, case.beside, strict=True)
        ]
        return _least(taken, case, rng)


@dataclass(frozen=True, slots=True)
class MatchUnlessImbalanced:
    """The shortest queue while queues are uneven; else the longest match if long enough, else the least cached."""

    match_ratio: float
    absolute: float
    relative: float

    def choose(self, case: Case, totals: list[Milliseconds], rng: Random) -> int:  # noqa: ARG002 - the protocol's
        loads, most = case.beside, max(case.hits)
        if max(loads) - min(loads) > self.absolute and max(loads) > self.relative * min(loads):
            return _least(loads, case, rng)
        if most > self.match_ratio * (most + case.uncached[case.hits.index(most)]):
            return _least([-hit for hit in case.hits], case, rng)
        return _least([load.resident for load in case.loads], case, rng)


@dataclass(frozen=True, slots=True)
class MatchAmongUnloaded:
    """The least loaded while queues are uneven; else the best match among those not far over the mean."""

    absolute: float
    deviations: float

    def choose(self, case: Case, totals: list[Milliseconds], rng: Random) -> int:  # noqa: ARG002 - the protocol's
        loads = case.beside
        if max(loads) - min(loads) <= self.absolute:
            bound = fmean(loads) + self.deviations * pstdev(loads)
            matches = [-hit if load <= bound else 0 for hit, load in zip(case.hits, loads, strict=True)]
            if min(matches) < 0:
                best = min(matches)
                return _least(
                    [load if match == best else inf for match, load in zip(matches, loads, strict=True)], case, rng
                )
        return _least(loads, case, rng)


@dataclass(frozen=True, slots=True)
class StickyUntilSaturated:
    """Least tokens to compute, among the warm ones as long as the best of them is not far behind the best of all."""

    match_ratio: float
    patience_s: float

    def choose(self, case: Case, totals: list[Milliseconds], rng: Random) -> int:  # noqa: ARG002 - the protocol's
        warm = [
            place
            for place, (hit, uncached) in enumerate(zip(case.hits, case.uncached, strict=True))
            if hit >= self.match_ratio * (hit + uncached)
        ]
        work = [ahead + uncached for ahead, uncached in zip(case.ahead, case.uncached, strict=True)]
        if warm:
            best = min(warm, key=lambda place: case.ahead[place])
            patience = self.patience_s * 1e3 / case.slopes[best]
            if case.ahead[best] - min(case.ahead) <= patience:
                return _least([tokens if place in warm else inf for place, tokens in enumerate(work)], case, rng)
        return _least(work, case, rng)


@dataclass(frozen=True, slots=True)
class ExploitOrExplore:
    """Exploit: the least loaded of those with the longest match, if it is most of the prompt. Else explore by cost."""

    imbalance: float

    def choose(self, case: Case, totals: list[Milliseconds], rng: Random) -> int:
        most = max(case.hits)
        if most > case.uncached[case.hits.index(most)]:
            holders = [place for place, hit in enumerate(case.hits) if hit == most]
            best = min(holders, key=lambda place: totals[place] - case.work[place])
            lightest = min(total - work for total, work in zip(totals, case.work, strict=True))
            if totals[best] - case.work[best] <= self.imbalance * lightest + case.work[best]:
                return best
        return _least(totals, case, rng)


def _least(values: Sequence[float], case: Case, rng: Random) -> int:
    """The place of the least value; ties at random by weight."""
    least = min(values)
    return weighted([place for place, value in enumerate(values) if value == least], case, rng)
