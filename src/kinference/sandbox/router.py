"""Answers the requests for `inference.local`: which route, what leaves, and what comes back.

What a program is told when something fails names no host, path, protocol or route: sandboxes are not trusted.
"""

import logging
from collections.abc import AsyncIterator

import msgspec

from kinference.errors import ClientGone, UpstreamCut, UpstreamTimeout, UpstreamUnreachable
from kinference.ports import Headers, Upstream, UpstreamAnswer
from kinference.sandbox.authority import HOST
from kinference.sandbox.mock import mock_answer
from kinference.sandbox.outbound import outbound
from kinference.sandbox.patterns import Pattern, pattern_of
from kinference.sandbox.routes import RouteTable, SandboxRoute
from kinference.wire.exchange import Exchange, respond
from kinference.wire.fields import header
from kinference.wire.strangers import OwnNames, is_of_a_strange_page

BODY_BYTES_MAX = 32 * 1024 * 1024
ANSWER_BYTES_MAX = 32 * 1024 * 1024
"""Of a buffered answer; a streamed one is as long as it likes."""
MOCK_SCHEME = "mock://"
_JSON = b"application/json"
_DROPPED = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te"),
        *(b"trailer", b"transfer-encoding", b"upgrade", b"content-length", b"date"),
    }
)

_log = logging.getLogger(__name__)


class TooLarge(Exception):
    """A body that is longer than it may be."""


class SandboxRouter:
    """The handler of every request, whichever way it came in."""

    def __init__(self, table: RouteTable, upstream: Upstream) -> None:
        self._table, self._upstream, self._names = table, upstream, OwnNames([HOST])

    async def handle(self, exchange: Exchange) -> None:
        """Answer one request."""
        pattern = pattern_of(exchange.method, exchange.path)
        if pattern is None or is_of_a_strange_page(exchange.method, exchange.headers, self._names):
            refusal = msgspec.json.encode({"error": "connection not allowed by policy"})
            await respond(exchange, 403, refusal, _JSON, (b"connection", b"close"))
        elif self._table.is_empty:
            hint = "run: kinference route set --help"
            await _refuse(exchange, 503, "cluster inference is not configured", hint)
        elif (route := self._table.serving(pattern.protocol)) is None:
            await _refuse(exchange, 400, "no compatible inference route available")
        else:
            await self._serve(exchange, pattern, route)

    async def _serve(self, exchange: Exchange, pattern: Pattern, route: SandboxRoute) -> None:
        try:
            body = await _whole(exchange.body(), BODY_BYTES_MAX)
        except TooLarge:
            await _refuse(exchange, 413, "request body too large")
            return
        if route.base_url.startswith(MOCK_SCHEME):
            answer = mock_answer(pattern.protocol, route.model_id)
            await respond(exchange, 200, answer, _JSON, (b"x-openshell-mock", b"true"))
            return
        try:
            request = outbound(exchange, body, route, is_buffered=pattern.is_buffered)
            answer_begun = await self._upstream.send(request)
        except (UpstreamUnreachable, UpstreamTimeout) as error:
            _log.warning("no answer: %s", error, extra={"route": route.name})
            await _refuse(exchange, 503, "inference service unavailable")
        except (UpstreamCut, ValueError) as error:
            _log.warning("no usable answer: %s", error, extra={"route": route.name})
            await _refuse(exchange, 502, "inference service error")
        else:
            try:
                await (_relay_whole if pattern.is_buffered else _relay_stream)(exchange, answer_begun)
            finally:
                await answer_begun.close()


async def _relay_whole(exchange: Exchange, answer: UpstreamAnswer) -> None:
    try:
        content = await _whole(answer.chunks(), ANSWER_BYTES_MAX)
    except UpstreamTimeout:
        await _refuse(exchange, 503, "inference service unavailable")
    except (TooLarge, UpstreamCut):
        await _refuse(exchange, 502, "inference service error")
    else:
        length = (b"content-length", str(len(content)).encode())
        await exchange.start(answer.status, (*_kept(answer.headers), length))
        if content:
            await exchange.write(content)
        await exchange.finish()


async def _relay_stream(exchange: Exchange, answer: UpstreamAnswer) -> None:
    """Chunk by chunk. A stream of events that breaks off says so in its last event; any other is broken off too."""
    await exchange.start(answer.status, _kept(answer.headers))
    try:
        async for chunk in answer.chunks():
            await exchange.write(chunk)
    except (UpstreamCut, UpstreamTimeout) as error:
        if b"text/event-stream" not in (header(answer.headers, b"content-type") or b"").lower():
            exchange.abort()
            return
        why = "chunk idle timeout exceeded" if isinstance(error, UpstreamTimeout) else "upstream read error"
        told = msgspec.json.encode({"error": {"message": why, "type": "proxy_stream_error"}})
        await exchange.write(b"\n\ndata: " + told + b"\n\n")
    except ClientGone:
        return
    await exchange.finish()


async def _whole(chunks: AsyncIterator[bytes], bytes_max: int) -> bytes:
    """Raises TooLarge."""
    pieces, size = [], 0
    async for chunk in chunks:
        size += len(chunk)
        if size > bytes_max:
            raise TooLarge
        pieces.append(chunk)
    return b"".join(pieces)


def _kept(headers: Headers) -> Headers:
    return tuple((name, value) for name, value in headers if name not in _DROPPED)


async def _refuse(exchange: Exchange, status: int, error: str, hint: str = "") -> None:
    told = {"error": error, "hint": hint} if hint else {"error": error}
    await respond(exchange, status, msgspec.json.encode(told), _JSON)
