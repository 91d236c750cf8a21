"""The two ways to ask the API of Kubernetes: for a page, and for whatever happens from now on."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from kinference.errors import UpstreamCut, UpstreamTimeout, UpstreamUnreachable
from kinference.fleet.discovery.kubernetes.watched import Expired
from kinference.fleet.discovery.source import SourceFailed
from kinference.ids import Seconds
from kinference.ports import Upstream, UpstreamAnswer, UpstreamTimeouts
from kinference.wire.cluster import Cluster

PAGE_BYTES_MAX: Final = 32 * 1024 * 1024
WATCH_FOR: Seconds = 60.0
"""A watch is begun anew so often, and one that died without a word is noticed so soon."""
_SLACK: Seconds = 15.0
_PAGE_TIMEOUTS: Final = UpstreamTimeouts(connect=2.0, first_byte=15.0, between_chunks=15.0)
_WATCH_TIMEOUTS: Final = UpstreamTimeouts(connect=2.0, first_byte=15.0, between_chunks=WATCH_FOR + _SLACK)
_OK, _GONE, _NOT_FOUND = 200, 410, 404
_FORBIDDEN = (401, 403)


class KubernetesApi:
    """Asks it, with the token of our service account."""

    def __init__(self, upstream: Upstream, cluster: Cluster) -> None:
        self._upstream, self._cluster = upstream, cluster

    async def page(self, target: str) -> bytes:
        """Raises SourceFailed or Expired."""
        pieces: list[bytes] = []
        total = 0
        async with self._answer(target, _PAGE_TIMEOUTS) as answer:
            async for chunk in answer.chunks():
                total += len(chunk)
                if total > PAGE_BYTES_MAX:
                    raise SourceFailed(f"an answer of the Kubernetes API is over {PAGE_BYTES_MAX} bytes")
                pieces.append(chunk)
        return b"".join(pieces)

    async def watch(self, target: str) -> AsyncGenerator[bytes, None]:
        """What happens, in chunks cut anywhere, until the API ends it; an empty one comes first, once it has agreed.
        Raises SourceFailed or Expired.
        """
        async with self._answer(target, _WATCH_TIMEOUTS) as answer:
            yield b""
            async for chunk in answer.chunks():
                yield chunk

    @asynccontextmanager
    async def _answer(self, target: str, timeouts: UpstreamTimeouts) -> AsyncIterator[UpstreamAnswer]:
        try:
            request = self._cluster.get(target, timeouts)
        except (OSError, ValueError) as error:
            raise SourceFailed(f"no token of a service account can be read: {type(error).__name__}") from None
        try:
            answer = await self._upstream.send(request)
            try:
                _check(answer, target)
                yield answer
            finally:
                await answer.close()
        except (UpstreamUnreachable, UpstreamTimeout, UpstreamCut) as error:
            raise SourceFailed(f"the Kubernetes API: {error}") from None


def _check(answer: UpstreamAnswer, target: str) -> None:
    path = target.partition("?")[0]
    if answer.status == _GONE:
        raise Expired
    if answer.status in _FORBIDDEN:
        fix = "bind it a role with get, list and watch"
        raise SourceFailed(f"our service account may not read {path} (HTTP {answer.status}); {fix}")
    if answer.status == _NOT_FOUND:
        raise SourceFailed(f"there is no {path}; is its name right, and the kind installed in the cluster?")
    if answer.status != _OK:
        raise SourceFailed(f"the Kubernetes API answered {answer.status} for {path}")
