"""One process of kinference, running: every part wired to the others, and what can be asked of the whole."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import msgspec

from kinference.config.env import PREFIX, process_environment
from kinference.config.schema import Config
from kinference.config.values import HostPort
from kinference.errors import ConfigError
from kinference.ids import Seconds
from kinference.runtime.build import Parts, access_tokens, build_gateway, build_parts, build_servers
from kinference.runtime.control import Control, control_plane
from kinference.runtime.lag import watch_lag
from kinference.runtime.rules import apply
from kinference.runtime.wires import Wire, http_upstream
from kinference.wire.exchange import Exchange

DRAIN_POLL: Seconds = 0.05

_log = logging.getLogger(__name__)


class Ports(msgspec.Struct, frozen=True):
    """The ports in use, as the ready line and the ports file tell them."""

    picker: int
    gateway: int
    admin: int


class Service:
    """All planes of one process. Made by `running`."""

    def __init__(self, config: Config, parts: Parts, control: Control) -> None:
        self.config = config
        self._parts, self._control = parts, control
        self._gateway = build_gateway(config, parts, control.backends)
        self._servers = build_servers(config, parts, control, self._serve_gateway)
        self.ports = Ports(0, 0, 0)

    async def _serve_gateway(self, exchange: Exchange) -> None:
        await self._gateway.handle(exchange)

    async def listen(self) -> None:
        """Bind all ports. Raises ConfigError, naming the address, when one cannot be had."""
        listen, servers = self.config.listen, self._servers
        with _naming("listen.picker", listen.picker):
            picker = await servers.picker.start()
        with _naming("listen.gateway", listen.gateway):
            gateway = await servers.gateway.start(listen.gateway.host, listen.gateway.port)
        with _naming("listen.admin", listen.admin):
            admin = await servers.admin.start(listen.admin.host, listen.admin.port)
        self.ports = Ports(picker, gateway, admin)

    async def settled(self) -> None:
        """Wait until every endpoint has been looked at once."""
        await self._parts.watcher.settle()

    def in_flight(self) -> Mapping[str, int]:
        """Requests at each destination that have not ended."""
        rows = self._parts.router.snapshot(self._parts.clock.now())
        return {row.address or row.pool: row.requests for row in rows}

    def apply(self, config: Config) -> None:
        """Take over a new configuration between two requests. Addresses and limits are for the next start."""
        now, then = ((each.listen, each.limits, each.control) for each in (self.config, config))
        if now != then:
            _log.warning("listen, limits or control have changed: they take effect at the next start")
        apply(config, self._parts.router, self._parts.fleet)
        self.config = config
        self._parts.access.replace(access_tokens(config))
        self._gateway = build_gateway(config, self._parts, self._control.backends)
        self._control.backends.configure(config)
        self._parts.watcher.reconcile()

    async def drain(self, timeout: Seconds) -> None:
        """Take nothing new, and let what is under way finish for so long; the admin port tells how far, to the end."""
        parts, servers = self._parts, self._servers
        await servers.picker.stop_advertising()
        parts.desk.drain()
        deadline = parts.clock.now() + timeout
        await servers.gateway.drain(timeout)
        while not parts.desk.is_idle and parts.clock.now() < deadline:  # noqa: ASYNC110 - the desk tells nobody
            await asyncio.sleep(DRAIN_POLL)
        await servers.picker.drain(0)
        await servers.admin.drain(0)


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


@asynccontextmanager
async def running(config: Config, wire: Wire = Wire.OWN) -> AsyncIterator[Service]:
    """A service that listens, watches its fleet and reclaims what callers leave behind, until the block is left."""
    async with AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(http_upstream(wire))
        parts = build_parts(config, upstream, wire)
        control = await stack.enter_async_context(
            control_plane(config, process_environment(), parts.clock, parts.metrics, parts.access)
        )
        control.backends.configure(config)
        await control.backends.refresh()
        service = Service(config, parts, control)
        stack.push_async_callback(service.drain, 0)
        await service.listen()
        background = await stack.enter_async_context(asyncio.TaskGroup())
        works = [
            parts.watcher.run(),
            parts.timer.run(),
            control.backends.run(),
            watch_lag(parts.clock, parts.metrics),
        ]
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
