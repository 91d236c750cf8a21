"""What vLLM's metrics page tells; the ranks of a data-parallel engine are added up."""

from kinference.core.fleet import Observation
from kinference.fleet.metrics.exposition import Exposition
from kinference.ids import Seconds

_WAITING = b"vllm:num_requests_waiting"
_RUNNING = b"vllm:num_requests_running"
_KV_USAGE = (b"vllm:kv_cache_usage_perc", b"vllm:gpu_cache_usage_perc")
"""The name now, and the name before vLLM's V1 engine."""
_CACHE_CONFIG = b"vllm:cache_config_info"
_STARTED = b"process_start_time_seconds"


def observe(page: bytes, seen_at: Seconds) -> Observation | None:
    """None when the page is not vLLM's: it always tells both queue and batch."""
    metrics = Exposition(page)
    waiting, running = metrics.count(_WAITING), metrics.count(_RUNNING)
    if waiting is None or running is None:
        return None
    usages = [ratio for name in _KV_USAGE if (ratio := metrics.ratio(name)) is not None]
    return Observation(
        seen_at=seen_at,
        waiting=waiting,
        running=running,
        kv_usage_ratio=usages[0] if usages else None,
        kv_blocks=sum(metrics.label_counts(_CACHE_CONFIG, b"num_gpu_blocks")) or None,
        block_tokens=next(iter(metrics.label_counts(_CACHE_CONFIG, b"block_size")), None),
        started_at=metrics.first(_STARTED),
    )
