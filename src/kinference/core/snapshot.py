"""What the router knows of each destination, as plain values for people and the admin API."""

from dataclasses import dataclass

from kinference.core.prefix.engine_blocks import EngineBlocks
from kinference.core.prefix.index import PrefixIndex
from kinference.core.roster import Destination, Roster
from kinference.ids import Milliseconds, Seconds


@dataclass(frozen=True, slots=True)
class RatesSnapshot:
    """The learned rates for one model."""

    model: str
    base_ms: Milliseconds
    ms_per_token: Milliseconds
    error_ms: Milliseconds
    samples: int


@dataclass(frozen=True, slots=True)
class DestinationSnapshot:
    """One endpoint or backend at one moment. None where there is no such thing, or it has not been told."""

    kind: str
    """`pool` or `backend`."""
    pool: str
    """`namespace/name` of the pool, or of the backend itself."""
    address: str
    generation: int
    ready: bool
    draining: bool
    engine: str
    models: tuple[str, ...]
    requests: int
    """In flight from this router."""
    prefill_tokens: int
    decode_tokens: int
    waiting: int | None
    running: int | None
    kv_usage_ratio: float | None
    seen_s_ago: Seconds | None
    rates: tuple[RatesSnapshot, ...]
    circuit: str
    circuit_reason: str
    prefix_signal: str
    """How well its prefix cache is known."""
    engine_blocks: int
    """Blocks of its own that its events have told of."""
    prefix_blocks: int
    prefix_blocks_max: int
    hit_trust: float
    picks: int


def take_snapshot(
    roster: Roster, index: PrefixIndex, engine_blocks: EngineBlocks, now: Seconds
) -> tuple[DestinationSnapshot, ...]:
    """All destinations, endpoints first, in the order of the fleet."""
    return tuple(_snapshot(one, index, engine_blocks, now) for one in (*roster.endpoints, *roster.backends))


def _snapshot(one: Destination, index: PrefixIndex, engine_blocks: EngineBlocks, now: Seconds) -> DestinationSnapshot:
    endpoint, backend = one.endpoint, one.backend
    seen = endpoint.observation if endpoint is not None else None
    names = endpoint.models if endpoint is not None else backend.models if backend is not None else ()
    return DestinationSnapshot(
        kind=one.kind.value,
        pool=str(one.ref),
        address=endpoint.spec.address if endpoint is not None else "",
        generation=one.generation,
        ready=endpoint is None or endpoint.ready,
        draining=endpoint is not None and endpoint.draining,
        engine=endpoint.engine.value if endpoint is not None else "",
        models=tuple(sorted(names)),
        requests=one.load.requests,
        prefill_tokens=one.load.prefill_tokens,
        decode_tokens=one.load.decode_tokens,
        waiting=seen.waiting if seen is not None else None,
        running=seen.running if seen is not None else None,
        kv_usage_ratio=seen.kv_usage_ratio if seen is not None else None,
        seen_s_ago=max(0.0, now - seen.seen_at) if seen is not None else None,
        rates=tuple(
            RatesSnapshot(model, rates.base_ms, rates.ms_per_token, rates.error_ms, rates.samples)
            for model, rates in sorted(one.rates.items())
        ),
        circuit=one.circuit.state(now),
        circuit_reason=": ".join(filter(None, (one.circuit.reason, one.circuit.told))),
        prefix_signal=endpoint.prefix_signal.value if endpoint is not None else "",
        engine_blocks=engine_blocks.tracked(endpoint.slot) if endpoint is not None else 0,
        prefix_blocks=index.held(endpoint.slot) if endpoint is not None else 0,
        prefix_blocks_max=index.capacity(endpoint.slot) if endpoint is not None else 0,
        hit_trust=one.hit_trust,
        picks=one.picks,
    )
