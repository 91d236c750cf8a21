"""What requests have in common that change something: who sent them, their body, and how a refusal is told."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import parse_qs

import msgspec

from kinference.control.errors import Missing, Overtaken, StoreFailed, Taken, Unmet
from kinference.errors import InvalidArgument, KinferenceError
from kinference.wire.exchange import Exchange, respond
from kinference.wire.fields import header

BODY_BYTES_MAX = 1024 * 1024
ACTOR_CHARS_MAX = 128
QUERY_FIELDS_MAX = 16
_JSON = b"application/json"

STATUS: Mapping[type[KinferenceError], tuple[int, str]] = {
    InvalidArgument: (400, "INVALID_ARGUMENT"),
    Unmet: (400, "FAILED_PRECONDITION"),
    Missing: (404, "NOT_FOUND"),
    Taken: (409, "ALREADY_EXISTS"),
    Overtaken: (409, "ABORTED"),
    StoreFailed: (500, "INTERNAL"),
}
"""Every failure, with the name that the gRPC interface has for it."""

Asked = TypeVar("Asked", bound=msgspec.Struct)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Request:
    """An exchange, and who is behind it, for the audit log."""

    exchange: Exchange
    actor: str


async def answer(exchange: Exchange, asker: str, work: Callable[[Request], Awaitable[object]]) -> None:
    """Answer with the JSON of what the work comes to, refusals too. `asker` is who showed a token, "" for nobody."""
    try:
        status, told = 200, await work(Request(exchange, _actor(exchange, asker)))
    except KinferenceError as error:
        if type(error) not in STATUS:
            raise
        status, told = _refusal(error)
    await respond(exchange, status, msgspec.json.encode(told) + b"\n", _JSON)


async def body(exchange: Exchange, kind: type[Asked]) -> Asked:
    """The request's JSON. Only that type is taken: no web page may send it across sites without asking first."""
    content_type = (header(exchange.headers, b"content-type") or b"").partition(b";")[0].strip().lower()
    if content_type != _JSON:
        raise InvalidArgument("the body must be application/json")
    content = b""
    async for chunk in exchange.body():
        content += chunk
        if len(content) > BODY_BYTES_MAX:
            raise InvalidArgument(f"the body is over {BODY_BYTES_MAX} bytes")
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidArgument(f"the body is not understood: {error}") from None


def asked(query: str, *, keeps_empty: bool = False) -> Mapping[str, Sequence[str]]:
    """The fields of a query, each with its values. Raises InvalidArgument for more than anything here has."""
    try:
        return parse_qs(query, keep_blank_values=keeps_empty, max_num_fields=QUERY_FIELDS_MAX)
    except ValueError:
        raise InvalidArgument(f"the query has more than {QUERY_FIELDS_MAX} fields") from None


def _refusal(error: KinferenceError) -> tuple[int, object]:
    status, code = STATUS[type(error)]
    if isinstance(error, StoreFailed):
        _log.error("the store failed a request: %s", error)
    return status, {"error": {"code": code, "message": str(error)}}


def _actor(exchange: Exchange, asker: str) -> str:
    """Who asks, as far as the request tells."""
    agent = (header(exchange.headers, b"user-agent") or b"").decode("latin-1")[:ACTOR_CHARS_MAX]
    return " ".join(part for part in ("admin", asker, exchange.peer, agent) if part).rstrip()
