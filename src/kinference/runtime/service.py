"""One process of kinference, running: every part wired to the others, and what can be asked of the whole."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import msgspec

from kinference.config.env import PREFIX, process_environment
from kinference.config.schema import Config, Peer
from kinference.config.values import HostPort
from kinference.control.errors import StoreFailed
from kinference.errors import ConfigError
from kinference.gateway.course import Entry
from kinference.ids import Seconds
from kinference.runtime.build import (
    Handlers,
    Parts,
    access_credentials,
    build_admin,
    build_gateway,
    build_parts,
    build_servers,
)
from kinference.runtime.control import opened_store
from kinference.runtime.discovery import Ways, ways
from kinference.runtime.lag import watch_lag
from kinference.runtime.links import Links, link
from kinference.runtime.planes import ALL, Plane
from kinference.runtime.rules import admission_rules, apply, backend_specs, has_budgets
from kinference.runtime.spending import Spending
from kinference.runtime.views import unready_reason
from kinference.runtime.wires import Wire, http_upstream

DRAIN_POLL: Seconds = 0.05
PARTING: Seconds = 1.0
"""So long before the end, a tenth of a shorter time, requests without an answer are told of it."""

_log = logging.getLogger(__name__)


class Ports(msgspec.Struct, frozen=True, omit_defaults=True):
    """The ports in use, as the ready line and the ports file tell them; 0: that plane is another process."""

    picker: int = 0
    gateway: int = 0
    admin: int = 0
    control: int = 0
    """The control plane's own port, where there is no picker for it to stand beside."""


class Service:
    """The planes of one process. Made by `running`."""

    def __init__(self, config: Config, parts: Parts, links: Links, spending: Spending, ways: Ways) -> None:
        self.config = config
        self._parts, self._links, self._spending, self._ways = parts, links, spending, ways
        parts.discoveries.configure(ways.wanted(config))
        links.backends.on_change(self._follow_backends)
        self._follow_backends()
        self._count_money()
        self._entry = Entry(build_gateway(config, parts, links.picker, links.backends).handle)
        admin = build_admin(config, parts, links.planes, links.control, self.unready_reason)
        control = links.control.service if links.control is not None else None
        handlers = Handlers(self._entry.handle, admin.handle)
        self._servers = build_servers(config, parts, links.planes, control, handlers)
        self.ports = Ports()

    @property
    def _routes_requests(self) -> bool:
        return not self._links.planes.isdisjoint((Plane.PICKER, Plane.GATEWAY))

    def unready_reason(self) -> str | None:
        """None when requests can be served, else what is missing."""
        if not self._routes_requests:
            return None
        parts = self._parts
        trouble = self._links.trouble()
        return trouble or unready_reason(parts.fleet, parts.discoveries.why_none(), draining=parts.desk.is_draining)

    def _follow_backends(self) -> None:
        """A record or a route leads elsewhere: what was wrong with its backends may have been put right."""
        self._parts.fleet.set_backends(backend_specs(self.config, self._links.backends.resolved))

    def _count_money(self) -> None:
        self._spending.is_wanted = Plane.PICKER in self._links.planes and has_budgets(self.config)

    async def listen(self) -> None:
        """Bind all ports. Raises ConfigError, naming the address, when one cannot be had."""
        listen, servers = self.config.listen, self._servers
        ports: dict[str, int] = {}
        if servers.rpc is not None:
            name = Plane.PICKER.value if Plane.PICKER in self._links.planes else Plane.CONTROL.value
            with _naming(f"listen.{name}", listen.picker if name == Plane.PICKER.value else listen.control):
                ports[name] = await servers.rpc.start()
        if servers.gateway is not None:
            with _naming("listen.gateway", listen.gateway):
                ports["gateway"] = await servers.gateway.start(listen.gateway.host, listen.gateway.port)
        with _naming("listen.admin", listen.admin):
            ports["admin"] = await servers.admin.start(listen.admin.host, listen.admin.port)
        self.ports = msgspec.convert(ports, Ports)

    async def settled(self) -> None:
        """Wait until every endpoint has been looked at once."""
        if self._routes_requests:
            await self._parts.discoveries.settle()
            await self._parts.watcher.settle()

    def in_flight(self) -> Mapping[str, int]:
        """Requests at each destination that have not ended."""
        rows = self._parts.router.snapshot(self._parts.clock.now())
        return {row.address or row.pool: row.requests for row in rows}

    def apply(self, config: Config) -> None:
        """Take over a new configuration between two requests. Addresses and limits are for the next start."""
        now, then = ((each.listen, each.limits, each.control, _places(each)) for each in (self.config, config))
        if now != then:
            _log.warning("listen, limits, control or planes have changed: they take effect at the next start")
        apply(config, self._parts.router, self._parts.fleet, self._links.backends.resolved)
        self._parts.desk.admission.reconfigure(admission_rules(config))
        self.config = config
        self._links.tokens.replace(config.planes)
        self._count_money()
        self._parts.access.replace(*access_credentials(config, self._parts.clock.wall))
        self._entry.handler = build_gateway(config, self._parts, self._links.picker, self._links.backends).handle
        self._links.backends.configure(config)
        self._parts.discoveries.configure(self._ways.wanted(config))
        self._parts.watcher.reconcile()

    async def drain(self, timeout: Seconds) -> None:
        """Take nothing new, and let what is under way finish for so long; the admin port tells how far, to the end."""
        parts, servers = self._parts, self._servers
        if servers.rpc is not None:
            await servers.rpc.stop_advertising()
        parts.desk.drain()
        deadline = parts.clock.now() + timeout
        if servers.gateway is not None:
            parting = asyncio.get_running_loop().call_later(timeout - min(PARTING, timeout / 10), parts.departure.end)
            await servers.gateway.drain(timeout)
            parting.cancel()
        while not parts.desk.is_idle and parts.clock.now() < deadline:  # noqa: ASYNC110 - the desk tells nobody
            await asyncio.sleep(DRAIN_POLL)
        if servers.rpc is not None:
            await servers.rpc.drain(0)
        await servers.admin.drain(0)


def _places(config: Config) -> list[Peer | None]:
    """Where other planes are; a token of theirs is taken over at once."""
    peers = (config.planes.picker, config.planes.control)
    return [None if peer is None else replace(peer, token=None) for peer in peers]


@contextmanager
def _naming(key: str, address: HostPort) -> Iterator[None]:
    """Say which key of the configuration asked for an address that cannot be had."""
    try:
        yield
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else "the port is in use, or the address is not of this machine"
        variable = PREFIX + key.replace(".", "_").upper()
        fix = f"free it, or set {key} or {variable} to another; port 0 takes a free one"
        raise ConfigError(key, f"cannot listen on {address}: {why}", fix) from None


async def open_budgets(spending: Spending) -> None:
    """Find out what has been spent before anything is spent. Raises ConfigError when the store cannot tell."""
    try:
        await spending.book()
    except StoreFailed as error:
        raise ConfigError("control.store", str(error), "budgets need it") from error


@asynccontextmanager
async def running(config: Config, wire: Wire = Wire.OWN, planes: frozenset[Plane] = ALL) -> AsyncIterator[Service]:
    """A service that listens, watches its fleet and reclaims what callers leave behind, until the block is left."""
    async with AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(http_upstream(wire))
        parts = build_parts(config, upstream, wire)
        links = await link(config, parts, planes, process_environment(), stack)
        store = await stack.enter_async_context(opened_store(config, process_environment()))
        spending = Spending(parts.router.accounts, store, parts.clock)
        known = await stack.enter_async_context(ways(upstream, process_environment(), Random(config.routing.seed)))
        service = Service(config, parts, links, spending, known)
        await open_budgets(spending)
        stack.push_async_callback(spending.try_to_book)
        stack.push_async_callback(service.drain, 0)
        stack.callback(parts.feeds.close)
        await service.listen()
        background = await stack.enter_async_context(asyncio.TaskGroup())
        works = [links.backends.run(), watch_lag(parts.clock, parts.metrics), *(work() for work in links.works)]
        if not planes.isdisjoint((Plane.PICKER, Plane.GATEWAY)):
            works += [parts.watcher.run(), parts.discoveries.run()]
        if Plane.PICKER in planes:
            parts.watcher.accompany(parts.feeds.start)
            works += [parts.timer.run(), parts.prompt_tokens.run(), spending.run()]
        if parts.certificates is not None:
            works.append(parts.certificates.run())
        for work in works:
            stack.callback(background.create_task(work).cancel)
        yield service


def write_ports(path: Path, ports: Ports) -> None:
    """Tell a script where we listen. The file appears whole."""
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_bytes(msgspec.json.encode(ports) + b"\n")
    unfinished.replace(path)
