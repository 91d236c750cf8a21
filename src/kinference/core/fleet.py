"""The fleet as the decision sees it: pools of endpoints, backends, and the live state of each.

A pure state holder. `fleet/` (discovery, scrapes, probes) writes it, the router reads it, both synchronously.
"""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import count

from kinference.core.prices import PricedModel
from kinference.ids import Address, ObjectRef, Seconds
from kinference.vocabulary import Api, Engine, Need


class PrefixSignal(Enum):
    """How well an endpoint's prefix cache is known."""

    APPROXIMATE = "approximate"
    """It tells nothing: what was sent there counts, and that is a full signal."""
    LIVE = "live"
    """Its events come in, and none is missing."""
    WARMING = "warming"
    """Its events come in, but what it stored before is not known."""
    GAP = "gap"
    """Some of its events were lost."""
    BROKEN = "broken"
    """Its events do not come in, though they should."""

    @property
    def is_doubtful(self) -> bool:
        """True when what we believe of the cache may be missing or stale."""
        return self not in (PrefixSignal.APPROXIMATE, PrefixSignal.LIVE)


@dataclass(frozen=True, slots=True)
class CacheFeed:
    """Where an endpoint's engines publish what they do to their caches: ports at the endpoint's own host."""

    port: int
    replay_port: int | None = None
    ranks: int = 1
    """Data-parallel engines behind the endpoint; the ports of each are one above those of the one before."""
    topic: str = ""
    tokenize: bool = True
    """Whether the endpoint may be asked to put prompts into tokens."""


@dataclass(frozen=True, slots=True)
class Lacking:
    """What every model whose name matches cannot do. Of what is not said here nobody knows that it cannot be done."""

    pattern: str
    needs: frozenset[Need]


@dataclass(frozen=True, slots=True)
class EndpointSpec:
    """One endpoint as configuration or discovery names it. Identity is (pool, address)."""

    pool: ObjectRef
    address: Address
    scheme: str = "http"
    path_prefix: str = ""
    engine: Engine = Engine.AUTO
    labels: Mapping[str, str] = field(default_factory=dict)
    weight: int = 1
    models: tuple[str, ...] | None = None
    """None: whatever the engine's own list says."""
    cache_feed: CacheFeed | None = None
    prices: tuple[PricedModel, ...] = ()
    """Models without one cost nothing: these are our own engines."""
    lacks: tuple[Lacking, ...] = ()
    context_tokens: int | None = None
    """None: what the engine's own list says."""


@dataclass(frozen=True, slots=True)
class BackendSpec:
    """One off-cluster provider, without the URL and credential that only the gateway resolves."""

    ref: ObjectRef
    api: Api
    models: Mapping[str, str]
    """Client's name -> provider's name."""
    path: str = ""
    revision: str = ""
    """Another whenever the URL or the credential is another."""
    prices: tuple[PricedModel, ...] = ()
    """By the provider's names. What a model without one costs is unknown."""
    lacks: tuple[Lacking, ...] = ()
    """By the provider's names."""
    context_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """One scrape of an engine's metrics. None where the engine does not tell."""

    seen_at: Seconds
    waiting: int
    running: int
    kv_usage_ratio: float | None = None
    kv_blocks: int | None = None
    block_tokens: int | None = None
    started_at: Seconds | None = None
    """The engine process's own start time (wall clock): a change means a restart."""
    adapters: tuple[str, ...] = ()
    """Adapters that serve a request right now."""
    adapters_max: int | None = None
    """How many it can have loaded at once."""
    is_cut: bool = False
    """There was more of something than we take."""


@dataclass(slots=True, eq=False)
class Endpoint:
    """The live state of one endpoint."""

    spec: EndpointSpec
    slot: int
    """Small and stable while the endpoint lives: its bit in the prefix index."""
    generation: int
    """Grows each time the address leaves and comes back, and on an engine restart."""
    ready: bool = False
    draining: bool = False
    engine: Engine = Engine.AUTO
    models: frozenset[str] = frozenset()
    adapters: frozenset[str] = frozenset()
    """Those of its models that are adapters on another."""
    max_model_tokens: int | None = None
    observation: Observation | None = None
    prefix_signal: PrefixSignal = PrefixSignal.APPROXIMATE


class Fleet:
    """All endpoints and backends. Every mutator is idempotent and takes effect for the next decision."""

    def __init__(self) -> None:
        self._pools: dict[ObjectRef, dict[Address, Endpoint]] = {}
        self._backends: tuple[BackendSpec, ...] = ()
        self._ordered: tuple[Endpoint, ...] | None = None
        self._generations = count(1)
        self._slots = count(0)
        self._free_slots: list[int] = []
        self._retired_slots: list[int] = []
        self._observed: dict[int, Endpoint] = {}
        self.version = 0
        """Grows with every change to who can serve what; a scrape alone is no such change."""
        self.told = 0
        """Grows with everything that is told, scrapes too."""

    def set_pool(self, pool: ObjectRef, endpoints: Iterable[EndpointSpec]) -> None:
        """Make a pool exactly these endpoints: new ones are added cold, absent ones removed, the rest left alone."""
        wanted = {spec.address: spec for spec in endpoints}
        known = self._pools.setdefault(pool, {})
        for address in [address for address in known if address not in wanted]:
            self._retire(known.pop(address))
        for address, spec in wanted.items():
            endpoint = known.get(address)
            if endpoint is None:
                known[address] = self._cold(spec)
            elif endpoint.spec != spec:
                self._respecify(endpoint, spec)
        self._changed()

    def remove_pool(self, pool: ObjectRef) -> None:
        """The pool is no longer served here."""
        for endpoint in self._pools.pop(pool, {}).values():
            self._retire(endpoint)
        self._changed()

    def set_backends(self, backends: Iterable[BackendSpec]) -> None:
        """Make the backends exactly these."""
        self._backends = tuple(sorted(backends, key=lambda backend: backend.ref))
        self._changed()

    def set_ready(self, pool: ObjectRef, address: Address, ready: bool) -> None:
        """What the readiness probe saw."""
        endpoint = self._find(pool, address)
        if endpoint is not None and endpoint.ready != ready:
            endpoint.ready = ready
            self._changed()

    def set_draining(self, pool: ObjectRef, address: Address, draining: bool) -> None:
        """No new picks; what is in flight goes on."""
        endpoint = self._find(pool, address)
        if endpoint is not None and endpoint.draining != draining:
            endpoint.draining = draining
            self._changed()

    def set_engine(self, pool: ObjectRef, address: Address, engine: Engine) -> None:
        """What the engine's own answers show it to be; a configured engine is not overruled."""
        endpoint = self._find(pool, address)
        if endpoint is not None and endpoint.spec.engine is Engine.AUTO and endpoint.engine is not engine:
            endpoint.engine = engine
            self._changed()

    def set_models(
        self,
        pool: ObjectRef,
        address: Address,
        models: Iterable[str],
        max_model_tokens: int | None = None,
        adapters: Iterable[str] = (),
    ) -> None:
        """What the engine's own model list says. Configured models are not overruled."""
        endpoint = self._find(pool, address)
        if endpoint is None:
            return
        served = frozenset(models if endpoint.spec.models is None else endpoint.spec.models)
        told = (served, max_model_tokens, frozenset(adapters))
        if (endpoint.models, endpoint.max_model_tokens, endpoint.adapters) != told:
            endpoint.models, endpoint.max_model_tokens, endpoint.adapters = told
            self._changed()

    def set_prefix_signal(self, pool: ObjectRef, address: Address, signal: PrefixSignal) -> None:
        """How well the endpoint's cache is known from now on."""
        endpoint = self._find(pool, address)
        if endpoint is not None and endpoint.prefix_signal is not signal:
            endpoint.prefix_signal = signal
            self._changed()

    def observe(self, pool: ObjectRef, address: Address, observation: Observation) -> None:
        """A scrape came in. A changed start time or block count bumps the generation: caches and rates are void."""
        endpoint = self._find(pool, address)
        if endpoint is None:
            return
        if endpoint.observation is not None and _restarted(endpoint.observation, observation):
            endpoint.generation = next(self._generations)
            self._changed()
        endpoint.observation = observation
        self.told += 1
        self._observed[endpoint.slot] = endpoint

    def endpoints(self) -> tuple[Endpoint, ...]:
        """All endpoints, ordered by pool and address."""
        if self._ordered is None:
            self._ordered = tuple(
                endpoint for pool in self.pools() for _, endpoint in sorted(self._pools[pool].items())
            )
        return self._ordered

    def pools(self) -> tuple[ObjectRef, ...]:
        """Pools served here, also empty ones."""
        return tuple(sorted(self._pools))

    def has_pool(self, pool: ObjectRef) -> bool:
        """Whether it is served here."""
        return pool in self._pools

    def backends(self) -> tuple[BackendSpec, ...]:
        """All backends, ordered by name."""
        return self._backends

    def take_observed(self) -> tuple[Endpoint, ...]:
        """The endpoints scraped since the last call."""
        if not self._observed:
            return ()
        observed = tuple(self._observed.values())
        self._observed.clear()
        return observed

    def take_retired_slots(self) -> tuple[int, ...]:
        """The slots of endpoints that left. The caller forgets them at once: they are free for reuse from here on."""
        retired = tuple(self._retired_slots)
        for slot in retired:
            heapq.heappush(self._free_slots, slot)
        self._retired_slots.clear()
        return retired

    def _find(self, pool: ObjectRef, address: Address) -> Endpoint | None:
        return self._pools.get(pool, {}).get(address)

    def _cold(self, spec: EndpointSpec) -> Endpoint:
        slot = heapq.heappop(self._free_slots) if self._free_slots else next(self._slots)
        endpoint = Endpoint(spec, slot, next(self._generations), engine=spec.engine)
        endpoint.models = frozenset(spec.models or ())
        if spec.cache_feed is not None:
            endpoint.prefix_signal = PrefixSignal.WARMING
        return endpoint

    def _respecify(self, endpoint: Endpoint, spec: EndpointSpec) -> None:
        if spec.engine is not endpoint.spec.engine:
            endpoint.engine = spec.engine
        if spec.models is not None:
            endpoint.models = frozenset(spec.models)
        if spec.cache_feed != endpoint.spec.cache_feed:
            endpoint.prefix_signal = PrefixSignal.WARMING if spec.cache_feed else PrefixSignal.APPROXIMATE
        endpoint.spec = spec

    def _retire(self, endpoint: Endpoint) -> None:
        endpoint.ready = False  # for whoever still holds it
        self._retired_slots.append(endpoint.slot)
        self._observed.pop(endpoint.slot, None)

    def _changed(self) -> None:
        self.version += 1
        self.told += 1
        self._ordered = None


def _restarted(before: Observation, after: Observation) -> bool:
    started = None not in (before.started_at, after.started_at) and before.started_at != after.started_at
    resized = None not in (before.kv_blocks, after.kv_blocks) and before.kv_blocks != after.kv_blocks
    return started or resized
