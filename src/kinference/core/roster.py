"""Every destination with what this router knows of it: load, rates, health. Kept in step with the fleet."""

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from statistics import fmean
from typing import Final, TypeVar

from kinference.core.fleet import BackendSpec, Endpoint, Fleet
from kinference.core.health import Circuit
from kinference.core.ledger import Load
from kinference.core.policy import TargetKind
from kinference.core.prefix.engine_blocks import EngineBlocks
from kinference.core.prefix.hashing import BLOCK_BYTES
from kinference.core.prefix.index import PrefixIndex
from kinference.core.prices import FREE, Price, price_of
from kinference.core.rates import BACKEND_BASE_MS, SAMPLE_MS_MAX, Line, PeakLatency, Rates, Typical, cold_rates
from kinference.ids import Address, ObjectRef, ReservationId, Seconds
from kinference.vocabulary import Need

SMOOTHING: Final = 0.05
BYTES_PER_TOKEN: Final = 4.0
BYTES_PER_TOKEN_RANGE = (0.5, 32.0)
OUTPUT_TOKENS: Final = 256.0
UNCACHED_TOKENS: Final = 512.0
TRUST_SMOOTHING: Final = 0.2
MODELS_MAX: Final = 4_096
ADAPTERS_LOADED: Final = 8
"""At once, in an engine that does not tell how many."""
RELAX_EVERY_S: Final = 1.0
KEPT_PER_S: Final = 0.9
"""Of what was learned of an endpoint, for each second that it has nothing to do."""
FADED_S: Final = 120.0

Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(slots=True, eq=False)
class ModelTraits:
    """What is typical of the requests for one model."""

    bytes_per_token: float = BYTES_PER_TOKEN
    output_tokens: float = OUTPUT_TOKENS
    uncached_tokens: float = UNCACHED_TOKENS
    sent: int = 0
    """How many requests `uncached_tokens` was learned from."""
    counted: int = 0
    """How many prompts' lengths engines have told: while none, lengths are guessed."""

    def prompt_tokens(self, prompt_bytes: int) -> int:
        """A prompt's length, estimated."""
        return int(prompt_bytes / self.bytes_per_token) or 1

    def answer_tokens(self, limit: int | None) -> int:
        """The tokens that an answer is likely to have: what is usual, within the client's own limit."""
        usual = self.output_tokens
        tokens = int(usual if limit is None or limit > usual else limit)
        return tokens if tokens > 1 else 1

    def learn_uncached(self, tokens: int) -> None:
        """A request with this many tokens to compute was sent."""
        self.sent += 1
        self.uncached_tokens += _share(self.sent) * (tokens - self.uncached_tokens)

    def learn_counts(self, prompt_bytes: int, prompt_tokens: int, completion_tokens: int) -> None:
        """The engine's own counts came in."""
        low, high = BYTES_PER_TOKEN_RANGE
        if prompt_tokens > 0 and prompt_bytes > 0:
            ratio = prompt_bytes / prompt_tokens
            if not low <= ratio <= high:
                ratio = min(max(ratio, low), high)
            self.counted += 1
            self.bytes_per_token += _share(self.counted) * (ratio - self.bytes_per_token)
        if completion_tokens > 0:
            most = 100 * self.output_tokens
            bounded: int | float = completion_tokens if completion_tokens < most else most
            self.output_tokens += SMOOTHING * (bounded - self.output_tokens)


def _share(samples: int) -> float:
    """What the last of so many counts. The first ones count more: a guess is not worth twenty of them."""
    return SMOOTHING if samples * SMOOTHING >= 1.0 else 1.0 / samples


@dataclass(slots=True, eq=False)
class Destination:
    """One endpoint, in one of its lives, or one backend."""

    kind: TargetKind
    ref: ObjectRef
    """Its pool, or the backend itself: what it is reached by, and what its typical values are shared with."""
    name: str
    endpoint: Endpoint | None = None
    backend: BackendSpec | None = None
    generation: int = 0
    load: Load = field(default_factory=Load)
    circuit: Circuit = field(default_factory=Circuit)
    rates: dict[str, Rates] = field(default_factory=dict)
    hit_trust: float = 1.0
    """Share of the believed hits that the engine confirms: 0 for one that caches nothing."""
    picks: int = 0
    cold_picked: int = 0
    """The last request that was sent here with nothing cached: a greater number came later."""
    latency: PeakLatency = field(default_factory=PeakLatency)
    adapters: dict[str, None] = field(default_factory=dict)
    """Those that it should have loaded, the one used longest ago first."""

    @property
    def place(self) -> Address | ObjectRef:
        """Where it is, in the words of a pick's answer."""
        return self.ref if self.endpoint is None else self.endpoint.spec.address

    def is_usable(self, now: Seconds) -> bool:
        """Whether it takes new requests at this moment, as far as is known."""
        endpoint = self.endpoint
        return (endpoint is None or (endpoint.ready and not endpoint.draining)) and self.circuit.allows(now)

    def is_loaded(self, model: str) -> bool:
        """True unless the model is an adapter that it would have to load first."""
        return model in self.adapters or self.endpoint is None or model not in self.endpoint.adapters

    def use_adapter(self, model: str) -> None:
        """It serves this adapter: from now on it has it, and of the others as many as there is room for."""
        if self.endpoint is None or model not in self.endpoint.adapters:
            return
        seen = self.endpoint.observation
        self.adapters.pop(model, None)
        self.adapters[model] = None
        while len(self.adapters) > ((seen and seen.adapters_max) or ADAPTERS_LOADED):
            del self.adapters[next(iter(self.adapters))]

    def picked(self, reservation: ReservationId, hit: int, now: Seconds) -> None:
        """It was chosen, with so much of the prompt cached."""
        self.picks += 1
        if not hit:
            self.cold_picked = reservation
        self.circuit.picked(now)

    @property
    def context_tokens(self) -> int | None:
        """How much it takes of a prompt and its answer; None when nobody has said."""
        if self.endpoint is not None:
            return self.endpoint.spec.context_tokens or self.endpoint.max_model_tokens
        return self.backend.context_tokens if self.backend is not None else None

    def takes(self, tokens: float) -> bool:
        """True when so much fits its context, as far as is known."""
        context = self.context_tokens
        return context is None or tokens <= context

    def lacks(self, model: str, needs: frozenset[Need]) -> frozenset[Need]:
        """Which of the needs a model here is known not to have."""
        spec = self.endpoint.spec if self.endpoint is not None else self.backend
        if spec is None or not spec.lacks or not needs:
            return frozenset()
        lacking = (one.needs for one in spec.lacks if fnmatchcase(model, one.pattern))
        return needs & frozenset().union(*lacking)

    def price(self, model: str) -> Price | None:
        """What a model costs here; None when that is not known."""
        if self.endpoint is not None:
            return price_of(model, self.endpoint.spec.prices) or FREE
        return price_of(model, self.backend.prices) if self.backend is not None else None

    def learn_hit(self, believed_tokens: int, cached_tokens: int) -> None:
        """The engine says how much of a believed hit there was."""
        if believed_tokens > 0:
            share = cached_tokens / believed_tokens
            if not 0.0 <= share <= 1.0:
                share = min(max(share, 0.0), 1.0)
            self.hit_trust += TRUST_SMOOTHING * (share - self.hit_trust)

    @property
    def weight(self) -> int:
        """How many shares of equal traffic it takes."""
        return self.endpoint.spec.weight if self.endpoint is not None else 1


class Roster:
    """Destinations in the order of the fleet, and what is typical of pools and models."""

    def __init__(self, fleet: Fleet, index: PrefixIndex, engine_blocks: EngineBlocks) -> None:
        self._fleet = fleet
        self._index, self._engine_blocks = index, engine_blocks
        self._relaxed_at: Seconds = 0.0
        self._by_slot: dict[int, Destination] = {}
        self._by_backend: dict[ObjectRef, Destination] = {}
        self._typical: dict[tuple[TargetKind, ObjectRef, str], Typical] = {}
        self._traits: dict[str, ModelTraits] = {}
        self._version = self._told = -1
        self._changes = 0
        self.forgotten = 0
        """Models that had to make room for others, since somebody last asked."""
        self.losing: list[Load] = []
        """Where requests of ours are to be written off, for who keeps the ledger to take."""
        self.endpoints: tuple[Destination, ...] = ()
        self.backends: tuple[Destination, ...] = ()

    def sync(self) -> bool:
        """Take over what the fleet has been told since the last call. True when who can serve what has changed."""
        if self._fleet.told == self._told:
            return False
        self._told = self._fleet.told
        self._changes += 1
        changed = self._fleet.version != self._version
        if changed:
            self._version = self._fleet.version
            for slot in self._fleet.take_retired_slots():
                self._index.forget(slot)
                self._engine_blocks.forget(slot)
                self._by_slot.pop(slot, None)
            self.endpoints = tuple(self._local(endpoint) for endpoint in self._fleet.endpoints())
            self.backends = tuple(self._remote(spec) for spec in self._fleet.backends())
            self._by_backend = {one.backend.ref: one for one in self.backends if one.backend is not None}
        for endpoint in self._fleet.take_observed():
            self._observe(self._by_slot[endpoint.slot], endpoint)
        return changed

    def relax(self, now: Seconds) -> None:
        """Let what was learned of idle endpoints fade, by the time since the last call; seldom does anything."""
        elapsed = now - self._relaxed_at
        if elapsed < RELAX_EVERY_S:
            return
        self._relaxed_at = now
        self._changes += 1
        kept = KEPT_PER_S ** min(elapsed, FADED_S)
        for destination in self.endpoints:
            if destination.load.requests == 0:
                for rates in destination.rates.values():
                    rates.relax(kept)

    @property
    def changes(self) -> int:
        """Grows with everything that was told of destinations, and with what faded since."""
        return self._changes + self._fleet.told

    def has_pool(self, pool: ObjectRef) -> bool:
        """Whether it is served here, with endpoints or without."""
        return self._fleet.has_pool(pool)

    def rates(self, destination: Destination, model: str) -> Rates:
        """The learned rates of a destination for a model; cold ones follow what is typical of the pool."""
        rates = destination.rates.get(model)
        if rates is None:
            key = (destination.kind, destination.ref, model)
            typical = self._typical.get(key)
            if typical is None:
                local = destination.backend is None
                typical = Typical() if local else Typical(Line(BACKEND_BASE_MS, 0.0), SAMPLE_MS_MAX, SAMPLE_MS_MAX)
                self._bounded(self._typical)[key] = typical
            rates = self._bounded(destination.rates)[model] = cold_rates(typical)
        return rates

    def traits(self, model: str) -> ModelTraits:
        """What is typical of requests for a served model."""
        traits = self._traits.get(model)
        if traits is None:
            traits = self._bounded(self._traits)[model] = ModelTraits()
        return traits

    def _local(self, endpoint: Endpoint) -> Destination:
        known = self._by_slot.get(endpoint.slot)
        if known is not None and known.generation == endpoint.generation:
            return known
        self._index.forget(endpoint.slot)
        self._engine_blocks.retell(endpoint.slot)  # its events may have told of the new life before its metrics did
        pool = endpoint.spec.pool
        fresh = Destination(
            TargetKind.POOL, pool, f"{pool}/{endpoint.spec.address}", endpoint, generation=endpoint.generation
        )
        self._by_slot[endpoint.slot] = fresh
        return fresh

    def _remote(self, spec: BackendSpec) -> Destination:
        known = self._by_backend.get(spec.ref)
        if known is None:
            return Destination(TargetKind.BACKEND, spec.ref, f"backend {spec.ref}", backend=spec)
        if known.backend != spec:
            known.backend, known.circuit = spec, Circuit()  # what was wrong with it may have been put right
        return known

    def _observe(self, destination: Destination, endpoint: Endpoint) -> None:
        seen = endpoint.observation
        if seen is None:
            return
        for adapter in seen.adapters:
            destination.use_adapter(adapter)
        traits = [self.traits(model) for model in sorted(endpoint.models)] or [ModelTraits()]
        destination.load.observe(seen, fmean(one.uncached_tokens for one in traits))
        if destination.load.lost:
            self.losing.append(destination.load)
        if seen.kv_blocks and seen.block_tokens:
            stream_bytes = seen.kv_blocks * seen.block_tokens * fmean(one.bytes_per_token for one in traits)
            self._index.resize(endpoint.slot, int(stream_bytes / BLOCK_BYTES))

    def _bounded(self, table: dict[Key, Value]) -> dict[Key, Value]:
        """Room for one more: the oldest entry goes when model names come and go without end."""
        if len(table) >= MODELS_MAX:
            del table[next(iter(table))]
            self.forgotten += 1
        return table
