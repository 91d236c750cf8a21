"""What is left of a tenant's limits, in the header fields that the vendors' clients know."""

from collections.abc import Iterator
from datetime import UTC, datetime

from kinference.gateway.routes import Dialect
from kinference.ids import Seconds
from kinference.ports import Allowance, Headers, PickResult


def rate_limit_fields(picked: PickResult, dialect: Dialect, wall: Seconds) -> Headers:
    """The fields; none for a tenant without limits, and none in a dialect that has no name for them."""
    fields: list[tuple[bytes, bytes]] = []
    for unit, allowance in ((b"requests", picked.requests), (b"tokens", picked.tokens)):
        if allowance is None or dialect is Dialect.GEMINI:
            continue
        fields += _anthropic(unit, allowance, wall) if dialect is Dialect.ANTHROPIC else _openai(unit, allowance)
    return fields


def _openai(unit: bytes, allowance: Allowance) -> Iterator[tuple[bytes, bytes]]:
    yield b"x-ratelimit-limit-" + unit, str(allowance.limit).encode()
    yield b"x-ratelimit-remaining-" + unit, str(allowance.remaining).encode()
    yield b"x-ratelimit-reset-" + unit, _duration(allowance.full_in).encode()


def _anthropic(unit: bytes, allowance: Allowance, wall: Seconds) -> Iterator[tuple[bytes, bytes]]:
    prefix = b"anthropic-ratelimit-" + unit
    full_at = datetime.fromtimestamp(wall + allowance.full_in, UTC).isoformat(timespec="seconds")
    yield prefix + b"-limit", str(allowance.limit).encode()
    yield prefix + b"-remaining", str(allowance.remaining).encode()
    yield prefix + b"-reset", full_at.replace("+00:00", "Z").encode()


def _duration(seconds: Seconds) -> str:
    """As OpenAI writes it: `120ms`, `1.5s`, `6m0s`."""
    if seconds < 1.0:
        return f"{max(seconds, 0.0) * 1000:.0f}ms"
    minutes, rest = divmod(seconds, 60.0)
    return f"{minutes:.0f}m{rest:.0f}s" if minutes else f"{rest:.3f}".rstrip("0").rstrip(".") + "s"
