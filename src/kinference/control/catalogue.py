"""Providers and routes as typed records over the store's rows."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from kinference.control.errors import StoreFailed
from kinference.control.scope import EVERYONE, Scope, read_key
from kinference.control.store.base import Kind, Row, Store
from kinference.control.store.sealing import Sealed
from kinference.errors import InvalidArgument

DAMAGED = "damaged record"
"""In the place of the type of a provider whose row cannot be understood."""


class ProviderBody(msgspec.Struct, frozen=True):
    """What is stored of a provider. A credential is sealed, or the text of a reference to where it is."""

    type: str
    credentials: dict[str, Sealed | str]
    config: dict[str, str]


@dataclass(frozen=True, slots=True)
class Provider:
    """Where a kind of inference can be had, and what it takes to be let in."""

    name: str
    type: str
    credentials: Mapping[str, Sealed | str]
    config: Mapping[str, str]
    version: int = 0


class RouteBody(msgspec.Struct, frozen=True):
    """What is stored of a route; the provider's name is the row's own reference."""

    model_id: str
    timeout_secs: int


@dataclass(frozen=True, slots=True)
class Route:
    """Where requests of one name lead."""

    name: str
    provider_name: str
    model_id: str
    timeout_secs: int = 0
    version: int = 0
    scope: Scope = EVERYONE

    @property
    def key(self) -> str:
        """Its name among the routes of all scopes."""
        return self.scope.key(self.name)


class Catalogue:
    """All records. `changed` is set by each write through this object, for whoever follows them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.changed = asyncio.Event()

    async def provider(self, name: str) -> Provider | None:
        row = await self._store.read(Kind.PROVIDER, name)
        return None if row is None else _provider(row)

    async def providers(self) -> Sequence[Provider]:
        """All, so that no damaged one hides the others: such a one has nothing but its name and the type DAMAGED."""
        return [_provider_or_damaged(row) for row in await self._store.rows(Kind.PROVIDER)]

    async def write_provider(self, provider: Provider) -> int:
        """Store it over the version that it was read with (0: it must be new). Raises Overtaken."""
        body = ProviderBody(provider.type, dict(provider.credentials), dict(provider.config))
        row = Row(Kind.PROVIDER, provider.name, msgspec.json.encode(body))
        return await self._written(row, provider.version)

    async def delete_provider(self, name: str) -> bool:
        """Raises Referred while a route uses it."""
        return await self._deleted(Kind.PROVIDER, name)

    async def route(self, name: str, scope: Scope = EVERYONE) -> Route | None:
        row = await self._store.read(Kind.ROUTE, scope.key(name))
        return None if row is None else _route(row)

    async def routes(self) -> Sequence[Route]:
        """All; a damaged one has no model."""
        return [_route_or_damaged(row) for row in await self._store.rows(Kind.ROUTE)]

    async def write_route(self, route: Route, expected: int | None = None) -> int:
        """Store it over whatever version there is, or over the one expected. Raises Referred without its provider."""
        body = RouteBody(route.model_id, route.timeout_secs)
        row = Row(Kind.ROUTE, route.key, msgspec.json.encode(body), route.provider_name)
        return await self._written(row, expected)

    async def delete_route(self, name: str, scope: Scope = EVERYONE) -> bool:
        return await self._deleted(Kind.ROUTE, scope.key(name))

    async def _written(self, row: Row, expected: int | None) -> int:
        version = await self._store.write(row, expected)
        self.changed.set()
        return version

    async def _deleted(self, kind: Kind, name: str) -> bool:
        deleted = await self._store.delete(kind, name)
        self.changed.set()
        return deleted


def _provider(row: Row) -> Provider:
    try:
        body = msgspec.json.decode(row.body, type=ProviderBody)
    except msgspec.DecodeError as error:
        raise StoreFailed(f"the stored provider {row.name!r} cannot be understood") from error
    return Provider(row.name, body.type, body.credentials, body.config, row.version)


def _provider_or_damaged(row: Row) -> Provider:
    try:
        return _provider(row)
    except StoreFailed:
        return Provider(row.name, DAMAGED, {}, {}, row.version)


def _route(row: Row) -> Route:
    try:
        body = msgspec.json.decode(row.body, type=RouteBody)
        scope, name = read_key(row.name)
    except (msgspec.DecodeError, InvalidArgument) as error:
        raise StoreFailed(f"the stored route {row.name!r} cannot be understood") from error
    return Route(name, row.provider or "", body.model_id, body.timeout_secs, row.version, scope)


def _route_or_damaged(row: Row) -> Route:
    try:
        return _route(row)
    except StoreFailed:
        return Route(row.name, row.provider or "", "", 0, row.version)
