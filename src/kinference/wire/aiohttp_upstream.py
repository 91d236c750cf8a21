"""The HTTP client carrier on aiohttp: `ports.Upstream` over a pool of keep-alive connections."""

import ssl
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace, TracebackType
from typing import Self

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.http import HttpProcessingError
from multidict import CIMultiDict
from yarl import URL

from kinference.errors import NoConnectionLeft, UpstreamCut, UpstreamTimeout, UpstreamUnreachable
from kinference.ids import Seconds
from kinference.ports import Headers, Upstream, UpstreamAnswer, UpstreamRequest
from kinference.wire.connections import EXHAUSTED
from kinference.wire.patience import Patience
from kinference.wire.trust import Trust, why

_IDLE_MAX: Seconds = 4.0
"""Below the 5 s after which common engines close an idle connection: reusing one as it closes costs a retry."""
_FIELD_BYTES_MAX = 64 * 1024
_JOIN_BYTES_MAX = 64 * 1024
"""Bodies up to here leave in one write with the head; larger ones are not copied."""
_OURS = frozenset({b"content-length", b"transfer-encoding", b"connection"})
_NEVER_ADDED = ("user-agent", "accept", "accept-encoding", "content-type")


class AiohttpUpstream(Upstream):
    """HTTP connections to destinations. Made inside a running event loop; closed by leaving its context."""

    def __init__(self, resolver: AbstractResolver | None = None) -> None:
        """`resolver` finds the addresses of names, in place of the system's own."""
        self._pooled = _session(resolver, reuse=True)
        self._fresh = _session(resolver, reuse=False)
        self._trust = Trust()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        await self._pooled.close()
        await self._fresh.close()

    async def send(self, request: UpstreamRequest) -> UpstreamAnswer:
        timeouts = request.timeouts
        try:
            async with Patience(timeouts.connect + timeouts.first_byte):
                response = await self._send_retrying_stale(request)
        except TimeoutError:
            raise UpstreamTimeout(f"{request.origin} sent nothing for {timeouts.first_byte:g} s") from None
        return _AiohttpAnswer(response, request)

    async def _send_retrying_stale(self, request: UpstreamRequest) -> aiohttp.ClientResponse:
        """Send again, once, when a kept connection turns out to have been closed at the far end meanwhile."""
        attempt = _Attempt()
        try:
            return await self._send(self._pooled, request, attempt)
        except UpstreamUnreachable:
            if not attempt.reused:
                raise
        return await self._send(self._fresh, request, _Attempt())

    async def _send(
        self, session: aiohttp.ClientSession, request: UpstreamRequest, attempt: "_Attempt"
    ) -> aiohttp.ClientResponse:
        tls = self._trust.context if request.origin.startswith("https:") else True
        return await _send(session, request, attempt, tls)


@dataclass(slots=True)
class _Attempt:
    """What the library's trace told of one attempt."""

    reused: bool = False


class _AiohttpAnswer(UpstreamAnswer):
    def __init__(self, response: aiohttp.ClientResponse, request: UpstreamRequest) -> None:
        self._response = response
        self._origin, self._patience = request.origin, request.timeouts.between_chunks
        self._headers: Headers = tuple((name.lower(), value) for name, value in response.raw_headers)

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Headers:
        return self._headers

    @property
    def is_ready(self) -> bool:
        return False  # the library does not tell

    def chunks(self) -> AsyncIterator[bytes]:
        return self  # which goes on where it was, asked twice

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        content = self._response.content
        try:
            async with Patience(self._patience):
                chunk = await content.readany()
        except TimeoutError:
            raise UpstreamTimeout(f"{self._origin} fell silent for {self._patience:g} s mid-answer") from None
        except (aiohttp.ClientError, HttpProcessingError, OSError):
            # What had arrived before the break is still the client's; the public reads only raise, and do so again.
            if rest := content._read_nowait(-1):  # noqa: SLF001 - as said above
                return rest
            raise UpstreamCut(f"{self._origin} broke its answer off") from None
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def close(self) -> None:
        self._response.close()


def _session(resolver: AbstractResolver | None, *, reuse: bool) -> aiohttp.ClientSession:
    connector = (
        aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_MAX, resolver=resolver)
        if reuse
        else aiohttp.TCPConnector(limit=0, force_close=True, resolver=resolver)
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        skip_auto_headers=_NEVER_ADDED,
        max_line_size=_FIELD_BYTES_MAX,
        max_field_size=_FIELD_BYTES_MAX,
        trace_configs=[_reuse_trace()],
    )


def _reuse_trace() -> aiohttp.TraceConfig:
    async def mark(_session: object, context: SimpleNamespace, _params: object) -> None:
        context.trace_request_ctx.reused = True

    trace = aiohttp.TraceConfig()
    trace.on_connection_reuseconn.append(mark)
    return trace


async def _send(
    session: aiohttp.ClientSession, request: UpstreamRequest, attempt: _Attempt, tls: ssl.SSLContext | bool
) -> aiohttp.ClientResponse:
    origin = request.origin
    try:
        return await session.request(
            request.method,
            URL(origin + request.target, encoded=True),
            headers=_fields(request),
            data=_payload(request.body),
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None, connect=request.timeouts.connect),
            trace_request_ctx=attempt,
            ssl=tls,
        )
    except aiohttp.ConnectionTimeoutError:
        raise UpstreamUnreachable(f"{origin} did not accept a connection in {request.timeouts.connect:g} s") from None
    except aiohttp.ServerDisconnectedError as error:
        if isinstance(error.message, str):
            raise UpstreamUnreachable(f"{origin} closed the connection without an answer") from None
        raise UpstreamCut(f"{origin} broke off inside the head of its answer") from None
    except aiohttp.ClientConnectorDNSError:
        raise UpstreamUnreachable(f"{origin} has no known address") from None
    except OSError as error:
        if error.errno in EXHAUSTED:
            raise NoConnectionLeft(f"no connection to {origin} can be opened: {why(_cause(error))}") from None
        raise UpstreamUnreachable(f"{origin} is unreachable: {why(_cause(error))}") from None
    except (aiohttp.InvalidURL, ValueError):
        raise UpstreamUnreachable(f"{origin} is not a usable address") from None
    except (aiohttp.ClientError, HttpProcessingError):
        raise UpstreamCut(f"{origin} answered with something other than HTTP") from None


def _cause(error: OSError) -> OSError:
    """What the library's error is about."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        found: object = error.certificate_error
    else:
        found = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    return found if isinstance(found, OSError) else error


def _fields(request: UpstreamRequest) -> "CIMultiDict[str]":
    fields = CIMultiDict(
        (name.decode("latin-1"), value.decode("utf-8", "replace"))
        for name, value in request.headers
        if name not in _OURS
    )
    if request.body:
        fields["content-length"] = str(sum(map(len, request.body)))
    return fields


def _payload(body: Sequence[bytes]) -> bytes | AsyncIterator[bytes] | None:
    if not body:
        return None
    if sum(map(len, body)) <= _JOIN_BYTES_MAX:
        return b"".join(body)
    return _pieces(body)


async def _pieces(body: Sequence[bytes]) -> AsyncIterator[bytes]:
    for piece in body:
        yield piece
