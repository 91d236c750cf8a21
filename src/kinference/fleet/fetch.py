"""One bounded call of an engine's own pages: no answer can hold us up or fill our memory."""

from dataclasses import dataclass

from msgspec import structs

from kinference.core.fleet import EndpointSpec
from kinference.errors import BudgetExceeded, UpstreamCut, UpstreamTimeout, UpstreamUnreachable
from kinference.ids import Seconds
from kinference.ports import Upstream, UpstreamAnswer, UpstreamRequest, UpstreamTimeouts
from kinference.wire.patience import Patience

FETCH_FAULTS = (UpstreamUnreachable, UpstreamTimeout, UpstreamCut, BudgetExceeded)
"""Everything that `fetch` raises."""

_HEADERS = ((b"accept-encoding", b"identity"),)
_JSON = (b"content-type", b"application/json")


@dataclass(frozen=True, slots=True)
class Page:
    """An answer read to its end."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class PageLimits:
    """How long a page may take, all told, and how large it may be."""

    timeout: Seconds
    bytes_max: int


async def fetch(upstream: Upstream, spec: EndpointSpec, path: str, limits: PageLimits) -> Page:
    """GET a page of an endpoint. Raises one of FETCH_FAULTS, whose messages hold nothing that the engine sent."""
    return await _call(upstream, spec, UpstreamRequest("GET", "", path, _HEADERS), limits)


async def post(upstream: Upstream, spec: EndpointSpec, path: str, body: bytes, limits: PageLimits) -> Page:
    """POST JSON to an endpoint, bounded alike."""
    return await _call(upstream, spec, UpstreamRequest("POST", "", path, (*_HEADERS, _JSON), (body,)), limits)


async def _call(upstream: Upstream, spec: EndpointSpec, request: UpstreamRequest, limits: PageLimits) -> Page:
    origin, target = f"{spec.scheme}://{spec.address}", spec.path_prefix + request.target
    timeouts = UpstreamTimeouts(limits.timeout, limits.timeout, limits.timeout)
    try:
        async with Patience(limits.timeout):
            answer = await upstream.send(structs.replace(request, origin=origin, target=target, timeouts=timeouts))
            try:
                return Page(answer.status, await _read(answer, f"{origin}{target}", limits.bytes_max))
            finally:
                await answer.close()
    except TimeoutError:
        raise UpstreamTimeout(f"{origin}{target} took longer than {limits.timeout:g} s") from None


async def _read(answer: UpstreamAnswer, name: str, bytes_max: int) -> bytes:
    pieces: list[bytes] = []
    total = 0
    async for chunk in answer.chunks():
        total += len(chunk)
        if total > bytes_max:
            raise BudgetExceeded(f"{name} is over {bytes_max} bytes")
        pieces.append(chunk)
    return b"".join(pieces)
