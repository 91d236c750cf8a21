"""The one table from failures to HTTP: status, type and code, and the bodies in each dialect."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from kinference import errors
from kinference.gateway.routes import Dialect
from kinference.ids import Seconds
from kinference.ports import Headers, PickResult
from kinference.shapes.failures import gemini_status, messages_type, openai_type
from kinference.vocabulary import Outcome

RETRY_AFTER_S = 1.0
"""What a client is asked to wait when we are out of capacity and nobody told us for how long."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of failure as HTTP has it; the Anthropic type follows from the status."""

    status: int
    type: str
    code: str | None = None
    retriable: bool = False
    """Worth a `retry-after`: the same request may do later."""


BAD_REQUEST = Fault(400, "invalid_request_error")
UNAUTHENTICATED = Fault(401, "authentication_error", "invalid_api_key")
FORBIDDEN = Fault(403, "permission_error")
NOT_FOUND = Fault(404, "not_found_error")
TOO_LONG = Fault(400, "invalid_request_error", "context_length_exceeded")
UNABLE = Fault(400, "invalid_request_error", "unsupported_capability")
WRONG_API = Fault(400, "invalid_request_error", "unsupported_api")
UNKNOWN_MODEL = Fault(404, "not_found_error", "model_not_found")
METHOD_NOT_ALLOWED = Fault(405, "invalid_request_error", "method_not_allowed")
TIMEOUT = Fault(408, "timeout")
TOO_LARGE = Fault(413, "invalid_request_error", "request_too_large")
COMPRESSED = Fault(415, "invalid_request_error", "unsupported_content_encoding")
RATE_LIMITED = Fault(429, "rate_limit_error", "rate_limit_exceeded", retriable=True)
BUDGET_SPENT = Fault(429, "insufficient_quota", "insufficient_quota", retriable=True)
INTERNAL = Fault(500, "server_error", "internal_error")
UPSTREAM_AUTH = Fault(502, "server_error", "upstream_auth_error")
UPSTREAM_ACCOUNT = Fault(502, "server_error", "upstream_account_error")
UPSTREAM_BROKEN = Fault(502, "server_error", "upstream_error")
EMPTY_ANSWER = Fault(502, "server_error", "empty_upstream_response")
OVERLOADED = Fault(503, "server_error", "overloaded", retriable=True)
UPSTREAM_SLOW = Fault(504, "timeout", "upstream_timeout")

OF_ERROR: Mapping[type[errors.KinferenceError], Fault] = {
    errors.KinferenceError: INTERNAL,
    errors.InvalidArgument: INTERNAL,  # our own call to the picker broke its contract
    errors.UnknownId: OVERLOADED,  # the body or ticket was reclaimed under us: nothing was served
    errors.BodyConsumed: INTERNAL,
    errors.BudgetExceeded: TOO_LARGE,
    errors.IdleTimeout: TIMEOUT,
    errors.Draining: OVERLOADED,
    errors.ClientGone: Fault(499, "server_error", "client_closed"),  # for the log: nobody is there to read it
    errors.PickerUnreachable: OVERLOADED,
    errors.UpstreamUnreachable: UPSTREAM_BROKEN,
    errors.NoConnectionLeft: OVERLOADED,
    errors.UpstreamTimeout: UPSTREAM_SLOW,
    errors.UpstreamCut: UPSTREAM_BROKEN,
    errors.ConfigError: INTERNAL,
    errors.RetryLater: OVERLOADED,
}
"""By exact class; a test holds it against every subclass."""

_POLICY: tuple[tuple[str, Fault], ...] = (
    ("quota: budget:", BUDGET_SPENT),
    ("quota:", RATE_LIMITED),
    ("saturated:", RATE_LIMITED),
    ("policy:", FORBIDDEN),
)

_HOPELESS: tuple[tuple[str, Fault], ...] = (("context:", TOO_LONG), ("api:", WRONG_API), ("needs:", UNABLE))
"""Refusals that waiting does not mend, so that no client is told to try again."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error of our own, ready to be written in any dialect."""

    fault: Fault
    message: str
    retry_after: Seconds | None = None


def refusal_of(error: errors.KinferenceError) -> Refusal:
    """What a failure means to the client."""
    retry_after = error.retry_after if isinstance(error, errors.RetryLater) else None
    return Refusal(OF_ERROR.get(type(error), INTERNAL), str(error), retry_after)


def refusal_of_pick(picked: PickResult, *, model_known: bool) -> Refusal:
    """What a pick without a destination means to the client."""
    match picked.outcome:
        case Outcome.BAD_REQUEST:
            return Refusal(BAD_REQUEST, picked.reason)
        case Outcome.POLICY_REJECTED:
            fault = next((fault for prefix, fault in _POLICY if picked.reason.startswith(prefix)), FORBIDDEN)
            return Refusal(fault, picked.reason, picked.retry_after)
        case Outcome.NO_WORKERS if not model_known:
            return Refusal(UNKNOWN_MODEL, f"The model `{picked.requested_model}` does not exist. {picked.reason}")
        case Outcome.NO_WORKERS:
            fault = next((fault for prefix, fault in _HOPELESS if picked.reason.startswith(prefix)), OVERLOADED)
            return Refusal(fault, picked.reason, picked.retry_after)
        case _:
            return Refusal(INTERNAL, "the picker answered without a destination")


def of_status(status: int) -> Fault:
    """The fault behind a status that a destination answered without a body worth relaying."""
    for fault in (BAD_REQUEST, FORBIDDEN, NOT_FOUND, TIMEOUT, TOO_LARGE, RATE_LIMITED, OVERLOADED, UPSTREAM_SLOW):
        if fault.status == status:
            return fault
    return Fault(status, openai_type(status))


def body(refusal: Refusal, dialect: Dialect, request_id: str) -> bytes:
    """The error body as the client's SDK reads it."""
    fault = refusal.fault
    if dialect is Dialect.ANTHROPIC:
        kind = messages_type(fault.status)
        error = {"type": kind, "message": refusal.message}
        return msgspec.json.encode({"type": "error", "error": error, "request_id": request_id})
    if dialect is Dialect.GEMINI:
        status = gemini_status(fault.status)
        return msgspec.json.encode({"error": {"code": fault.status, "message": refusal.message, "status": status}})
    return msgspec.json.encode(
        {"error": {"message": refusal.message, "type": fault.type, "param": None, "code": fault.code}}
    )


SHOULD_RETRY: Final = b"x-should-retry"
_RETRIED: Final = frozenset({408, 409, 429})
"""What the vendors' clients try again below 500."""


def is_tried_out(status: int, attempts: int) -> bool:
    """Whether clients are to be told not to try again what they would: it was tried elsewhere already, and each of
    their attempts would be as many of ours.
    """
    return attempts > 1 and (status in _RETRIED or status >= INTERNAL.status)


def headers(refusal: Refusal) -> Headers:
    """The headers that belong to the fault itself."""
    if not refusal.fault.retriable:
        return ()
    seconds = RETRY_AFTER_S if refusal.retry_after is None else max(refusal.retry_after, 0.0)
    return ((b"retry-after", str(math.ceil(seconds)).encode()),)
