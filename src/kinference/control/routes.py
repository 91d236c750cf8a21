"""The inference routes: set, get, delete, and all of them resolved."""

import logging
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from kinference.config.values import DEFAULT_WORKSPACE
from kinference.control.bundle import Bundle, BundledRoute, LeftOut, bundled
from kinference.control.catalogue import Catalogue, Provider, Route
from kinference.control.credentials import Credentials
from kinference.control.errors import Missing, Referred, StoreFailed, Unmet
from kinference.control.providers import AwsRecord, Resolved, resolve, resolve_aws
from kinference.control.scope import EVERYONE, SHOWN_MAX, Scope
from kinference.control.verify import ValidatedEndpoint, Verifier
from kinference.errors import InvalidArgument
from kinference.observe.metrics import CONTROL_LEFT_OUT, Metrics

USER_ROUTE, SYSTEM_ROUTE = "inference.local", "sandbox-system"
EXTRA_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
"""Further routes for a sandbox's programs, beside the contract's two; a protocol goes to the first that speaks it."""

NAME_BYTES_MAX = 253
MODEL_BYTES_MAX = 1024

_log = logging.getLogger(__name__)
_AUDIT = logging.getLogger("kinference.control.audit")


@dataclass(frozen=True, slots=True)
class RouteRequest:
    """What a caller wants a route to be."""

    route_name: str
    provider_name: str
    model_id: str
    no_verify: bool = False
    timeout_secs: int = 0
    scope: Scope = EVERYONE
    allows_extra: bool = False
    """Whether the name may be one beside the contract's two, which its own callers may not use."""
    expected_version: int | None = None
    """The version that is to be replaced, where the caller has read it; None: whatever there is."""


@dataclass(frozen=True, slots=True)
class RouteSet:
    """A route as it was stored, and what was tried before."""

    route: Route
    validated: ValidatedEndpoint | None


@dataclass(frozen=True, slots=True)
class RouteParts:
    """What routes are made of."""

    catalogue: Catalogue
    credentials: Credentials
    verifier: Verifier
    metrics: Metrics
    workspaces: frozenset[str] = frozenset()
    """Those that there are beside the default one."""


class Routes:
    """The rules of the routes. `actor` in each change is who asked, for the audit log."""

    def __init__(self, parts: RouteParts) -> None:
        self._parts, self._catalogue = parts, parts.catalogue
        self._told: dict[str, str] = {}

    async def set(self, wanted: RouteRequest, actor: str) -> RouteSet:
        """Point a route at a provider and a model. Nothing is stored unless all is well."""
        self._check_workspace(wanted.scope)
        name = canonical_name(wanted.route_name, allows_extra=wanted.allows_extra)
        _check(wanted)
        provider = await self._catalogue.provider(wanted.provider_name)
        if provider is None:
            raise _no_provider(wanted.provider_name)
        resolved = await self.resolved(provider, wanted.model_id)
        validated = None if wanted.no_verify else await self._parts.verifier.verify(provider.name, resolved)
        route = Route(name, provider.name, wanted.model_id, wanted.timeout_secs, scope=wanted.scope)
        try:
            version = await self._catalogue.write_route(route, wanted.expected_version)
        except Referred:
            raise _no_provider(wanted.provider_name) from None
        _AUDIT.info(
            "route set",
            extra={
                "actor": actor,
                "route": route.key,
                "provider": provider.name,
                "model": route.model_id,
                "to": version,
            },
        )
        return RouteSet(replace(route, version=version), validated)

    async def get(self, route_name: str, scope: Scope = EVERYONE, *, allows_extra: bool = False) -> Route:
        """As stored; the provider may be gone or broken. Raises Missing when it was never set."""
        self._check_workspace(scope)
        name = canonical_name(route_name, allows_extra=allows_extra)
        route = await self._catalogue.route(name, scope)
        if route is None:
            raise Missing(f"inference route '{name}' is not configured; set it with: kinference route set")
        if not route.provider_name.strip() or not route.model_id.strip():
            raise Unmet(f"inference route '{name}' is stored without its provider or model; set it again")
        return route

    async def delete(
        self,
        route_name: str,
        actor: str,
        scope: Scope = EVERYONE,
        *,
        allows_extra: bool = False,
    ) -> bool:
        """Whether there was one."""
        self._check_workspace(scope)
        name = canonical_name(route_name, allows_extra=allows_extra)
        deleted = await self._catalogue.delete_route(name, scope)
        self._told.pop(scope.key(name), None)
        self._parts.metrics.gauge(CONTROL_LEFT_OUT, 0, scope.key(name))
        _AUDIT.info("route deleted", extra={"actor": actor, "route": scope.key(name), "existed": deleted})
        return deleted

    async def examined(self, scope: Scope | None = None) -> Sequence[tuple[Route, BundledRoute | LeftOut]]:
        """Every route by its key, as stored and as it resolves now; what does not is told of.

        With a scope only those that are for it: a sandbox that polls does not cost what all the others have.
        """
        stored = await self._catalogue.routes()
        self._forget({route.key for route in stored})
        routes = [route for route in stored if scope is None or route.scope.covers(scope)]
        providers = {provider.name: provider for provider in await self._catalogue.providers()} if routes else {}
        found = [(route, await self._bundled(route, providers)) for route in routes]
        for route, each in found:
            self._tell(route, each)
        return found

    async def bundle(self, scope: Scope = EVERYONE) -> Bundle:
        """What a sandbox is to use, resolved now: its own routes, and those of its workspace that it has none of.

        A route that cannot be resolved is left out, and takes no other down with it.
        """
        found = await self.examined(scope)
        nearest = {route.name: (route, each) for route, each in sorted(found, key=lambda pair: pair[0].scope.sandbox)}
        in_order = [each for _, each in sorted(nearest.values(), key=lambda pair: _place(pair[0]))]
        return Bundle(
            tuple(each for each in in_order if isinstance(each, BundledRoute)),
            tuple(each for each in in_order if isinstance(each, LeftOut)),
        )

    async def resolved(self, provider: Provider, model_id: str) -> Resolved:
        """A provider as it is now, for one model. Raises InvalidArgument, Unmet or StoreFailed."""
        reveal = await self._parts.credentials.revealer(provider.credentials.values())
        return resolve(provider, model_id, reveal)

    async def resolved_aws(self, provider: Provider) -> AwsRecord:
        """A provider of Bedrock's as it is now. Raises InvalidArgument, Unmet or StoreFailed."""
        return resolve_aws(provider, await self._parts.credentials.revealer(provider.credentials.values()))

    async def _bundled(self, route: Route, providers: dict[str, Provider]) -> BundledRoute | LeftOut:
        provider = providers.get(route.provider_name)
        if not route.provider_name.strip() or not route.model_id.strip():
            return LeftOut(route.name, "it is stored without its provider or model; set it again")
        if provider is None:
            return LeftOut(route.name, f"its provider '{route.provider_name}' was not found")
        try:
            return bundled(route.name, await self.resolved(provider, route.model_id), route.timeout_secs)
        except (InvalidArgument, Unmet, StoreFailed) as error:
            return LeftOut(route.name, str(error))

    def _tell(self, route: Route, each: BundledRoute | LeftOut) -> None:
        """Log what is new: sandboxes poll every few seconds."""
        self._parts.metrics.gauge(CONTROL_LEFT_OUT, isinstance(each, LeftOut), route.key)
        if isinstance(each, BundledRoute):
            self._told.pop(route.key, None)
        elif self._told.get(route.key) != each.reason:
            self._told[route.key] = each.reason
            _log.error("a route is left out of the bundle", extra={"route": route.key, "reason": each.reason})

    def _forget(self, stored: Set[str]) -> None:
        """Routes that are gone, whoever deleted them, are left out of nothing."""
        for key in self._told.keys() - stored:
            del self._told[key]
            self._parts.metrics.gauge(CONTROL_LEFT_OUT, 0, key)

    def _check_workspace(self, scope: Scope) -> None:
        """Raises Missing for a workspace that there is not."""
        if scope.workspace != DEFAULT_WORKSPACE and scope.workspace not in self._parts.workspaces:
            raise Missing(f"workspace '{scope.workspace[:SHOWN_MAX]}' not found; name it under control.workspaces")


def _place(route: Route) -> tuple[bool, bool, str]:
    """The users' route first, then further ones by name, the sandbox's own last."""
    return route.name == SYSTEM_ROUTE, route.name != USER_ROUTE, route.name


def canonical_name(route_name: str, *, allows_extra: bool = False) -> str:
    """The name that a route is stored under. Raises InvalidArgument for any other."""
    name = route_name.strip()
    if name in ("", USER_ROUTE):
        return USER_ROUTE
    if name == SYSTEM_ROUTE:
        return SYSTEM_ROUTE
    if allows_extra and EXTRA_NAME.fullmatch(name) is not None:
        return name
    raise InvalidArgument(f"unknown route_name '{name[:SHOWN_MAX]}'; use '{USER_ROUTE}' or '{SYSTEM_ROUTE}'")


def _check(wanted: RouteRequest) -> None:
    for what, value, bytes_max in (
        ("provider_name", wanted.provider_name, NAME_BYTES_MAX),
        ("model_id", wanted.model_id, MODEL_BYTES_MAX),
    ):
        if not value.strip():
            raise InvalidArgument(f"{what} is required")
        if len(value.encode()) > bytes_max:
            raise InvalidArgument(f"{what} is longer than {bytes_max} bytes")


def _no_provider(name: str) -> Unmet:
    return Unmet(f"provider '{name}' not found; create it with: kinference provider create")
