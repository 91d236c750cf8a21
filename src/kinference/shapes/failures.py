"""What an error says that a destination sends where its answer should be, the HTTP status that it stands for, and what
each API's clients call an error of that status.
"""

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
_SERVERS: Final = 500

_OPENAI_TYPES: Final[Mapping[int, str]] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout",
    409: "conflict",
    429: "rate_limit_error",
    504: "timeout",
}
_OPENAI_CODES: Final[Mapping[int, str]] = {429: "rate_limit_exceeded", 503: "overloaded", 529: "overloaded"}
_MESSAGES_TYPES: Final[Mapping[int, str]] = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_GEMINI_STATUSES: Final[Mapping[int, str]] = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
    529: "UNAVAILABLE",
}


def openai_type(status: int) -> str:
    """What clients of OpenAI's APIs call it: one of few words, whoever failed."""
    return _OPENAI_TYPES.get(status) or ("invalid_request_error" if status < _SERVERS else "server_error")


def openai_code(status: int) -> str | None:
    """The code beside it, of those that clients look for."""
    return _OPENAI_CODES.get(status)


def messages_type(status: int) -> str:
    """What Anthropic's clients call it."""
    return _MESSAGES_TYPES.get(status) or ("invalid_request_error" if status < _SERVERS else "api_error")


def gemini_status(status: int) -> str:
    """What Google's clients call it."""
    return _GEMINI_STATUSES.get(status) or ("INVALID_ARGUMENT" if status < _SERVERS else "INTERNAL")


def failure_of(error: Json) -> Failed:
    """What an error says: its own status where it gives one, else that of its type or code."""
    kind = _text(error, "type") or _text(error, "status")
    code = error.get("code")
    if isinstance(code, int) and code in _ERRORS:
        status = code
    else:
        status = _STATUSES.get(kind) or _STATUSES.get(str(code), UNKNOWN)
    return Failed(_text(error, "message") or "the destination reported an error", kind, status)


def unlisted(body: object) -> object:
    """What came, out of the list that Google wraps errors in."""
    return body[0] if isinstance(body, list) and body and isinstance(body[0], dict) and "error" in body[0] else body


def failure_in(body: Json) -> Failed:
    """The same of all that came: servers have it in `error`, as the text of that, or beside nothing else."""
    error = body.get("error")
    if isinstance(error, dict):
        return failure_of(error)
    if isinstance(error, str) and error:
        return failure_of({"message": error, "type": body.get("error_type"), "code": body.get("code")})
    return failure_of({"message": body.get("detail")} | body)


def _text(members: Json, name: str) -> str:
    value = members.get(name)
    return value if isinstance(value, str) else ""
