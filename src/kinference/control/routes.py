"""The inference routes: set, get, delete, and all of them resolved."""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass

from kinference.control.bundle import Bundle, BundledRoute, LeftOut, bundled
from kinference.control.catalogue import Catalogue, Provider, Route
from kinference.control.credentials import Credentials
from kinference.control.errors import Missing, Referred, StoreFailed, Unmet
from kinference.control.providers import AwsRecord, Resolved, resolve, resolve_aws
from kinference.control.verify import ValidatedEndpoint, Verifier
from kinference.errors import InvalidArgument
from kinference.observe.metrics import CONTROL_LEFT_OUT, Metrics

USER_ROUTE, SYSTEM_ROUTE = "inference.local", "sandbox-system"
EXTRA_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
"""Further routes for a sandbox's programs, beside the contract's two; a protocol goes to the first that speaks it."""
WORKSPACE = "default"

NAME_BYTES_MAX = 253
MODEL_BYTES_MAX = 1024
SHOWN_MAX = 80

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
    workspace: str = ""
    allows_extra: bool = False
    """Whether the name may be one beside the contract's two, which its own callers may not use."""
    expected_version: int | None = None
    """The version that is to be replaced, where the caller has read it; None: whatever there is."""


@dataclass(frozen=True, slots=True)
class RouteSet:
    """A route as it was stored, and what was tried before."""

    route: Route
    validated: ValidatedEndpoint | None


class Routes:
    """The rules of the routes. `actor` in each change is who asked, for the audit log."""

    def __init__(self, catalogue: Catalogue, credentials: Credentials, verifier: Verifier, metrics: Metrics) -> None:
        self._catalogue, self._credentials, self._verifier = catalogue, credentials, verifier
        self._metrics = metrics
        self._told: tuple[LeftOut, ...] = ()

    async def set(self, wanted: RouteRequest, actor: str) -> RouteSet:
        """Point a route at a provider and a model. Nothing is stored unless all is well."""
        check_workspace(wanted.workspace)
        name = canonical_name(wanted.route_name, allows_extra=wanted.allows_extra)
        _check(wanted)
        provider = await self._catalogue.provider(wanted.provider_name)
        if provider is None:
            raise _no_provider(wanted.provider_name)
        resolved = resolve(provider, wanted.model_id, self._credentials.reveal)
        validated = None if wanted.no_verify else await self._verifier.verify(provider.name, resolved)
        route = Route(name, provider.name, wanted.model_id, wanted.timeout_secs)
        try:
            version = await self._catalogue.write_route(route, wanted.expected_version)
        except Referred:
            raise _no_provider(wanted.provider_name) from None
        _AUDIT.info(
            "route set",
            extra={"actor": actor, "route": name, "provider": provider.name, "model": route.model_id, "to": version},
        )
        return RouteSet(Route(name, route.provider_name, route.model_id, route.timeout_secs, version), validated)

    async def get(self, route_name: str, workspace: str = "", *, allows_extra: bool = False) -> Route:
        """As stored; the provider may be gone or broken. Raises Missing when it was never set."""
        check_workspace(workspace)
        name = canonical_name(route_name, allows_extra=allows_extra)
        route = await self._catalogue.route(name)
        if route is None:
            raise Missing(f"inference route '{name}' is not configured; set it with: kinference route set")
        if not route.provider_name.strip() or not route.model_id.strip():
            raise Unmet(f"inference route '{name}' is stored without its provider or model; set it again")
        return route

    async def all(self) -> Sequence[Route]:
        """By name, as stored."""
        return await self._catalogue.routes()

    async def delete(self, route_name: str, actor: str, workspace: str = "", *, allows_extra: bool = False) -> bool:
        """Whether there was one."""
        check_workspace(workspace)
        name = canonical_name(route_name, allows_extra=allows_extra)
        deleted = await self._catalogue.delete_route(name)
        self._metrics.gauge(CONTROL_LEFT_OUT, 0, name)
        _AUDIT.info("route deleted", extra={"actor": actor, "route": name, "existed": deleted})
        return deleted

    async def bundle(self) -> Bundle:
        """All routes, resolved now. One that cannot be is left out, and said so; it takes no other down with it."""
        stored = sorted(await self._catalogue.routes(), key=_place)
        providers = {provider.name: provider for provider in await self._catalogue.providers()} if stored else {}
        found = [self._bundled(route, providers) for route in stored]
        left_out = tuple(each for each in found if isinstance(each, LeftOut))
        self._tell(left_out)
        for route, each in zip(stored, found, strict=True):
            self._metrics.gauge(CONTROL_LEFT_OUT, isinstance(each, LeftOut), route.name)
        return Bundle(tuple(each for each in found if isinstance(each, BundledRoute)), left_out)

    def resolved(self, provider: Provider, model_id: str) -> Resolved:
        """A provider as it is now, for one model. Raises InvalidArgument, Unmet or StoreFailed."""
        return resolve(provider, model_id, self._credentials.reveal)

    def resolved_aws(self, provider: Provider) -> AwsRecord:
        """A provider of Bedrock's as it is now. Raises InvalidArgument, Unmet or StoreFailed."""
        return resolve_aws(provider, self._credentials.reveal)

    def _bundled(self, route: Route, providers: dict[str, Provider]) -> BundledRoute | LeftOut:
        provider = providers.get(route.provider_name)
        if provider is None:
            return LeftOut(route.name, f"its provider '{route.provider_name}' was not found")
        try:
            return bundled(route.name, self.resolved(provider, route.model_id), route.timeout_secs)
        except (InvalidArgument, Unmet, StoreFailed) as error:
            return LeftOut(route.name, str(error))

    def _tell(self, left_out: tuple[LeftOut, ...]) -> None:
        """Log what is new: sandboxes poll every few seconds."""
        for each in set(left_out) - set(self._told):
            _log.error("a route is left out of the bundle", extra={"route": each.name, "reason": each.reason})
        self._told = left_out


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


def check_workspace(workspace: str) -> None:
    """There is one; later clients name it. Raises Missing for any other."""
    if workspace not in ("", WORKSPACE):
        raise Missing(f"workspace '{workspace[:SHOWN_MAX]}' not found")


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
