"""Credentials that stay in Kubernetes: `k8s:NAMESPACE/NAME/KEY`, read from the cluster's API when they are needed."""

import base64
import binascii
import re
from collections.abc import Callable

import msgspec

from kinference.control.errors import Unmet
from kinference.errors import UpstreamCut, UpstreamTimeout, UpstreamUnreachable
from kinference.ids import Seconds
from kinference.ports import Upstream, UpstreamTimeouts
from kinference.wire.cluster import Cluster

PREFIX = "k8s:"
REFERENCE = re.compile(r"k8s:([a-z0-9][a-z0-9-]{0,62})/([a-z0-9][a-z0-9.-]{0,252})/([A-Za-z0-9._-]{1,253})")
FRESH_FOR: Seconds = 5.0
"""A rotated Secret is seen within so long, however often it is asked for."""
ANSWER_BYTES_MAX = 2 * 1024 * 1024
"""Kubernetes keeps no Secret over 1 MiB, which base64 makes longer."""
_TIMEOUTS = UpstreamTimeouts(connect=2.0, first_byte=5.0, between_chunks=5.0)
_OK, _FORBIDDEN, _NOT_FOUND = 200, (401, 403), 404


class _Secret(msgspec.Struct):
    data: dict[str, str] = {}


class Unavailable(Exception):
    """The API does not answer, or not with a Secret."""


class KubernetesSecrets:
    """Reads Secrets, each at most every few seconds. The last good one stays in use while the API is away."""

    def __init__(self, upstream: Upstream, cluster: Cluster, now: Callable[[], Seconds]) -> None:
        self._upstream, self._cluster, self._now = upstream, cluster, now
        self._known: dict[tuple[str, str], tuple[Seconds, dict[str, str]]] = {}

    async def read(self, reference: str) -> str:
        """The secret. Raises Unmet when the reference leads to nothing, or the API never answered."""
        match = REFERENCE.fullmatch(reference)
        if match is None:
            raise Unmet(f"{reference} is no reference; write k8s:NAMESPACE/NAME/KEY")
        namespace, name, key = match.groups()
        data = await self._data(namespace, name)
        if key not in data:
            raise Unmet(f"{reference}: the Secret has no such key")
        try:
            return base64.b64decode(data[key], validate=True).decode().strip("\r\n")
        except (binascii.Error, UnicodeDecodeError):
            raise Unmet(f"{reference}: the key holds no text") from None

    async def _data(self, namespace: str, name: str) -> dict[str, str]:
        place = (namespace, name)
        read_at, data = self._known.get(place, (None, {}))
        if read_at is not None and self._now() - read_at < FRESH_FOR:
            return data
        try:
            data = await self._asked(namespace, name)
        except Unavailable as error:
            if read_at is None:
                raise Unmet(f"Secret {namespace}/{name} cannot be read: {error}") from None
        self._known[place] = (self._now(), data)
        return data

    async def _asked(self, namespace: str, name: str) -> dict[str, str]:
        status, content = await self._answer(f"/api/v1/namespaces/{namespace}/secrets/{name}")
        if status in (_NOT_FOUND, *_FORBIDDEN):
            self._known.pop((namespace, name), None)
            why = "there is none" if status == _NOT_FOUND else "our service account may not get it; bind it a role"
            raise Unmet(f"Secret {namespace}/{name}: {why}")
        if status != _OK:
            raise Unavailable(f"HTTP {status}")
        try:
            return msgspec.json.decode(content, type=_Secret).data
        except msgspec.DecodeError:
            raise Unavailable("the answer is no Secret") from None

    async def _answer(self, target: str) -> tuple[int, bytes]:
        """Raises Unavailable."""
        try:
            answer = await self._upstream.send(self._cluster.get(target, _TIMEOUTS))
            try:
                content = b""
                async for chunk in answer.chunks():
                    content += chunk
                    if len(content) > ANSWER_BYTES_MAX:
                        raise Unavailable("the answer is too long")
            finally:
                await answer.close()
        except (OSError, ValueError) as error:
            raise Unavailable(f"no token of a service account: {type(error).__name__}") from None
        except (UpstreamUnreachable, UpstreamTimeout, UpstreamCut) as error:
            raise Unavailable(str(error)) from None
        return answer.status, content
