"""What is sent to an endpoint to see whether it serves, and what its answer means."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import msgspec

BUDGET = 32
"""Tokens: some models refuse to answer within less."""

_PING = {"messages": [{"role": "user", "content": "ping"}]}
_AUTH_STATUSES = (401, 403)
_SHAPE_STATUSES = (400, 404, 405, 422)
_AUTH_PHRASES = (
    *("invalid_api_key", "incorrect api key", "authentication_error", "unauthorized"),
    *("permission_denied", "missing api key", "invalid api key"),
)
DETAIL_CHARS_MAX = 200


@dataclass(frozen=True, slots=True)
class Probe:
    """One request: where, and the body without its model."""

    protocol: str
    path: str
    body: Mapping[str, object]


PROBES = (
    Probe("openai_chat_completions", "/v1/chat/completions", {**_PING, "max_completion_tokens": BUDGET}),
    Probe("anthropic_messages", "/v1/messages", {**_PING, "max_tokens": BUDGET}),
    Probe("openai_responses", "/v1/responses", {"input": "ping", "max_output_tokens": BUDGET}),
    Probe("openai_completions", "/v1/completions", {"prompt": "ping", "max_tokens": BUDGET}),
    Probe("openai_embeddings", "/v1/embeddings", {"input": "ping"}),
)
"""In the order in which they are tried."""

OLDER_CHAT = Probe("openai_chat_completions", "/v1/chat/completions", {**_PING, "max_tokens": BUDGET})
"""For endpoints that do not know `max_completion_tokens`."""


class Verdict(Enum):
    """What an answer says of the endpoint; the value tells what to do next."""

    OK = ""
    CREDENTIALS = "check that the API key and the auth headers are right"
    REQUEST_SHAPE = "check the provider's type, its base URL and the model"
    RATE_LIMITED = "retry later, or look at the provider's quota"
    UPSTREAM_HEALTH = "check the health of the endpoint"
    CONNECTIVITY = "check that the service is up, and the URL, the protocol and the credentials"
    UNEXPECTED = "check the URL, the protocol, the credentials and the model"


def judge(status: int, body: bytes) -> Verdict:
    """What an answer means."""
    if 200 <= status < 300:  # noqa: PLR2004 - HTTP's own classes
        return Verdict.OK
    if status in _AUTH_STATUSES:
        return Verdict.CREDENTIALS
    if status in _SHAPE_STATUSES:
        text = body.decode(errors="replace").lower()
        names_credentials = status != 405 and any(phrase in text for phrase in _AUTH_PHRASES)  # noqa: PLR2004
        return Verdict.CREDENTIALS if names_credentials else Verdict.REQUEST_SHAPE
    if status == 429:  # noqa: PLR2004 - too many requests
        return Verdict.RATE_LIMITED
    return Verdict.UPSTREAM_HEALTH if 500 <= status < 600 else Verdict.UNEXPECTED  # noqa: PLR2004 - HTTP's own classes


def wants_older_budget(probe: Probe, body: bytes) -> bool:
    """Whether a refused chat probe is worth another try with `max_tokens`."""
    return "max_completion_tokens" in probe.body and b"max_completion_tokens" in body


def payload(probe: Probe, model: str | None) -> bytes:
    """The body; `model` None for APIs that have it in the path."""
    if model is not None:
        return json.dumps({**probe.body, "model": model}).encode()
    version = {"anthropic_version": "vertex-2023-10-16"} if probe.protocol == "anthropic_messages" else {}
    return json.dumps({**probe.body, **version}).encode()


def told(status: int, body: bytes, secret: str) -> str:
    """What may be repeated of a refusal: its status, and the error's own message where it is an API's error.

    Anything else stays untold: whoever may set a route must not read arbitrary pages through us.
    """
    message = _error_message(body)
    if not message:
        return f"HTTP {status}"
    if secret.strip():
        message = message.replace(secret.strip(), "[redacted]")
    visible = "".join(char if char.isprintable() else " " for char in message)
    return f"HTTP {status}: {visible[:DETAIL_CHARS_MAX]}"


def _error_message(body: bytes) -> str:
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return ""
    error = answer.get("error") if isinstance(answer, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else ""
