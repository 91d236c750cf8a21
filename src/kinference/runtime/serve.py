"""`kinference serve` without its flags: run until asked to stop, reload when asked or when the file changes."""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, replace
from pathlib import Path

from kinference.config.schema import Config
from kinference.config.watch import Reloader, watch_file
from kinference.errors import ConfigError
from kinference.runtime import collector
from kinference.runtime.exposure import refuse_exposure
from kinference.runtime.planes import ALL, Plane
from kinference.runtime.service import Service, running, write_ports
from kinference.runtime.signals import STOPPING, deadly, each, requested
from kinference.runtime.wires import Wire

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What the command line adds to a configuration."""

    config: Config
    announce: Callable[[str], None]
    """Told the ready line."""
    file: Path | None = None
    """The configuration's file, watched for changes."""
    reloader: Reloader | None = None
    ports_file: Path | None = None
    wire: Wire = Wire.OWN
    insecure: bool = False
    """Whether it may listen where strangers can connect and nobody asks them for a credential."""
    planes: frozenset[Plane] = ALL


async def serve(options: ServeOptions) -> None:
    """Run the service until SIGTERM or SIGINT, then drain; a second signal ends the process at once.

    Raises ConfigError when a port cannot be had.
    """
    with requested(signal.SIGHUP) as hangup:  # from first to last: one that comes early is answered once it is ready
        await _serve(options, hangup)


async def _serve(options: ServeOptions, hangup: asyncio.Event) -> None:
    async with running(options.config, options.wire, options.planes) as service:
        with requested(*STOPPING) as stop:
            await service.settled()
            if options.ports_file is not None:
                write_ports(options.ports_file, service.ports)
            options.announce(ready_line(service))
            async with asyncio.TaskGroup() as group:
                reloads = [group.create_task(work) for work in _reloads(service, options, hangup)]
                await stop.wait()
                for task in reloads:
                    task.cancel()
        drain_timeout = service.config.limits.drain_timeout
        with deadly(*STOPPING):
            _log.info("draining for at most %g s; a second signal ends it at once", drain_timeout)
            await service.drain(drain_timeout)


def ready_line(service: Service) -> str:
    """One line that a script can wait for and a person can click on."""
    listen, ports = service.config.listen, service.ports
    scheme = "http://" if listen.tls is None else "https://"
    listeners = (
        ("picker ", listen.picker, ports.picker),
        ("control ", listen.control, ports.control),
        (f"gateway {scheme}", listen.gateway, ports.gateway),
        (f"admin {scheme}", listen.admin, ports.admin),
    )
    told = ", ".join(f"{what}{replace(address, port=port)}" for what, address, port in listeners if port)
    return f"kinference: ready, {told}"


def _reloads(service: Service, options: ServeOptions, hangup: asyncio.Event) -> list[Coroutine[None, None, None]]:
    if options.reloader is None or options.file is None:
        return []
    watched = watch_file(options.file, look=options.reloader.fingerprint, known=options.reloader.loaded)
    return [_reload_on(source, service, options) for source in (each(hangup), watched)]


async def _reload_on(source: AsyncIterator[None], service: Service, options: ServeOptions) -> None:
    assert options.reloader is not None, "only a file is read again"
    async for _ in source:
        with collector.at_rest():
            fresh = await asyncio.to_thread(options.reloader.reload)
        if fresh is None:
            continue
        try:
            refuse_exposure(
                replace(fresh, listen=options.config.listen), insecure=options.insecure, planes=options.planes
            )
            service.apply(fresh)
        except ConfigError as error:
            _log.error("configuration not taken over, the old one stays: %s", error)
        else:
            _log.info("configuration taken over")
