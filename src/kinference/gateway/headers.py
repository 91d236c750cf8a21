"""Which header fields cross the gateway, in each direction."""

import re
from typing import Final

from kinference.gateway.auth import CREDENTIAL_FIELDS
from kinference.ports import Headers
from kinference.wire.fields import Table, header

_HOP_BY_HOP: Final = frozenset(
    {b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"proxy-connection"}
)
_OURS: Final = frozenset(
    {b"host", b"content-length", b"accept-encoding", b"expect", b"x-request-id", b"via", b"forwarded"}
)
_SECRET: Final = frozenset(
    {b"authorization", b"cookie", b"proxy-authorization", b"proxy-authenticate", *CREDENTIAL_FIELDS}
)
_NEVER_TO_ENGINES: Final = _HOP_BY_HOP | _OURS | _SECRET
_NEVER_PREFIXES: Final[tuple[bytes, ...]] = (b"x-forwarded-", b"x-kinference-")

_TO_PROVIDERS: Final = frozenset(
    {
        b"accept",
        b"anthropic-beta",
        b"anthropic-version",
        b"baggage",
        b"content-type",
        b"idempotency-key",
        b"traceparent",
        b"tracestate",
        b"user-agent",
    }
)
_TO_CLIENTS: Final = frozenset(
    {
        b"content-encoding",
        b"content-language",
        b"content-type",
        b"openai-processing-ms",
        b"retry-after",
        b"retry-after-ms",
        b"x-should-retry",
    }
)

_JSON: Final = b"application/json"
"""What most answers are: no stream, as need not be found out."""
_EVENTS: Final = b"text/event-stream"
_STREAMS: Final[tuple[bytes, ...]] = (_EVENTS, b"application/vnd.amazon.eventstream")
_UPSTREAM_IDS: Final = frozenset({b"x-request-id", b"request-id", b"x-amzn-requestid", b"apim-request-id"})
_REQUEST_ID: Final = re.compile(rb"[!-~]{1,256}")


def _own(request_id: str) -> Headers:
    # identity, because usage is read from the answer as it passes by
    return ((b"x-request-id", request_id.encode()), (b"accept-encoding", b"identity"))


def to_engine(received: Headers, request_id: str) -> Headers:
    """Everything an engine of ours may see: all but hop-by-hop fields, credentials and cookies."""
    kept, connection = [], []
    for field in received:
        name = field[0]
        if name not in _NEVER_TO_ENGINES:
            if not name.startswith(_NEVER_PREFIXES):
                kept.append(field)
        elif name == b"connection":
            connection.append(field[1])
    if connection:
        named = {token.strip().lower() for token in b",".join(connection).split(b",")}
        kept = [field for field in kept if field[0] not in named]
    return (*kept, *_own(request_id))


def to_provider(received: Headers, request_id: str) -> Headers:
    """What a provider may see: a short list, because what it learns it keeps."""
    kept = [(name, value) for name, value in received if name in _TO_PROVIDERS]
    return (*kept, *_own(request_id))


def without_anthropic(received: Headers) -> Headers:
    """The fields without those that mean something to Anthropic's API alone."""
    return [(name, value) for name, value in received if not name.startswith(b"anthropic-")]


def without_betas(received: Headers) -> Headers:
    """The fields without Anthropic's betas, of which Vertex AI refuses all that it does not know."""
    return [field for field in received if field[0] != b"anthropic-beta"]


def to_client(received: Headers) -> Headers:
    """What a client may see of a destination's answer: a short list, so that no inside name leaks."""
    return [field for field in received if field[0] in _TO_CLIENTS]


def upstream_id_of(received: Headers) -> str:
    """What a provider calls the request; "" where it tells no id, or something that is none."""
    for name, value in received:
        if name in _UPSTREAM_IDS and _REQUEST_ID.fullmatch(value):
            return value.decode("ascii")
    return ""


def request_id_of(received: Table) -> str | None:
    """The client's own request id, if it is one: visible ASCII of a sane length."""
    value = received.get(b"x-request-id")
    return value.decode("ascii") if value is not None and _REQUEST_ID.fullmatch(value) else None


def is_event_stream(kind: bytes | None) -> bool:
    """Whether an answer of this `content-type` is a stream of server-sent events."""
    return kind is not None and kind != _JSON and kind.lower().startswith(_EVENTS)


def is_stream(kind: bytes | None) -> bool:
    """Whether one comes in events, of text or of AWS's binary framing."""
    return kind is not None and kind != _JSON and kind.lower().startswith(_STREAMS)


def content_length(received: Headers) -> int | None:
    """The declared length of a body; None when absent or not a number."""
    value = header(received, b"content-length")
    return int(value) if value is not None and value.isdigit() else None
