"""The admin port: what Prometheus, Kubernetes and people read. It shows no body and no secret."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from kinference.dashboard.changes import asked
from kinference.dashboard.control import PROVIDERS, ROUTES, ControlApi
from kinference.dashboard.endpoints import ENDPOINTS, EndpointsApi
from kinference.dashboard.page import Page
from kinference.errors import InvalidArgument
from kinference.observe.metrics import Metrics
from kinference.vocabulary import Role
from kinference.wire.access import Access, Denied, Unauthenticated
from kinference.wire.exchange import Exchange, respond
from kinference.wire.strangers import OwnNames, refuse_other_names, refuse_pages

DECISIONS_SHOWN = 50
TENANTS_SHOWN = 100
_JSON = b"application/json"
_TEXT = b"text/plain; charset=utf-8"
_PROMETHEUS = b"text/plain; version=0.0.4; charset=utf-8"
_NO_LIMIT = b"limit must be a whole number from 1; for example ?limit=20\n"
_METRICS = "/metrics"
_OPEN = ("/healthz", "/readyz")
"""What whoever keeps the process alive asks, and has no token to ask with."""


@dataclass(frozen=True, slots=True)
class AdminSources:
    """Where the admin port reads what it shows."""

    metrics: Metrics
    endpoints: Callable[[], Sequence[object]]
    """The live table of endpoints: anything msgspec can encode."""
    recordings: Callable[[int], Sequence[object]]
    """The newest N decisions with all that went into them, newest first; none unless they are recorded."""
    refusals: Callable[[int], Sequence[object]]
    """The same of the newest N requests that filters or rules refused."""
    decisions: Callable[[int], Sequence[object]]
    """The newest N decisions, explained, newest first."""
    tenants: Callable[[str | None, int], Sequence[Mapping[str, object]]]
    """The use of the first N tenants that have limits, by name, or of those that follow one."""
    waiting: Callable[[], Sequence[object]]
    """Who waits for an engine to have room, by pools."""
    discovery: Callable[[], Sequence[object]]
    """How the discovery of each pool fares whose endpoints are not listed."""
    unready_reason: Callable[[], str | None]
    """None when requests can be served, else what is missing."""
    refresh: Callable[[], None]
    """Called before each scrape, so that gauges are current."""
    control: ControlApi | None
    """Answers for provider records and routes, where this process keeps them."""
    drains: EndpointsApi | None
    """Begins and ends drains, where this process picks. Nothing else here changes anything."""
    access: Access
    """Who may ask."""
    names: OwnNames
    """What the port is called."""
    is_local: bool
    """Whether only this machine reaches the port, in clear text: a web page may then ask it under any name."""


class Admin:
    """Routes the admin port's requests."""

    def __init__(self, sources: AdminSources) -> None:
        self._sources, self._page = sources, Page()
        self._routes: Mapping[str, Callable[[Exchange], Awaitable[None]]] = {
            _METRICS: self._metrics,
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            ENDPOINTS: self._endpoints,
            "/api/v1/decisions": self._decisions,
            "/api/v1/recordings": self._recordings,
            "/api/v1/refusals": self._refusals,
            "/api/v1/tenants": self._tenants,
            "/api/v1/waiting": self._waiting,
            "/api/v1/discovery": self._discovery,
        }

    async def handle(self, exchange: Exchange) -> None:
        """Answer one request, of whom may ask it."""
        try:
            asker = self._asker(exchange)
        except Unauthenticated as error:
            challenge = (b"www-authenticate", b'Bearer realm="kinference"')
            await _refuse(exchange, 401, "UNAUTHENTICATED", error, challenge)
        except Denied as error:
            await _refuse(exchange, 403, "PERMISSION_DENIED", error)
        else:
            await self._answer(exchange, asker)

    def _asker(self, exchange: Exchange) -> str:
        if exchange.path in _OPEN or self._page.serves(exchange.path):
            return ""
        sources, headers = self._sources, exchange.headers
        asker = sources.access.check(headers, *_roles(exchange.path), names=exchange.peer_names).name
        if sources.is_local and not sources.access.asks:
            refuse_other_names(headers, sources.names)
        refuse_pages(headers, sources.names, asker)
        return asker

    async def _answer(self, exchange: Exchange, asker: str) -> None:
        """Unknown paths are told what there is."""
        route, control, drains = self._routes.get(exchange.path), self._sources.control, self._sources.drains
        if control is not None and control.serves(exchange.path):
            await control.handle(exchange, asker)
        elif drains is not None and drains.serves(exchange.path):
            await drains.handle(exchange, asker)
        elif route is None and not self._page.serves(exchange.path):
            known = "\n".join(sorted(["/", *self._routes, *((PROVIDERS, ROUTES) if control is not None else ())]))
            await respond(exchange, 404, f"not found; this port serves:\n{known}\n".encode(), _TEXT)
        elif exchange.method not in ("GET", "HEAD"):
            await respond(exchange, 405, b"method not allowed; use GET\n", _TEXT, (b"allow", b"GET, HEAD"))
        else:
            await (route or self._page.handle)(exchange)

    async def _metrics(self, exchange: Exchange) -> None:
        self._sources.refresh()
        page = await asyncio.to_thread(self._sources.metrics.exposition)
        await respond(exchange, 200, page, _PROMETHEUS)

    async def _healthz(self, exchange: Exchange) -> None:
        await respond(exchange, 200, b"ok\n", _TEXT)

    async def _readyz(self, exchange: Exchange) -> None:
        reason = self._sources.unready_reason()
        if reason is None:
            await respond(exchange, 200, b"ready\n", _TEXT)
        else:
            await respond(exchange, 503, f"not ready: {reason}\n".encode(), _TEXT)

    async def _endpoints(self, exchange: Exchange) -> None:
        await self._json(exchange, {"endpoints": self._sources.endpoints()})

    async def _waiting(self, exchange: Exchange) -> None:
        await self._json(exchange, {"waiting": self._sources.waiting()})

    async def _discovery(self, exchange: Exchange) -> None:
        await self._json(exchange, {"discovery": self._sources.discovery()})

    async def _tenants(self, exchange: Exchange) -> None:
        limit = _limit(exchange.query, TENANTS_SHOWN)
        if limit is None:
            await respond(exchange, 400, _NO_LIMIT, _TEXT)
            return
        after = _last(exchange.query, "after")
        shown = self._sources.tenants(after, limit + 1)  # one more, to know of
        following = shown[limit - 1]["tenant"] if len(shown) > limit else None
        await self._json(exchange, {"tenants": shown[:limit], "next": following})

    async def _decisions(self, exchange: Exchange) -> None:
        await self._newest(exchange, "decisions", self._sources.decisions)

    async def _recordings(self, exchange: Exchange) -> None:
        await self._newest(exchange, "recordings", self._sources.recordings)

    async def _refusals(self, exchange: Exchange) -> None:
        await self._newest(exchange, "refusals", self._sources.refusals)

    async def _newest(self, exchange: Exchange, name: str, source: Callable[[int], Sequence[object]]) -> None:
        limit = _limit(exchange.query, DECISIONS_SHOWN)
        if limit is None:
            await respond(exchange, 400, _NO_LIMIT, _TEXT)
            return
        await self._json(exchange, {name: source(limit)})

    async def _json(self, exchange: Exchange, value: object) -> None:
        content = msgspec.json.encode(
            value, enc_hook=dict
        )  # a configuration's mappings are of a kind that JSON has not
        await respond(exchange, 200, content + b"\n", _JSON)


def _roles(path: str) -> tuple[Role, ...]:
    """The roles that open a path; a scraper's opens nothing else."""
    return (Role.ADMIN, Role.METRICS) if path == _METRICS else (Role.ADMIN,)


async def _refuse(exchange: Exchange, status: int, code: str, error: Exception, *extra: tuple[bytes, bytes]) -> None:
    answer = {"error": {"code": code, "message": str(error)}}
    await respond(exchange, status, msgspec.json.encode(answer) + b"\n", _JSON, *extra)


def _limit(query: str, default: int) -> int | None:
    """How many of a list a query asks for; None when it asks for nonsense."""
    try:
        text = _last(query, "limit")
    except InvalidArgument:
        return None
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 6):  # noqa: PLR2004 - six digits bound the number
        return None
    return int(text) or None


def _last(query: str, name: str) -> str | None:
    """What a query gives for a field, at last; None without it."""
    values = asked(query, keeps_empty=True).get(name)
    return values[-1] if values else None
