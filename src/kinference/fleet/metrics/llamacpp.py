"""What llama.cpp's metrics page tells (`llama-server --metrics`); it says nothing of its cache's size."""

from kinference.core.fleet import Observation
from kinference.fleet.metrics.exposition import Exposition
from kinference.ids import Seconds

_WAITING = b"llamacpp:requests_deferred"
_RUNNING = b"llamacpp:requests_processing"
_KV_USAGE = b"llamacpp:kv_cache_usage_ratio"
"""Older servers only."""


def observe(page: bytes, seen_at: Seconds) -> Observation | None:
    """None when the page is not llama.cpp's."""
    metrics = Exposition(page)
    waiting, running = metrics.count(_WAITING), metrics.count(_RUNNING)
    if waiting is None or running is None:
        return None
    usage = metrics.ratio(_KV_USAGE)
    return Observation(seen_at=seen_at, waiting=waiting, running=running, kv_usage_ratio=usage, is_cut=metrics.is_cut)
