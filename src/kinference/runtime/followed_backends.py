"""Backends whose place and credential the control plane knows, looked up ahead of the requests that need them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from kinference.config.destinations import Backend
from kinference.config.schema import Config
from kinference.control.vertex import root_of
from kinference.gateway.backends import BackendRoute
from kinference.ids import ObjectRef, Seconds
from kinference.vocabulary import Api
from kinference.wire.sigv4 import AwsKeys

POLL: Seconds = 5.0
"""How soon a change made by another process is seen; our own are seen at once."""

_VERTEX = (Api.VERTEX_ANTHROPIC, Api.VERTEX_GEMINI, Api.VERTEX_OPENAI)
_log = logging.getLogger(__name__)


class Unresolved(Exception):
    """Where a backend is cannot be told; the message says why and holds no secret."""


class Gone(Unresolved):
    """It was unset on purpose, or the control plane no longer gives it out: what was known is not to be used."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a backend is at a moment."""

    base_url: str
    api_key: str = field(repr=False)
    aws: AwsKeys | None = None


Resolver: TypeAlias = Callable[[Backend], Awaitable[Place]]
"""What is known at one moment. Raises Unresolved."""


class Source(Protocol):
    """The control plane as its followers see it."""

    changed: asyncio.Event
    """Set by changes that need no waiting for the next poll."""

    async def read(self) -> Resolver:
        """Look everything up. Raises Unresolved when nothing can be read."""
        ...


class FollowedBackends:
    """The resolved backends of one configuration. What was good stays in use while it cannot be resolved anew."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._backends: Sequence[Backend] = ()
        self._resolved: Mapping[ObjectRef, BackendRoute] = {}
        self._told: Mapping[ObjectRef, str] = {}
        self._trouble = ""
        self._announce: Callable[[], None] = _tell_nobody

    @property
    def resolved(self) -> Mapping[ObjectRef, BackendRoute]:
        """All that could be resolved."""
        return self._resolved

    def on_change(self, announce: Callable[[], None]) -> None:
        """Have `announce` called when a backend is elsewhere than before, or its credential another."""
        self._announce = announce

    def get(self, ref: ObjectRef) -> BackendRoute | None:
        """None for a backend that has a URL of its own, or that could not be resolved yet."""
        return self._resolved.get(ref)

    def users_of(self, provider: str) -> list[str]:
        """The backends that use a provider."""
        return [f"backend {backend.ref}" for backend in self._backends if backend.provider == provider]

    def configure(self, config: Config) -> None:
        """Follow another configuration; `run` resolves it at once."""
        self._backends = tuple(backend for backend in config.backends if backend.base_url is None)
        self._source.changed.set()

    async def refresh(self) -> None:
        """Look every one up again."""
        if not self._backends:
            self._resolved = {}
            return
        try:
            resolver = await self._source.read()
        except Unresolved as error:
            if str(error) != self._trouble:
                _log.error("backends cannot be resolved, the last known stay in use: %s", error)
            self._trouble = str(error)
            return
        self._trouble = ""
        troubles: dict[ObjectRef, str] = {}
        resolved = {backend.ref: await self._resolve(backend, resolver, troubles) for backend in self._backends}
        known = {ref: route for ref, route in resolved.items() if route is not None}
        if known != self._resolved:
            self._resolved = known
            self._announce()
        self._tell(troubles)

    async def run(self) -> None:
        """Follow them for ever."""
        while True:
            await self.refresh()
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL if self._backends else None):
                    await self._source.changed.wait()
            self._source.changed.clear()

    async def _resolve(
        self, backend: Backend, resolver: Resolver, troubles: dict[ObjectRef, str]
    ) -> BackendRoute | None:
        try:
            place = await resolver(backend)
        except Unresolved as error:
            troubles[backend.ref] = str(error)
            return None if isinstance(error, Gone) else self._resolved.get(backend.ref)
        base_url = root_of(place.base_url) if backend.api in _VERTEX else place.base_url
        return BackendRoute(backend.ref, base_url, place.api_key.strip(), backend.api, place.aws)

    def _tell(self, troubles: Mapping[ObjectRef, str]) -> None:
        for backend in self._backends:
            trouble = troubles.get(backend.ref)
            if trouble is not None and trouble != self._told.get(backend.ref):
                follows = f"provider {backend.provider}" if backend.provider else f"route {backend.route}"
                fields = {"backend": str(backend.ref), "follows": follows, "reason": trouble}
                _log.error("a backend cannot be resolved", extra=fields)
        self._told = troubles


def _tell_nobody() -> None:
    """Nobody follows the followers yet."""
