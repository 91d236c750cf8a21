"""One request under way: what its reports teach about the destination, the model and the cache."""

from collections.abc import Sequence
from typing import Final

from kinference.core.fleet import Endpoint
from kinference.core.health import is_failure, is_success
from kinference.core.limits import Hold
from kinference.core.prefix.hashing import BLOCK_BYTES
from kinference.core.prefix.index import Insertion
from kinference.core.rates import Rates
from kinference.core.roster import Destination, ModelTraits
from kinference.ids import Milliseconds, Seconds
from kinference.packed import packed, unpacked
from kinference.structs import Entity, FrozenRecord
from kinference.vocabulary import AbortReason

NEVER_SEEN: Final = frozenset(
    {
        AbortReason.NOT_DISPATCHED,
        AbortReason.PULL_FAILED,
        AbortReason.BACKEND_UNRESOLVED,
        AbortReason.BACKEND_UNAUTHORIZED,
    }
)
"""After these the destination never had the prompt."""
CONFIRMED_SHARE: Final = 0.5
"""A hit of less than this share of what was believed is a miss; the rest is the error of the token estimate."""


class SentPrompt(Entity):
    """A prompt that an endpoint was sent."""

    endpoint: Endpoint
    blocks: Sequence[int]
    """Never empty."""
    prompt_bytes: int
    is_answered: bool = False
    confirmed: int | None = None
    """Leading blocks that were cached there by the engine's own count; None when it does not say."""


class Aside(FrozenRecord, frozen=True):
    """A flight of which nothing has been heard while very many others came: what it shares with them, and the rest."""

    destination: Destination
    rates: Rates
    traits: ModelTraits
    hold: Hold | None
    rest: bytes

    def resume(self) -> "Flight":
        """The flight again."""
        prompt_bytes, insertion, computed, believed, marks = unpacked(self.rest)
        flight = Flight(self.destination, self.rates, self.traits, prompt_bytes, insertion)
        flight.computed_tokens, flight.believed_tokens, flight.hold = computed, believed, self.hold
        flight.alone, flight.is_lone, flight.is_measured, flight.loads_adapter, flight.broken = marks
        return flight


class Flight:
    """What one decision has to learn from, or take back."""

    __slots__ = (
        "alone",
        "believed_tokens",
        "broken",
        "computed_tokens",
        "destination",
        "first_token_at",
        "hold",
        "insertion",
        "is_lone",
        "is_measured",
        "loads_adapter",
        "prompt",
        "prompt_bytes",
        "rates",
        "served",
        "status",
        "traits",
    )

    def __init__(
        self,
        destination: Destination,
        rates: Rates,
        traits: ModelTraits,
        prompt_bytes: int,
        insertion: Insertion | None,
    ) -> None:
        self.destination, self.rates, self.traits = destination, rates, traits
        self.prompt_bytes, self.insertion = prompt_bytes, insertion
        self.computed_tokens = 0.0
        """Expected to be computed before its first token, ahead of it and its own."""
        self.believed_tokens = 0
        """Thought to be cached, before trust is applied."""
        self.alone = False
        """Nothing was being computed there: what was sent before should be cached."""
        self.is_lone = False
        """Nothing of ours was there at all."""
        self.is_measured = False
        """Its length was told from those that engines had counted, not guessed."""
        self.hold: Hold | None = None
        """What it holds of its tenant's limits."""
        self.loads_adapter = False
        """The model is an adapter that had to be loaded first."""
        self.status: int | None = None
        """Of the answer; None while nothing is known."""
        self.served = True
        """Unless the answer is known to be an error."""
        self.first_token_at: Seconds | None = None
        self.prompt: SentPrompt | None = None
        """Where somebody has asked for it."""
        self.broken = False
        """The destination did not end the answer that it began."""

    def aside(self) -> "Flight | Aside":
        """The same in less memory, unless somebody else has a part of it or something has been heard of it."""
        if self.prompt is not None or self.status is not None:
            return self
        marks = (self.alone, self.is_lone, self.is_measured, self.loads_adapter, self.broken)
        rest = (self.prompt_bytes, self.insertion, self.computed_tokens, self.believed_tokens, marks)
        return Aside(self.destination, self.rates, self.traits, self.hold, packed(rest))

    def sent(self) -> SentPrompt | None:
        """What an endpoint was sent, where it tells of its cache and the index has the prompt."""
        endpoint = self.destination.endpoint
        if endpoint is None or endpoint.spec.cache_feed is None or self.insertion is None or not self.insertion.blocks:
            return None
        self.prompt = self.prompt or SentPrompt(endpoint, self.insertion.blocks, self.prompt_bytes)
        return self.prompt

    def prompt_blocks(self, tokens: int) -> int:
        """How many of the index's blocks so many tokens fill."""
        return int(tokens * self.traits.bytes_per_token / BLOCK_BYTES)

    def learn_first(self, ttft_ms: Milliseconds, status: int, now: Seconds) -> None:
        """The first byte of an answer, good or bad."""
        self.status, self.served = status, is_success(status)
        if self.served:
            self.first_token_at = now
            self.destination.circuit.succeeded()
            self._learn_time(ttft_ms)
            self.destination.latency.learn(ttft_ms, now)
        elif is_failure(status):
            self.destination.circuit.failed(f"status {status}", now)

    def explain(self, detail: str) -> None:
        """A caller's words for how it ended."""
        if self.status is not None and is_failure(self.status):
            self.destination.circuit.told = detail

    def _learn_time(self, ttft_ms: Milliseconds) -> None:
        rates, computed = self.rates, self.computed_tokens
        typical = rates.typical
        typical.bound_base(ttft_ms, is_lone=self.is_lone and not self.loads_adapter)
        self.destination.load.note_first(ttft_ms - rates.base_ms, rates.ms_per_token * computed)
        if self.loads_adapter:
            typical.learn_adapter(ttft_ms - rates.at(computed))
        elif self.is_measured or not self.traits.counted:
            typical.in_line += not self.alone
            rates.learn(computed, ttft_ms, is_measured=self.is_measured)

    def learn_cached(self, cached_tokens: int | None) -> SentPrompt | None:
        """The end of an answer, and how much of its prompt was cached. The prompt, where somebody has asked for it."""
        prompt = self.prompt if self.served else None
        if prompt is not None:
            prompt.is_answered = True
            prompt.confirmed = None if cached_tokens is None else self.prompt_blocks(cached_tokens)
        return prompt

    def learn_break(self, now: Seconds) -> None:
        """The answer broke off at the destination's end."""
        self.broken = True
        self.destination.circuit.broke("broke its answer off", now)

    def learn_final(self, prompt_tokens: int, completion_tokens: int, now: Seconds) -> None:
        """The end of an answer. One that was not announced by a first byte was good all the same."""
        if not self.broken:
            self.destination.circuit.completed()
            if self.status is None:
                self.destination.circuit.succeeded()
        if self.served:
            self.traits.learn_counts(self.prompt_bytes, prompt_tokens, completion_tokens)
        if self.first_token_at is not None:
            self.rates.learn_hold((now - self.first_token_at) * 1_000.0)

    def settle(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int | None) -> None:
        """Correct what was counted against the tenant's limits. No prompt is empty: no count of it is none at all."""
        if self.hold is None:
            return
        if not self.served:
            self.hold.give_back()
        elif prompt_tokens > 0:
            self.hold.settle(prompt_tokens, cached_tokens or 0, completion_tokens)
        else:
            self.hold.keep()

    def settle_unreported(self, reason: AbortReason) -> None:
        """The same without any counts: what may have run stands as it was expected."""
        if self.hold is None:
            return
        if reason in NEVER_SEEN or not self.served:
            self.hold.give_back()
        else:
            self.hold.keep()

    def learn_hit(self, cached_tokens: int) -> bool:
        """The engine's measure of a believed hit. True when it shows that its cache dropped what we thought it held."""
        self.destination.learn_hit(self.believed_tokens, cached_tokens)
        return self.alone and cached_tokens < self.believed_tokens * CONFIRMED_SHARE
