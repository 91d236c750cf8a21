"""What SGLang's metrics page tells (`--enable-metrics`); the ranks of a data-parallel engine are added up."""

from kinference.core.fleet import Observation
from kinference.fleet.metrics.exposition import Exposition
from kinference.ids import Seconds

_WAITING = b"sglang:num_queue_reqs"
_RUNNING = b"sglang:num_running_reqs"
_KV_USAGE = b"sglang:token_usage"
_PAGES, _PAGE_TOKENS = b"sglang:num_pages", b"sglang:page_size"
_CACHE_CONFIG = b"sglang:cache_config_info"
"""Labels of it told the size of the cache before there were gauges for it (0.5.11)."""
_STARTED = b"process_start_time_seconds"


def observe(page: bytes, seen_at: Seconds) -> Observation | None:
    """None when the page is not SGLang's: it always tells both queue and batch."""
    metrics = Exposition(page)
    waiting, running = metrics.count(_WAITING), metrics.count(_RUNNING)
    if waiting is None or running is None:
        return None
    return Observation(
        seen_at=seen_at,
        waiting=waiting,
        running=running,
        kv_usage_ratio=metrics.ratio(_KV_USAGE),
        kv_blocks=metrics.count(_PAGES) or sum(metrics.label_counts(_CACHE_CONFIG, b"num_pages")) or None,
        block_tokens=metrics.first_count(_PAGE_TOKENS)
        or next(iter(metrics.label_counts(_CACHE_CONFIG, b"page_size")), None),
        started_at=metrics.first(_STARTED),
        is_cut=metrics.is_cut,
    )
