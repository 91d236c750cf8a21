"""What an error says that a destination sends where its answer should be, and the HTTP status that it stands for."""

from collections.abc import Mapping
from typing import Final

from kinference.shapes.answers import Failed
from kinference.shapes.ir import Json

UNKNOWN: Final = 500
"""The status of an error that tells no more than that it is one."""

_STATUSES: Final[Mapping[str, int]] = {
    # OpenAI's types, and what engines call the same
    "invalid_request_error": 400,
    "BadRequestError": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "NotFoundError": 404,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "server_error": 500,
    "InternalServerError": 500,
    # Anthropic's
    "billing_error": 402,
    "timeout_error": 504,
    "request_too_large": 413,
    "api_error": 500,
    "overloaded_error": 529,
    # Google's
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
_ERRORS: Final = range(400, 600)


def failure_of(error: Json) -> Failed:
    """What an error says: its own status where it gives one, else that of its type or code."""
    kind = _text(error, "type") or _text(error, "status")
    code = error.get("code")
    if isinstance(code, int) and code in _ERRORS:
        status = code
    else:
        status = _STATUSES.get(kind) or _STATUSES.get(str(code), UNKNOWN)
    return Failed(_text(error, "message") or "the destination reported an error", kind, status)


def _text(members: Json, name: str) -> str:
    value = members.get(name)
    return value if isinstance(value, str) else ""
