"""What the metrics page of a Dynamo frontend tells: of all the engines behind it, its models added up."""

from kinference.core.fleet import Observation
from kinference.fleet.metrics.exposition import Exposition
from kinference.ids import Seconds

_IN_FLIGHT = b"dynamo_frontend_inflight_requests"
_QUEUED = b"dynamo_frontend_queued_requests"
"""In flight as well, without a first token yet."""
_BLOCKS = b"dynamo_frontend_model_total_kv_blocks"
_BLOCK_TOKENS = b"dynamo_frontend_model_kv_cache_block_size"


def observe(page: bytes, seen_at: Seconds) -> Observation | None:
    """None when the page is not that of a Dynamo frontend."""
    metrics = Exposition(page)
    in_flight, queued = metrics.count(_IN_FLIGHT), metrics.count(_QUEUED)
    if in_flight is None or queued is None:
        return None
    return Observation(
        seen_at=seen_at,
        waiting=queued,
        running=max(0, in_flight - queued),
        kv_blocks=metrics.count(_BLOCKS) or None,
        block_tokens=metrics.first_count(_BLOCK_TOKENS),
        is_cut=metrics.is_cut,
    )
