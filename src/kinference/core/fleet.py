"""The fleet as the decision sees it: pools of endpoints, backends, and the live state of each.

A pure state holder. `fleet/` (discovery, scrapes, probes) writes it, the router reads it, both synchronously.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kinference.ids import Address, ObjectRef, Seconds
from kinference.vocabulary import Api, Engine


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


@dataclass(frozen=True, slots=True)
class BackendSpec:
    """One off-cluster provider, without the URL and credential that only the gateway resolves."""

    ref: ObjectRef
    api: Api
    models: Mapping[str, str]
    """Client's name -> provider's name."""
    path: str = ""


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
    max_model_tokens: int | None = None
    observation: Observation | None = None


class Fleet:
    """All endpoints and backends. Every mutator is idempotent and takes effect for the next decision."""

    def __init__(self) -> None:
        raise NotImplementedError

    def set_pool(self, pool: ObjectRef, endpoints: Iterable[EndpointSpec]) -> None:
        """Make a pool exactly these endpoints: new ones are added cold, absent ones removed, the rest left alone."""

    def remove_pool(self, pool: ObjectRef) -> None:
        """The pool is no longer served here."""

    def set_backends(self, backends: Iterable[BackendSpec]) -> None:
        """Make the backends exactly these."""

    def set_ready(self, pool: ObjectRef, address: Address, ready: bool) -> None:
        """What the readiness probe saw."""

    def set_draining(self, pool: ObjectRef, address: Address, draining: bool) -> None:
        """No new picks; what is in flight goes on."""

    def set_models(
        self, pool: ObjectRef, address: Address, models: Iterable[str], max_model_tokens: int | None = None
    ) -> None:
        """What the engine's own model list says."""

    def observe(self, pool: ObjectRef, address: Address, observation: Observation) -> None:
        """A scrape came in. A changed start time or block count bumps the generation: caches and rates are void."""

    def endpoints(self) -> tuple[Endpoint, ...]:
        """All endpoints, ordered by pool and address."""
        raise NotImplementedError

    def pools(self) -> tuple[ObjectRef, ...]:
        """Pools served here, also empty ones."""
        raise NotImplementedError

    def backends(self) -> tuple[BackendSpec, ...]:
        raise NotImplementedError
