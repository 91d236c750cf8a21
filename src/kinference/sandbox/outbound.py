"""From a program's request to the one that leaves the sandbox: URL, header fields and body."""

import re
from urllib.parse import quote, urlsplit

import msgspec

from kinference.control.provider_types import Auth, Family
from kinference.control.urls import route_url
from kinference.ports import Headers, UpstreamRequest, UpstreamTimeouts
from kinference.sandbox.routes import SandboxRoute
from kinference.shapes.patch import replace_model
from kinference.shapes.scan import BadBody, members
from kinference.wire.exchange import Exchange
from kinference.wire.fields import header

ALWAYS = frozenset({b"content-type", b"accept", b"accept-encoding", b"user-agent"})
PASSED = {
    "openai": frozenset({b"openai-organization", b"openai-project", b"x-model-id"}),
    "anthropic": frozenset({b"anthropic-version", b"anthropic-beta"}),
    "nvidia": frozenset({b"x-model-id"}),
    "deepinfra": frozenset({b"x-model-id"}),
}
"""Fields of a program that a type of provider may see beside those that all may."""

VERTEX_VERSION = "vertex-2023-10-16"
RAW, STREAMED_RAW = ":rawPredict", ":streamRawPredict"
TIMEOUT_DEFAULT = 60
CONNECT_SECONDS = 30.0
IDLE_SECONDS = 120.0
DAY = 86_400.0
"""Long enough for any prompt: a streamed answer may begin as late as it likes."""


def outbound(exchange: Exchange, body: bytes, route: SandboxRoute, *, is_buffered: bool) -> UpstreamRequest:
    """The request to send. Raises ValueError when the route's URL cannot be called."""
    parts = urlsplit(_url(exchange.path, body, route))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(parts.scheme)
    seconds = float(route.timeout_secs or TIMEOUT_DEFAULT)
    first_byte, between = (seconds, seconds) if is_buffered else (DAY, IDLE_SECONDS)
    return UpstreamRequest(
        exchange.method.upper(),
        f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}",
        f"{parts.path}?{exchange.query}" if exchange.query else parts.path,
        _headers(exchange.headers, route),
        (pinned(body, route),) if body else (),
        UpstreamTimeouts(CONNECT_SECONDS, first_byte, between),
    )


def _url(path: str, body: bytes, route: SandboxRoute) -> str:
    if route.kind.family is Family.BEDROCK:
        path = re.sub(r"^/model/[^/]+/", f"/model/{quote(route.model_id, safe=':')}/", path)
    override = route.path_override
    if override == RAW and _streams(body):
        override = STREAMED_RAW
    return route_url(route.base_url, path, route.model_id if route.model_in_path else None, override)


def _streams(body: bytes) -> bool:
    try:
        return any(each.key == "stream" and body[each.start : each.end] == b"true" for each in members(body))
    except BadBody:
        return False


def _headers(received: Headers, route: SandboxRoute) -> Headers:
    """What is allowed, then our credential, then what the type adds where the program said nothing."""
    kind = route.kind
    allowed = ALWAYS | PASSED.get(kind.name, frozenset())
    fields = [(name, value) for name, value in received if name in allowed]
    key = route.api_key.strip().encode()
    if kind.auth is Auth.BEARER and key:
        fields.append((b"authorization", b"Bearer " + key))
    elif kind.auth is Auth.API_KEY_HEADER:
        fields.append((b"x-api-key", key))
    for name, value in kind.default_headers:
        if header(received, name.encode()) is None:
            fields.append((name.encode(), value.encode()))
    return tuple(fields)


def pinned(body: bytes, route: SandboxRoute) -> bytes:
    """The body with the route's model in the place of its own; what is no JSON object stays as it is."""
    if route.kind.family is Family.BEDROCK:
        return body
    try:
        found = list(members(body))
        if route.model_in_path:
            return _for_vertex(body)
        if any(member.key == "model" for member in found):
            return replace_model(body, route.model_id)
    except BadBody:
        return body
    brace = body.index(b"{") + 1
    return body[:brace] + b'"model":' + msgspec.json.encode(route.model_id) + (b"," if found else b"") + body[brace:]


def _for_vertex(body: bytes) -> bytes:
    """Vertex AI has the model in the path, asks for a version in the body, and refuses what it does not know."""
    try:
        asked: dict[str, msgspec.Raw] = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError as error:
        raise BadBody(str(error)) from None
    kept = {key: value for key, value in asked.items() if key not in ("model", "context_management")}
    version = msgspec.Raw(msgspec.json.encode(VERTEX_VERSION))
    return msgspec.json.encode({"anthropic_version": version, **kept})
