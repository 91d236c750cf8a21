"""Provider records and inference routes on the admin port, as JSON. It takes secrets in and never gives one out."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated
from urllib.parse import unquote

import msgspec

from kinference.config.values import DEFAULT_WORKSPACE
from kinference.control.bundle import LeftOut
from kinference.control.catalogue import Route
from kinference.control.registry import ProviderChange, Registry, redacted
from kinference.control.routes import RouteRequest, Routes
from kinference.control.scope import Scope
from kinference.control.verify import ValidatedEndpoint
from kinference.dashboard.changes import Request, answer, asked, body
from kinference.errors import InvalidArgument
from kinference.wire.exchange import Exchange

PROVIDERS, ROUTES = "/api/v1/providers", "/api/v1/routes"

Whole = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class ProviderUpdate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a record is to become: entries are merged, an empty value deletes its key."""

    type: str = ""
    credentials: dict[str, str] = {}
    references: dict[str, str] = {}
    config: dict[str, str] = {}

    def change(self) -> ProviderChange:
        return ProviderChange(self.type, self.credentials, self.references, self.config)


class NewProvider(ProviderUpdate, frozen=True, forbid_unknown_fields=True):
    """A record to be made; without a name it gets one."""

    name: str = ""


class RouteUpdate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a route is to be. `version` is the one that it replaces, for callers who read before they write."""

    provider: str = ""
    model: str = ""
    no_verify: bool = False
    timeout_secs: Whole = 0
    version: Whole | None = None


class ControlApi:
    """Answers everything under `/api/v1/providers` and `/api/v1/routes`."""

    def __init__(self, registry: Registry, routes: Routes) -> None:
        self._registry, self._routes = registry, routes
        self._collections: Mapping[tuple[str, str], Callable[[Request], Awaitable[object]]] = {
            (PROVIDERS, "GET"): self._all_providers,
            (PROVIDERS, "POST"): self._create_provider,
            (ROUTES, "GET"): self._all_routes,
        }
        self._members: Mapping[tuple[str, str], Callable[[Request, str], Awaitable[object]]] = {
            (PROVIDERS, "GET"): self._provider,
            (PROVIDERS, "PATCH"): self._update_provider,
            (PROVIDERS, "DELETE"): self._delete_provider,
            (ROUTES, "GET"): self._route,
            (ROUTES, "PUT"): self._set_route,
            (ROUTES, "DELETE"): self._delete_route,
        }

    def serves(self, path: str) -> bool:
        """Whether a path is one of ours."""
        return any(path == base or path.startswith(f"{base}/") for base in (PROVIDERS, ROUTES))

    async def handle(self, exchange: Exchange, asker: str) -> None:
        """Answer one request with JSON, refusals too. `asker` is who showed a token, "" where nobody has to."""
        await answer(exchange, asker, self._answer)

    async def _answer(self, request: Request) -> object:
        exchange = request.exchange
        base = PROVIDERS if exchange.path.startswith(PROVIDERS) else ROUTES
        method = "GET" if exchange.method == "HEAD" else exchange.method
        name = unquote(exchange.path.removeprefix(base).removeprefix("/"))
        if name:
            member = self._members.get((base, method))
            if member is not None:
                return await member(request, name)
        else:
            collection = self._collections.get((base, method))
            if collection is not None:
                return await collection(request)
        raise InvalidArgument(f"{exchange.path} does not know the method {exchange.method[:16]}")

    async def _all_providers(self, _request: Request) -> object:
        return {"providers": [redacted(provider) for provider in await self._registry.all()]}

    async def _create_provider(self, request: Request) -> object:
        asked = await body(request.exchange, NewProvider)
        return redacted(await self._registry.create(asked.name, asked.change(), request.actor))

    async def _provider(self, _request: Request, name: str) -> object:
        return redacted(await self._registry.get(name))

    async def _update_provider(self, request: Request, name: str) -> object:
        asked = await body(request.exchange, ProviderUpdate)
        return redacted(await self._registry.update(name, asked.change(), request.actor))

    async def _delete_provider(self, request: Request, name: str) -> object:
        return {"deleted": await self._registry.delete(name, request.actor)}

    async def _all_routes(self, _request: Request) -> object:
        found = await self._routes.examined()
        return {
            "routes": [
                {**_route(route), "broken": each.reason if isinstance(each, LeftOut) else None} for route, each in found
            ]
        }

    async def _route(self, request: Request, name: str) -> object:
        return _route(await self._routes.get(name, _scope(request), allows_extra=True))

    async def _set_route(self, request: Request, name: str) -> object:
        asked = await body(request.exchange, RouteUpdate)
        wanted = RouteRequest(
            route_name=name,
            provider_name=asked.provider,
            model_id=asked.model,
            no_verify=asked.no_verify,
            timeout_secs=asked.timeout_secs,
            scope=_scope(request),
            allows_extra=True,
            expected_version=asked.version,
        )
        done = await self._routes.set(wanted, request.actor)
        return {**_route(done.route), "validated_endpoints": _endpoints(done.validated)}

    async def _delete_route(self, request: Request, name: str) -> object:
        return {"deleted": await self._routes.delete(name, request.actor, _scope(request), allows_extra=True)}


def _route(route: Route) -> dict[str, object]:
    return {
        "route": route.name,
        "provider": route.provider_name,
        "model": route.model_id,
        "version": route.version,
        "timeout_secs": route.timeout_secs,
        "workspace": route.scope.workspace,
        "sandbox": route.scope.sandbox,
    }


def _scope(request: Request) -> Scope:
    """Whose route is meant: `?workspace=W&sandbox=S`, each of them optional."""
    fields = asked(request.exchange.query)
    if not fields.keys() <= {"workspace", "sandbox"}:
        raise InvalidArgument("the query may name a workspace and a sandbox, nothing else")
    return Scope(fields.get("workspace", [DEFAULT_WORKSPACE])[-1], fields.get("sandbox", [""])[-1])


def _endpoints(validated: ValidatedEndpoint | None) -> Sequence[Mapping[str, str]]:
    return [] if validated is None else [{"url": validated.url, "protocol": validated.protocol}]
