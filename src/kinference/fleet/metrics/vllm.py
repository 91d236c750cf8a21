"""What vLLM's metrics page tells; the ranks of a data-parallel engine are added up."""

from kinference.core.fleet import Observation
from kinference.fleet.metrics.exposition import Exposition, Sample
from kinference.ids import Seconds

_WAITING = b"vllm:num_requests_waiting"
_RUNNING = b"vllm:num_requests_running"
_KV_USAGE = (b"vllm:kv_cache_usage_perc", b"vllm:gpu_cache_usage_perc")
"""The name now, and the name before vLLM's V1 engine."""
_CACHE_CONFIG = b"vllm:cache_config_info"
_STARTED = b"process_start_time_seconds"

_COUNT_MAX = 1 << 40
_DIGITS_MAX = 12


def observe(page: bytes, seen_at: Seconds) -> Observation | None:
    """None when the page is not vLLM's: it always tells both queue and batch."""
    metrics = Exposition(page)
    waiting, running = _total(metrics, _WAITING), _total(metrics, _RUNNING)
    if waiting is None or running is None:
        return None
    caches = list(metrics.samples(_CACHE_CONFIG))
    blocks = [count for cache in caches if (count := _count(cache, b"num_gpu_blocks"))]
    block_tokens = [count for cache in caches if (count := _count(cache, b"block_size"))]
    return Observation(
        seen_at=seen_at,
        waiting=waiting,
        running=running,
        kv_usage_ratio=_kv_usage(metrics),
        kv_blocks=sum(blocks) or None,
        block_tokens=block_tokens[0] if block_tokens else None,
        started_at=next((sample.value for sample in metrics.samples(_STARTED)), None),
    )


def _total(metrics: Exposition, name: bytes) -> int | None:
    values = [sample.value for sample in metrics.samples(name)]
    return int(min(max(sum(values), 0), _COUNT_MAX)) if values else None


def _kv_usage(metrics: Exposition) -> float | None:
    """The mean over the ranks, of which we cannot choose one."""
    for name in _KV_USAGE:
        values = [sample.value for sample in metrics.samples(name)]
        if values:
            return min(max(sum(values) / len(values), 0.0), 1.0)
    return None


def _count(sample: Sample, label: bytes) -> int | None:
    text = sample.label(label) or b""
    return int(text) if text.isdigit() and len(text) <= _DIGITS_MAX else None
