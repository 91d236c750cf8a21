"""What llama.cpp's metrics page tells (`llama-server --metrics`); it says nothing of its cache's size."""

from kinference.core.fleet import Observation
from kinference.fleet.metrics.exposition import Exposition
from kinference.ids import Seconds

_WAITING = b"llamacpp:requests_deferred"
_RUNNING = b"llamacpp:requests_processing"
_KV_USAGE = b"llamacpp:kv_cache_usage_ratio"
"""Older servers only."""

_COUNT_MAX = 1 << 40


def observe(page: bytes, seen_at: Seconds) -> Observation | None:
    """None when the page is not llama.cpp's."""
    metrics = Exposition(page)
    waiting, running = _first(metrics, _WAITING), _first(metrics, _RUNNING)
    if waiting is None or running is None:
        return None
    usage = _first(metrics, _KV_USAGE)
    return Observation(
        seen_at=seen_at,
        waiting=int(min(waiting, _COUNT_MAX)),
        running=int(min(running, _COUNT_MAX)),
        kv_usage_ratio=None if usage is None else min(usage, 1.0),
    )


def _first(metrics: Exposition, name: bytes) -> float | None:
    return next((max(sample.value, 0.0) for sample in metrics.samples(name)), None)
