"""What Triton's metrics page tells of its TensorRT-LLM backend; models and ranks are added up."""

from kinference.core.fleet import Observation
from kinference.fleet.metrics.exposition import Exposition
from kinference.ids import Seconds

_REQUESTS, _REQUEST_TYPE = b"nv_trt_llm_request_metrics", b"request_type"
_BLOCKS, _BLOCK_TYPE = b"nv_trt_llm_kv_cache_block_metrics", b"kv_cache_block_type"


def observe(page: bytes, seen_at: Seconds) -> Observation | None:
    """None when the page is not that of Triton with TensorRT-LLM."""
    metrics = Exposition(page)
    waiting = metrics.count(_REQUESTS, _REQUEST_TYPE, b"waiting")
    running = metrics.count(_REQUESTS, _REQUEST_TYPE, b"scheduled")
    if waiting is None or running is None:
        return None
    return Observation(
        seen_at=seen_at,
        waiting=waiting,
        running=running,
        kv_usage_ratio=metrics.ratio(_BLOCKS, _BLOCK_TYPE, b"fraction"),
        kv_blocks=metrics.count(_BLOCKS, _BLOCK_TYPE, b"max") or None,
        block_tokens=metrics.first_count(_BLOCKS, _BLOCK_TYPE, b"tokens_per"),
        is_cut=metrics.is_cut,
    )
