"""The cost terms: expected milliseconds for each candidate, one column a term."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from operator import mul
from typing import Final, Protocol

from kinference.core.health import Circuit
from kinference.core.ledger import Load
from kinference.core.rates import Rates
from kinference.core.roster import Destination
from kinference.ids import Milliseconds, Seconds
from kinference.structs import FrozenRecord

STEP_MS_PER_REQUEST: Final = 0.05
"""What one more sequence in the batch adds to every decode step."""
FIRST_TOKEN_MS: Final = 2_000.0
"""A wait for a first token that is in order."""
TOKEN_MS: Final = 60.0
"""A wait for each token after it that is in order."""
ENGINES_KNOWN: Final = 4_096
"""So many chances are remembered: few are asked for, again and again."""
SHORT_TOKENS: Final = FIRST_TOKEN_MS / TOKEN_MS
"""So many in order take as long as a wait for the first that is in order."""
IN_A_ROW: Final = 3
"""Who finds no engine free so many times one after the other finds no pause between prompts."""
CALM_MS: Final = 125.0
"""Behind a queue so long a calmer batch is worth nothing."""
REQUEST_TOKENS: Final = 32
"""An engine computes the last block and schedules the request, whatever it has cached."""
RETRY_MS: Final = 2_000.0
"""What a failed attempt costs the client, at the least."""


class Common:
    """What terms make of the columns that depend on no request: found once for all that are weighed at one moment, and
    good for those columns alone.
    """

    __slots__ = ("ahead", "beside", "chance", "circuits", "left", "met", "risks")

    def __init__(self) -> None:
        self.met: list[float] | None = None
        """How many requests one more will decode beside, of `beside` and `left`."""
        self.risks: list[Milliseconds] = []
        """Of `circuits`."""
        self.beside: list[float] | None = None
        self.left: list[Milliseconds] | None = None
        self.chance = 0.0
        """That a prompt finds no engine free, of `ahead`."""
        self.ahead: list[float] | None = None
        self.circuits: list[Circuit] | None = None


class Case(FrozenRecord, frozen=True):
    """One request against its candidates, in columns of equal length."""

    destinations: list[Destination]
    names: list[str]
    rates: list[Rates]
    loads: list[Load]
    circuits: list[Circuit]
    bases: list[Milliseconds]
    """The time to first token of an empty prompt on an idle engine."""
    slopes: list[Milliseconds]
    """Milliseconds for each token to compute."""
    ahead: list[float]
    """Prompt tokens to be computed before ours: the larger of our own ledger, as far as the engine tells of what is in
    it, and the aged scrape."""
    beside: list[float]
    """Requests there, by the same rule."""
    left: list[Milliseconds]
    """The time to compute what is ahead, without what must be computed of it by now."""
    hung: Mapping[int, Milliseconds]
    """How long those are overdue that seem to hang, by their places."""
    hits: list[int]
    """Tokens expected to be cached."""
    uncached: list[int]
    """Tokens to compute, never less than REQUEST_TOKENS."""
    work: list[Milliseconds]
    """The time to compute them."""
    output_tokens: int
    """Expected."""
    fitting: Sequence[int]
    """The places of those whose KV cache takes this request without evicting a running one."""
    now: Seconds
    turn: int
    key: int
    """Equal for prompts with an equal head, 0 for one too short to tell."""
    session: int = 0
    """Equal for requests of one session, 0 for one that names none."""
    common: Common | None = None
    """Shared with others that are weighed at this moment; None where there are none."""


class CostTerm(Protocol):
    """One part of the expected cost. A frozen dataclass; its fields are its parameters."""

    @property
    def name(self) -> str:
        """The term's name in explanations."""
        ...

    def column(self, case: Case) -> list[Milliseconds]:
        """Milliseconds for each candidate, in their order: finite, never negative; none at all for 0 everywhere."""
        ...


@dataclass(frozen=True, slots=True)
class Base:
    """The time to first token of an empty prompt on an idle engine: network, parsing, scheduling."""

    name: str = "base"

    def column(self, case: Case) -> list[Milliseconds]:
        return case.bases


@dataclass(frozen=True, slots=True)
class QueueWait:
    """The time to compute the prompts ahead of ours; `begun`: without what must be computed of them by now, and with
    as much as they are overdue where the engine seems to hang.
    """

    share: float = 1.0
    begun: bool = False
    name: str = "queue_wait"

    def column(self, case: Case) -> list[Milliseconds]:
        waits = case.left if self.begun else list(map(mul, case.slopes, case.ahead))
        if self.begun and case.hung:
            waits = [wait + case.hung.get(place, 0.0) for place, wait in enumerate(waits)]
        return waits if self.share == 1.0 else [self.share * wait for wait in waits]


@dataclass(frozen=True, slots=True)
class SlotWait:
    """The time until a running request ends, where the KV cache cannot take this one beside them."""

    name: str = "slot_wait"

    def column(self, case: Case) -> list[Milliseconds]:
        if len(case.fitting) == len(case.loads):
            return []
        waits = [
            rates.hold_ms * (1 + load.waiting) / max(1.0, beside)
            for rates, load, beside in zip(case.rates, case.loads, case.beside, strict=True)
        ]
        for place in case.fitting:
            waits[place] = 0.0
        return waits


@dataclass(frozen=True, slots=True)
class Prefill:
    """The time to compute what the engine has not cached of the prompt."""

    name: str = "prefill"

    def column(self, case: Case) -> list[Milliseconds]:
        return case.work


@dataclass(frozen=True, slots=True)
class Interference:
    """The harm done, to those there, to all who come after, and between their decoding and ours.

    Our prefill stalls each request that decodes there: `weight` of a millisecond for each. It keeps an engine from
    later prompts wherever it is done: `crowd` of a millisecond, by the chance that one of them finds no engine free.
    So caches are worth more under load, and yet within bounds, or all would gather where one cache is.
    And it slows each token of theirs, and theirs ours: where few decode both are spared. Where prompts wait for it
    another one would be spared in our place, so the longer they do the less it speaks for an engine. All would queue
    at one that has come back or is new, else, and its batch would fill no sooner.
    """

    weight: float = 0.02
    crowd: float = 1.5
    name: str = "interference"

    def column(self, case: Case) -> list[Milliseconds]:
        weight, price = self._weights(case)
        tokens, works, met = case.output_tokens, case.work, _met(case)
        decode = spread_share(tokens) * 2.0 * STEP_MS_PER_REQUEST * tokens
        return [(weight * requests + price) * works[place] + decode * requests for place, requests in enumerate(met)]

    def shares(self, case: Case) -> list[float]:
        """What a millisecond of our prefill does to others, at each place."""
        weight, price = self._weights(case)
        return [weight * requests + price for requests in _met(case)]

    def _weights(self, case: Case) -> tuple[float, float]:
        """What it counts for each who decodes there, and for those that come after it."""
        common, ahead = case.common or Common(), case.ahead
        if common.ahead is not ahead:
            engines = len(ahead)
            common.ahead, common.chance = ahead, none_free(engines - ahead.count(0), engines)
        chance = common.chance
        weight, stalled = self.weight, spread_share(case.output_tokens)
        if stalled > weight:
            weight += (stalled - weight) * chance**IN_A_ROW
        return weight, self.crowd * chance


def _met(case: Case) -> list[float]:
    """How many requests ours will decode beside: who is there now, and the longer prompts wait there, the less that
    there are fewer than usual.
    """
    common, beside, lefts = case.common or Common(), case.beside, case.left
    known = common.met
    if known is not None and common.beside is beside and common.left is lefts:
        return known
    met = beside.copy()
    usual = 0.0
    for requests in met:
        usual += requests
    usual /= len(met)
    for place, left in enumerate(lefts):
        if left and (requests := met[place]) < usual:
            calm = 1.0 - left / CALM_MS
            met[place] = usual - (usual - requests) * (calm if calm > 0.0 else 0.0)
    common.met, common.beside, common.left = met, beside, lefts
    return met


def spread_share(output_tokens: int) -> float:
    """What a millisecond counts that is spread over an answer of so many tokens, where one before the first counts 1:
    each by how much of its objective it takes.
    """
    return 1.0 if output_tokens <= SHORT_TOKENS else FIRST_TOKEN_MS / (TOKEN_MS * output_tokens)


@lru_cache(ENGINES_KNOWN)
def none_free(busy: int, engines: int) -> float:
    """The chance that a prompt finds no engine free where so many of them are busy on average: Sakasegawa's (1977)
    closed form of Erlang's formula. Half of four are busy at once now and then, half of 64 never.
    """
    return float((busy / engines) ** (sqrt(2.0 * (engines + 1.0)) - 1.0))


@dataclass(frozen=True, slots=True)
class Risk:
    """The time lost when the destination fails again: failing fast must not look like answering fast."""

    name: str = "risk"

    def column(self, case: Case) -> list[Milliseconds]:
        common, circuits = case.common or Common(), case.circuits
        if common.circuits is not circuits:
            risks: list[Milliseconds] = []
            for one in circuits:
                if one.failure_ratio:
                    risks = [RETRY_MS * circuit.failure_ratio for circuit in circuits]
                    break
            common.circuits, common.risks = circuits, risks
        return common.risks


@dataclass(frozen=True, slots=True)
class InFlight:
    """Requests there, ours or scraped. A count, not a time: for the policies of others that balance by it."""

    name: str = "in_flight"

    def column(self, case: Case) -> list[Milliseconds]:
        return case.beside
