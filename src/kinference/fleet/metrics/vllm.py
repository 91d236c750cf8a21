"""What vLLM's metrics page tells; the ranks of a data-parallel engine are added up."""

from kinference.core.fleet import Observation
from kinference.fleet.metrics.exposition import Exposition
from kinference.ids import Seconds

_WAITING = b"vllm:num_requests_waiting"
_RUNNING = b"vllm:num_requests_running"
_KV_USAGE = (b"vllm:kv_cache_usage_perc", b"vllm:gpu_cache_usage_perc")
"""The name now, and the name before vLLM's V1 engine."""
_CACHE_CONFIG = b"vllm:cache_config_info"
_LORA = b"vllm:lora_requests_info"
_STARTED = b"process_start_time_seconds"

ADAPTERS_MAX = 1_000


def observe(page: bytes, seen_at: Seconds) -> Observation | None:
    """None when the page is not vLLM's: it always tells both queue and batch."""
    metrics = Exposition(page)
    waiting, running = metrics.count(_WAITING), metrics.count(_RUNNING)
    if waiting is None or running is None:
        return None
    adapters, adapters_max = _adapters(metrics)
    usages = [ratio for name in _KV_USAGE if (ratio := metrics.ratio(name)) is not None]
    return Observation(
        seen_at=seen_at,
        waiting=waiting,
        running=running,
        kv_usage_ratio=usages[0] if usages else None,
        kv_blocks=sum(metrics.label_counts(_CACHE_CONFIG, b"num_gpu_blocks")) or None,
        block_tokens=next(iter(metrics.label_counts(_CACHE_CONFIG, b"block_size")), None),
        started_at=metrics.first(_STARTED),
        adapters=adapters,
        adapters_max=adapters_max,
        is_cut=metrics.is_cut,
    )


def _adapters(metrics: Exposition) -> tuple[tuple[str, ...], int | None]:
    """Those in use and the most at once. A sample's value is the time it was true; old ones stay on the page."""
    newest = max(metrics.samples(_LORA), key=lambda sample: sample.value, default=None)
    if newest is None:
        return (), None
    names = (newest.label(b"running_lora_adapters") or b"").decode(errors="replace").split(",")
    most = newest.label(b"max_lora") or b""
    metrics.is_cut |= len(names) > ADAPTERS_MAX
    known = tuple(name for name in names[:ADAPTERS_MAX] if name)
    return known, int(most) if most.isdigit() and 0 < int(most) <= ADAPTERS_MAX else None
