"""What trtllm-serve's Prometheus page tells; what `/metrics` has there is JSON, and for one reader only."""

from kinference.core.fleet import Observation
from kinference.fleet.metrics.exposition import Exposition
from kinference.ids import Seconds

_WAITING = b"trtllm_num_requests_waiting"
_RUNNING = b"trtllm_num_requests_running"
_KV_USAGE = b"trtllm_kv_cache_utilization"
_BLOCKS = b"trtllm_kv_cache_max_blocks"
_BLOCK_TOKENS = b"trtllm_kv_cache_tokens_per_block"
_STARTED = b"process_start_time_seconds"


def observe(page: bytes, seen_at: Seconds) -> Observation | None:
    """None when the page is not TensorRT-LLM's, or of a version that tells neither queue nor batch."""
    metrics = Exposition(page)
    waiting, running = metrics.count(_WAITING), metrics.count(_RUNNING)
    if waiting is None or running is None:
        return None
    return Observation(
        seen_at=seen_at,
        waiting=waiting,
        running=running,
        kv_usage_ratio=metrics.ratio(_KV_USAGE),
        kv_blocks=metrics.count(_BLOCKS) or None,
        block_tokens=metrics.first_count(_BLOCK_TOKENS),
        started_at=metrics.first(_STARTED),
        is_cut=metrics.is_cut,
    )
