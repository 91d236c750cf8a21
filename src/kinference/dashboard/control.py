"""Provider records and inference routes on the admin port, as JSON. It takes secrets in and never gives one out."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from kinference.config.values import DEFAULT_WORKSPACE, HostPort
from kinference.control.bundle import LeftOut
from kinference.control.catalogue import Route
from kinference.control.errors import Missing, Overtaken, StoreFailed, Taken, Unmet
from kinference.control.registry import ProviderChange, Registry, redacted
from kinference.control.routes import RouteRequest, Routes
from kinference.control.scope import Scope
from kinference.control.verify import ValidatedEndpoint
from kinference.errors import InvalidArgument, KinferenceError
from kinference.wire.exchange import Exchange, header, respond

BODY_BYTES_MAX = 1024 * 1024
ACTOR_CHARS_MAX = 128
PROVIDERS, ROUTES = "/api/v1/providers", "/api/v1/routes"
_JSON = b"application/json"

STATUS: Mapping[type[KinferenceError], tuple[int, str]] = {
    InvalidArgument: (400, "INVALID_ARGUMENT"),
    Unmet: (400, "FAILED_PRECONDITION"),
    Missing: (404, "NOT_FOUND"),
    Taken: (409, "ALREADY_EXISTS"),
    Overtaken: (409, "ABORTED"),
    StoreFailed: (500, "INTERNAL"),
}
"""Every failure, with the name that the gRPC interface has for it."""

Asked = TypeVar("Asked", bound=msgspec.Struct)

_log = logging.getLogger(__name__)


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


@dataclass(frozen=True, slots=True)
class Request:
    """An exchange, and who is behind it, for the audit log."""

    exchange: Exchange
    actor: str


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
        try:
            _refuse_strangers(exchange)
            status, answer = 200, await self._answer(Request(exchange, _actor(exchange, asker)))
        except KinferenceError as error:
            if type(error) not in STATUS:
                raise
            status, answer = _refusal(error)
        await respond(exchange, status, msgspec.json.encode(answer) + b"\n", _JSON)

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
        asked = await _body(request.exchange, NewProvider)
        return redacted(await self._registry.create(asked.name, asked.change(), request.actor))

    async def _provider(self, _request: Request, name: str) -> object:
        return redacted(await self._registry.get(name))

    async def _update_provider(self, request: Request, name: str) -> object:
        asked = await _body(request.exchange, ProviderUpdate)
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
        asked = await _body(request.exchange, RouteUpdate)
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
    asked = parse_qs(request.exchange.query, max_num_fields=16)
    if not asked.keys() <= {"workspace", "sandbox"}:
        raise InvalidArgument("the query may name a workspace and a sandbox, nothing else")
    return Scope(asked.get("workspace", [DEFAULT_WORKSPACE])[-1], asked.get("sandbox", [""])[-1])


def _endpoints(validated: ValidatedEndpoint | None) -> Sequence[Mapping[str, str]]:
    return [] if validated is None else [{"url": validated.url, "protocol": validated.protocol}]


def _refusal(error: KinferenceError) -> tuple[int, object]:
    status, code = STATUS[type(error)]
    if isinstance(error, StoreFailed):
        _log.error("the store failed a request: %s", error)
    return status, {"error": {"code": code, "message": str(error)}}


def _refuse_strangers(exchange: Exchange) -> None:
    """A web page that somebody looks at on this machine can send requests here; it cannot hide where it is from."""
    origin = header(exchange.headers, b"origin")
    if origin is not None and not _is_loopback(urlsplit(origin.decode("latin-1")).hostname or ""):
        raise InvalidArgument("requests of web pages from elsewhere are refused")
    host = (header(exchange.headers, b"host") or b"").decode("latin-1")
    if origin is not None and not _is_loopback(urlsplit(f"//{host}").hostname or ""):
        raise InvalidArgument("requests of web pages under another name of this machine are refused")


def _is_loopback(host: str) -> bool:
    return HostPort(host, 0).is_loopback


async def _body(exchange: Exchange, kind: type[Asked]) -> Asked:
    """The request's JSON. Only that type is taken: no web page may send it across sites without asking first."""
    content_type = (header(exchange.headers, b"content-type") or b"").partition(b";")[0].strip().lower()
    if content_type != _JSON:
        raise InvalidArgument("the body must be application/json")
    content = b""
    async for chunk in exchange.body():
        content += chunk
        if len(content) > BODY_BYTES_MAX:
            raise InvalidArgument(f"the body is over {BODY_BYTES_MAX} bytes")
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidArgument(f"the body is not understood: {error}") from None


def _actor(exchange: Exchange, asker: str) -> str:
    """Who asks, as far as the request tells."""
    agent = (header(exchange.headers, b"user-agent") or b"").decode("latin-1")[:ACTOR_CHARS_MAX]
    return " ".join(part for part in ("admin", asker, exchange.peer, agent) if part).rstrip()
