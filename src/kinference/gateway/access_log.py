"""One line for each request: what was asked of whom and how it went, without bodies, keys or queries."""

import logging
from typing import Final

from kinference.ids import Milliseconds, Seconds
from kinference.observe.metrics import GATEWAY_OVERHEAD, GATEWAY_REQUESTS, GATEWAY_TOKENS, GATEWAY_TTFT, Metrics
from kinference.ports import PickResult
from kinference.vocabulary import Keyed

_log: Final = logging.getLogger("kinference.gateway")

CLIENT_CLOSED_STATUS: Final = 499
"""For the log and the metrics, where no head went out: nobody was left to read one."""


class End(Keyed):
    """How a request ended."""

    OK = "ok"
    REFUSED = "refused"
    """By ourselves, before any destination answered."""
    UPSTREAM_ERROR = "upstream_error"
    UPSTREAM_CUT = "upstream_cut"
    CLIENT_CLOSED = "client_closed"
    INTERNAL = "internal"


_ENDS: Final = {end: end.value for end in End}


class Record:
    """What is known of one request so far; each stage fills in what it learns."""

    api = ""
    tenant = ""
    model = ""
    endpoint = ""
    upstream_id = ""
    """What a provider calls the request, by which it can be asked about it."""
    status = 0
    """0 until a head has gone out."""
    end = End.INTERNAL
    reason = ""
    """What the client was told, where we refused."""
    attempts = 0
    upstream_s: Seconds = 0.0
    """Time spent waiting for destinations before the head of the answer."""
    overhead_ms: Milliseconds | None = None
    ttft_ms: Milliseconds | None = None
    prompt_tokens = 0
    completion_tokens = 0
    cached_tokens: int | None = None
    usage_estimated = False
    picked: PickResult | None = None
    """The last answer of the picker: what is left of the tenant's limits is in it."""

    def __init__(self, request_id: str, path: str, accepted_at: Seconds) -> None:
        self.request_id, self.path, self.accepted_at = request_id, path, accepted_at

    def set_overhead(self, now: Seconds) -> Milliseconds:
        """Ours is all the time since the first byte was accepted that was not spent waiting for destinations. The
        client's upload is in it: a busy loop and a slow client look the same from here.
        """
        self.overhead_ms = max(now - self.accepted_at - self.upstream_s, 0.0) * 1000
        return self.overhead_ms

    def client_left(self) -> None:
        """The client went away, before its answer was over unless the end says otherwise."""
        if self.end is End.INTERNAL:
            self.end = End.CLIENT_CLOSED
        self.status = self.status or CLIENT_CLOSED_STATUS


def write(record: Record, now: Seconds, metrics: Metrics) -> None:
    """Log and count one finished request."""
    metrics.count(GATEWAY_REQUESTS, record.api, str(record.status), _ENDS[record.end])
    if record.overhead_ms is not None:
        metrics.time(GATEWAY_OVERHEAD, record.overhead_ms / 1000)
    if record.ttft_ms is not None:
        metrics.time(GATEWAY_TTFT, record.ttft_ms / 1000)
    metrics.count(GATEWAY_TOKENS, "prompt", amount=record.prompt_tokens)
    metrics.count(GATEWAY_TOKENS, "completion", amount=record.completion_tokens)
    if record.cached_tokens:
        metrics.count(GATEWAY_TOKENS, "cached", amount=record.cached_tokens)
    if _log.isEnabledFor(logging.INFO):
        _tell(record, now)


def _tell(record: Record, now: Seconds) -> None:
    duration_ms = (now - record.accepted_at) * 1000
    _log.info(
        "%s %d %s in %.0f ms",
        record.path,
        record.status,
        record.end.value,
        duration_ms,
        extra={
            "request_id": record.request_id,
            "api": record.api,
            "model": record.model,
            "tenant": record.tenant,
            "status": record.status,
            "outcome": record.end.value,
            "reason": record.reason,
            "endpoint": record.endpoint,
            "upstream_request_id": record.upstream_id,
            "ttft_ms": None if record.ttft_ms is None else round(record.ttft_ms, 1),
            "duration_ms": round(duration_ms, 1),
            "overhead_ms": None if record.overhead_ms is None else round(record.overhead_ms, 3),
            "prompt_tokens": record.prompt_tokens,
            "completion_tokens": record.completion_tokens,
            "cached_tokens": record.cached_tokens,
            "usage_estimated": record.usage_estimated,
            "attempts": record.attempts,
        },
    )
