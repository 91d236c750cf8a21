"""Backends whose place and credential are a provider's record, looked up ahead of the requests that need them."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress

from kinference.config.schema import Backend, Config
from kinference.control.catalogue import Catalogue, Provider
from kinference.control.errors import StoreFailed, Unmet
from kinference.control.routes import Routes
from kinference.errors import InvalidArgument
from kinference.gateway.backends import BackendRoute
from kinference.ids import ObjectRef, Seconds

POLL: Seconds = 5.0
"""How soon a change made by another process is seen; our own are seen at once."""

_log = logging.getLogger(__name__)


class ProviderBackends:
    """The resolved backends of one configuration. What was good stays in use while its record cannot be resolved."""

    def __init__(self, catalogue: Catalogue, routes: Routes) -> None:
        self._catalogue, self._routes = catalogue, routes
        self._backends: Sequence[Backend] = ()
        self._resolved: Mapping[ObjectRef, BackendRoute] = {}
        self._told: Mapping[ObjectRef, str] = {}

    def get(self, ref: ObjectRef) -> BackendRoute | None:
        """None for a backend that has no provider, or whose provider could not be resolved yet."""
        return self._resolved.get(ref)

    def users_of(self, provider: str) -> list[str]:
        """The backends that use a provider."""
        return [f"backend {backend.ref}" for backend in self._backends if backend.provider == provider]

    def configure(self, config: Config) -> None:
        """Follow another configuration; `run` resolves it at once."""
        self._backends = tuple(backend for backend in config.backends if backend.provider is not None)
        self._catalogue.changed.set()

    async def refresh(self) -> None:
        """Look every record up again."""
        if not self._backends:
            self._resolved = {}
            return
        try:
            providers = {provider.name: provider for provider in await self._catalogue.providers()}
        except StoreFailed as error:
            _log.error("providers cannot be read, the last known stay in use: %s", error)
            return
        troubles: dict[ObjectRef, str] = {}
        resolved = {backend.ref: self._resolve(backend, providers, troubles) for backend in self._backends}
        self._resolved = {ref: route for ref, route in resolved.items() if route is not None}
        self._tell(troubles)

    async def run(self) -> None:
        """Follow the records for ever."""
        while True:
            await self.refresh()
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL if self._backends else None):
                    await self._catalogue.changed.wait()
            self._catalogue.changed.clear()

    def _resolve(
        self, backend: Backend, providers: Mapping[str, Provider], troubles: dict[ObjectRef, str]
    ) -> BackendRoute | None:
        provider = providers.get(backend.provider or "")
        if provider is None:
            troubles[backend.ref] = "there is no such record; create it with: kinference provider create"
            return self._resolved.get(backend.ref)
        try:
            found = self._routes.resolved(provider, next(iter(backend.models.values()), ""))
        except (InvalidArgument, Unmet, StoreFailed) as error:
            troubles[backend.ref] = str(error)
            return self._resolved.get(backend.ref)
        return BackendRoute(backend.ref, found.base_url, found.api_key.strip(), backend.api)

    def _tell(self, troubles: Mapping[ObjectRef, str]) -> None:
        for backend in self._backends:
            trouble = troubles.get(backend.ref)
            if trouble is not None and trouble != self._told.get(backend.ref):
                fields = {"backend": str(backend.ref), "provider": backend.provider, "reason": trouble}
                _log.error("a backend's provider cannot be resolved", extra=fields)
        self._told = troubles
