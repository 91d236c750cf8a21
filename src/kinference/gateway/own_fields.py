"""The fields that every answer carries, whoever made it."""

from typing import Final

from kinference.gateway.access_log import Record
from kinference.gateway.rate_limits import rate_limit_fields
from kinference.gateway.routes import Dialect
from kinference.ports import Clock, Headers

_ANTHROPIC: Final = Dialect.ANTHROPIC
"""Read once: Python 3.11 finds a member of an enum by a hook of its metaclass, at ten times the price of a constant."""


def own_fields(record: Record, dialect: Dialect, clock: Clock, status: int) -> Headers:
    """They, as of now: nothing of ours but bytes on their way happens after they are made."""
    picked = record.picked
    record.status = status
    overhead_ms = record.set_overhead(clock.now())
    request_id = record.request_id.encode()
    fields = [
        (b"x-request-id", request_id),
        (b"x-kinference-overhead-ms", b"%.3f" % overhead_ms),
    ]
    if dialect is _ANTHROPIC:
        fields.append((b"request-id", request_id))
    if record.endpoint:
        fields.append((b"x-kinference-endpoint", record.endpoint.encode()))
    if record.upstream_id:
        fields.append((b"x-kinference-upstream-request-id", record.upstream_id.encode()))
    if picked is not None and (picked.requests is not None or picked.tokens is not None):
        fields += rate_limit_fields(picked, dialect, clock.wall())
    return fields
