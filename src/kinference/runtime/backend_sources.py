"""The two ways to the control plane: its records in the same process, or its bundle from another."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

from kinference.config.destinations import Backend
from kinference.control.bundle import Bundle
from kinference.control.catalogue import Catalogue, Provider
from kinference.control.errors import Missing, StoreFailed, Unmet
from kinference.control.routes import Routes
from kinference.errors import InvalidArgument
from kinference.runtime.followed_backends import Gone, Place, Resolver, Unresolved
from kinference.sandbox.polling import FetchedBundle, NoBundle
from kinference.shapes.hosts import region_of
from kinference.vocabulary import Api

_UNSIGNED: Final = (
    "leads to Amazon Bedrock, whose credentials no bundle carries: write base_url with aws or api_key at the backend, "
    "run the gateway with the control plane in one process, or set BEDROCK_BASE_URL to a bridge that signs"
)


class RecordSource:
    """Provider records and routes, as this process keeps them."""

    def __init__(self, catalogue: Catalogue, routes: Routes) -> None:
        self._catalogue, self._routes = catalogue, routes
        self.changed = catalogue.changed

    async def read(self) -> Resolver:
        try:
            providers = {provider.name: provider for provider in await self._catalogue.providers()}
            bundle = await self._routes.bundle()
        except StoreFailed as error:
            raise Unresolved(str(error)) from error

        async def resolve(backend: Backend) -> Place:
            if backend.route is not None:
                return await self._by_route(backend, bundle, providers)
            provider = providers.get(backend.provider or "")
            if provider is None:
                raise Unresolved("there is no such record; create it with: kinference provider create")
            try:
                if backend.api is Api.BEDROCK_CONVERSE:
                    aws = await self._routes.resolved_aws(provider)
                    return Place(aws.base_url, aws.bearer, aws.keys)
                found = await self._routes.resolved(provider, next(iter(backend.models.values()), ""))
            except (InvalidArgument, Unmet, StoreFailed) as error:
                raise Unresolved(str(error)) from error
            return Place(found.base_url, found.api_key)

        return resolve

    async def _by_route(self, backend: Backend, bundle: Bundle, providers: Mapping[str, Provider]) -> Place:
        """As the bundle has it; what signs for Bedrock is in no bundle, and here it need not leave the process."""
        assert backend.route is not None, "asked for where it follows one"
        place = _in_bundle(bundle, backend.route)
        if backend.api is not Api.BEDROCK_CONVERSE:
            return place
        try:
            route = await self._routes.get(backend.route, allows_extra=True)
            aws = await self._routes.resolved_aws(providers[route.provider_name])
        except (InvalidArgument, Unmet, Missing, StoreFailed, KeyError) as error:
            if _is_amazons(place):
                raise Unresolved(str(error)) from error
            return place  # a bridge that signs needs nothing
        return Place(aws.base_url, aws.bearer, aws.keys)


def _is_amazons(place: Place) -> bool:
    """Whether a place is Amazon Bedrock itself, which takes nothing without a credential."""
    return bool(region_of(urlsplit(place.base_url).hostname or "")) and not place.api_key


def _in_bundle(bundle: Bundle, name: str) -> Place:
    for route in bundle.routes:
        if route.name == name:
            return Place(route.base_url, route.api_key)
    for each in bundle.left_out:
        if each.name == name:
            raise Unresolved(each.reason)
    raise Gone(f"route '{name}' is not set; set it with: kinference route set --route {name}")


class BundleSource:
    """The bundle of a control plane in another process, polled."""

    def __init__(self, fetch: Callable[[], Awaitable[FetchedBundle]]) -> None:
        self._fetch = fetch
        self.changed = asyncio.Event()

    async def read(self) -> Resolver:
        try:
            bundle = await self._fetch()
        except NoBundle as error:
            raise Unresolved(str(error)) from error
        places = {route.name: Place(route.base_url, route.api_key) for route in bundle.routes}

        async def resolve(backend: Backend) -> Place:
            if backend.route is None:
                raise Unresolved("records stay with the control plane, which is another process; name a route instead")
            place = places.get(backend.route)
            if place is None:
                raise Gone(f"route '{backend.route}' is not in the bundle that this process is given")
            if backend.api is Api.BEDROCK_CONVERSE and _is_amazons(place):
                raise Unresolved(f"route '{backend.route}' {_UNSIGNED}")
            return place

        return resolve
