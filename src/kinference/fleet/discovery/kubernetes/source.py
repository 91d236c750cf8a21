"""Discovery by the API of Kubernetes: list what there is, then watch, and list anew only where the API cannot go on."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final, TypeAlias
from urllib.parse import urlencode

from kinference.fleet.discovery.kubernetes.api import WATCH_FOR, KubernetesApi
from kinference.fleet.discovery.kubernetes.objects import UNREADABLE, read_pod, read_pool, read_slice
from kinference.fleet.discovery.kubernetes.watched import Expired, Lines, Reader, Senseless, Watched, listed_in
from kinference.fleet.discovery.place import Place
from kinference.fleet.discovery.source import SourceFailed
from kinference.ids import Seconds

PAGE_OBJECTS: Final = 250
PAGES_MAX: Final = 64
_PAUSE: Final[tuple[Seconds, Seconds]] = (0.1, 0.5)
"""Between two watches; what happens meanwhile is told by the next."""

Sleep: TypeAlias = Callable[[Seconds], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Labelled:
    """Pods, by their labels."""

    namespace: str
    match_labels: Mapping[str, str]
    ports: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OfService:
    """What is behind a Service, as its EndpointSlices tell."""

    namespace: str
    service: str
    ports: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OfInferencePool:
    """Pods, as an InferencePool selects them."""

    namespace: str
    name: str


Asked: TypeAlias = Labelled | OfService | OfInferencePool


@dataclass(frozen=True, slots=True)
class _Aim:
    """What is listed and watched."""

    path: str
    selector: str
    ports: tuple[int, ...]
    is_slices: bool = False

    def target(self, parameters: Mapping[str, str]) -> str:
        return f"{self.path}?{urlencode({'labelSelector': self.selector, **parameters})}"

    @property
    def read(self) -> Reader:
        return partial(read_slice if self.is_slices else read_pod, ports=self.ports)


class KubernetesSource:
    """Keeps what it knows from one call to the next: after a broken watch it goes on where that ended."""

    def __init__(self, api: KubernetesApi, asked: Asked, rng: Random, sleep: Sleep = asyncio.sleep) -> None:
        self._api, self._asked, self._rng, self._sleep = api, asked, rng, sleep
        self._aim: _Aim | None = None
        self._watched = Watched(partial(read_pod, ports=()))
        self._expired = 0
        """Lists in a row that the API could not go on from."""

    @property
    def name(self) -> str:
        asked = self._asked
        match asked:
            case Labelled():
                return f"Kubernetes pods {_selector(asked.match_labels)} in {asked.namespace}"
            case OfService():
                return f"Kubernetes Service {asked.namespace}/{asked.service}"
            case OfInferencePool():
                return f"InferencePool {asked.namespace}/{asked.name}"

    async def sets(self) -> AsyncGenerator[Sequence[Place], None]:
        """Raises SourceFailed."""
        try:
            while True:
                aim = await self._aimed()
                if not self._watched.version:
                    await self._list(aim)
                    yield self._watched.places
                async with aclosing(self._watch(aim)) as changes:
                    async for _ in changes:
                        yield self._watched.places
                await self._sleep(self._rng.uniform(*_PAUSE))
        except Expired:
            self._watched.version = ""
            raise SourceFailed("a list of the Kubernetes API expired while it was read") from None
        except Senseless as error:
            self._watched.version = ""
            raise SourceFailed(f"the Kubernetes API: {error}") from None

    async def _aimed(self) -> _Aim:
        """What is to be watched; where that is another than before it is listed anew."""
        aim = await self._found(self._asked)
        if aim != self._aim:
            self._aim, self._watched = aim, Watched(aim.read)
        return aim

    async def _found(self, asked: Asked) -> _Aim:
        match asked:
            case Labelled():
                return _pods(asked.namespace, asked.match_labels, asked.ports)
            case OfService():
                path = f"/apis/discovery.k8s.io/v1/namespaces/{asked.namespace}/endpointslices"
                return _Aim(path, f"kubernetes.io/service-name={asked.service}", asked.ports, is_slices=True)
            case OfInferencePool():
                kind = f"/apis/inference.networking.k8s.io/v1/namespaces/{asked.namespace}/inferencepools"
                try:
                    labels, ports = read_pool(await self._api.page(f"{kind}/{asked.name}"))
                except UNREADABLE:
                    raise SourceFailed(f"InferencePool {asked.namespace}/{asked.name} makes no sense") from None
                return _pods(asked.namespace, labels, ports)

    async def _list(self, aim: _Aim) -> None:
        pages: list[bytes] = []
        page = {"limit": f"{PAGE_OBJECTS}"}
        for _ in range(PAGES_MAX):
            pages.append(await self._api.page(aim.target(page)))
            token = listed_in(pages[-1]).metadata.continue_
            if not token:
                break
            page["continue"] = token
        else:
            raise Senseless("the list has no end")
        self._watched.replace(pages)
        if not self._watched.version:
            raise Senseless("the list has no version")

    async def _watch(self, aim: _Aim) -> AsyncGenerator[None, None]:
        """Tells of its beginning, and after each chunk in which something happened. Where the API cannot go on from
        what we know there is no version afterwards.
        """
        lines = Lines()
        from_here = {"watch": "1", "allowWatchBookmarks": "true", "resourceVersion": self._watched.version}
        target = aim.target({**from_here, "timeoutSeconds": f"{WATCH_FOR:.0f}"})
        try:
            async with aclosing(self._api.watch(target)) as chunks:
                async for chunk in chunks:
                    happened = lines.feed(chunk)
                    for line in happened:
                        self._watched.happened(line)
                        self._expired = 0
                    if happened or not chunk:
                        yield
        except Expired:
            self._watched.version = ""
            self._expired += 1
            if self._expired > 1:
                raise SourceFailed("the Kubernetes API cannot go on from its own list") from None


def _pods(namespace: str, labels: Mapping[str, str], ports: tuple[int, ...]) -> _Aim:
    return _Aim(f"/api/v1/namespaces/{namespace}/pods", _selector(labels), ports)


def _selector(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
