"""The two ways to the control plane: its records in the same process, or its bundle from another."""

import asyncio
from collections.abc import Awaitable, Callable

from kinference.config.schema import Backend
from kinference.control.bundle import Bundle
from kinference.control.catalogue import Catalogue
from kinference.control.errors import StoreFailed, Unmet
from kinference.control.routes import Routes
from kinference.errors import InvalidArgument
from kinference.runtime.followed_backends import Gone, Place, Resolver, Unresolved
from kinference.sandbox.polling import FetchedBundle, NoBundle
from kinference.vocabulary import Api


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
                return _in_bundle(bundle, backend.route)
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
            return place

        return resolve
