"""`inference.local` of one sandbox: routes from a file or from the control plane, served plainly and in tunnels."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import grpc

from kinference.config.values import HostPort
from kinference.errors import ConfigError
from kinference.runtime.channels import CHANNEL_OPTIONS, ClientFiles, FollowedChannel
from kinference.runtime.clock import SystemClock
from kinference.runtime.wires import Wire, http_upstream
from kinference.sandbox.authority import Authority
from kinference.sandbox.polling import BundleClient, Poller, interval_of
from kinference.sandbox.router import SandboxRouter
from kinference.sandbox.routes import RouteTable
from kinference.sandbox.routes_file import read_routes
from kinference.sandbox.tunnel import Tunnels
from kinference.wire.http_server import OwnHttpServer

INTERVAL_VARIABLE = "OPENSHELL_ROUTE_REFRESH_INTERVAL_SECS"
TOKEN_VARIABLE, TOKEN_FILE_VARIABLE = "OPENSHELL_SANDBOX_TOKEN", "OPENSHELL_SANDBOX_TOKEN_FILE"
TLS_VARIABLES = ("OPENSHELL_TLS_CA", "OPENSHELL_TLS_KEY", "OPENSHELL_TLS_CERT")
SERVER_NAME_VARIABLE = "OPENSHELL_GATEWAY_TLS_SERVER_NAME"


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """Where routes come from (a file wins) and where to listen."""

    listen: HostPort
    proxy: HostPort
    variables: Mapping[str, str]
    routes_file: Path | None = None
    endpoint: str = ""
    ca_file: Path | None = None


@dataclass(frozen=True, slots=True)
class SandboxPorts:
    """The ports in use."""

    listen: int
    proxy: int


@asynccontextmanager
async def sandbox_router(options: SandboxOptions) -> AsyncIterator[SandboxPorts]:
    """Serves until the block is left. Raises ConfigError for routes or ports that cannot be had."""
    async with AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(http_upstream(Wire.OWN))
        table = RouteTable(read_routes(options.routes_file, options.variables) if options.routes_file else ())
        router = SandboxRouter(table, upstream)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kinference-")))
        inner, plain = (OwnHttpServer(router.handle, SystemClock()) for _ in range(2))
        for server in (inner, plain):
            stack.push_async_callback(server.close)
        await inner.start_unix(str(folder / "http"))
        authority = Authority()
        tunnels = Tunnels(authority.server_context(), folder / "http")
        stack.callback(tunnels.close)
        ports = SandboxPorts(await _bound(plain.start, options.listen), await _bound(tunnels.start, options.proxy))
        if options.ca_file is not None:
            _write(options.ca_file, authority.pem())
        if options.routes_file is None:
            poller, following = await _poller(options, table, stack)
            group = await stack.enter_async_context(asyncio.TaskGroup())
            for work in (poller.run(), following):
                stack.callback(group.create_task(work).cancel)
        yield ports


def _write(file: Path, content: bytes) -> None:
    try:
        file.write_bytes(content)
    except OSError as error:
        raise ConfigError("ca-file", f"{file} cannot be written: {error.strerror}", "check the folder") from None


async def _bound(start: Callable[[str, int], Awaitable[int]], address: HostPort) -> int:
    try:
        return await start(address.host, address.port)
    except OSError as error:
        raise ConfigError(str(address), f"cannot be listened on: {error.strerror}", "port 0 takes a free one") from None


async def _poller(
    options: SandboxOptions, table: RouteTable, stack: AsyncExitStack
) -> tuple[Poller, Coroutine[None, None, None]]:
    """Its first fetch is done when this returns, so that whoever waits for the ready line finds routes. With it what
    has it follow its certificates.
    """
    channel = _channel(options)
    stack.push_async_callback(channel.close)
    client = BundleClient(channel.channel, lambda: _token(options.variables))
    poller = Poller(client.fetch, table, interval_of(options.variables.get(INTERVAL_VARIABLE)))
    await poller.poll()
    return poller, channel.run(client.use)


def _channel(options: SandboxOptions) -> FollowedChannel:
    scheme, _, target = options.endpoint.partition("://")
    target = target.rstrip("/")
    if scheme == "http":
        return FollowedChannel((), lambda: grpc.aio.insecure_channel(target, CHANNEL_OPTIONS))
    ca, key, cert = ((name, options.variables.get(name)) for name in TLS_VARIABLES)
    server_name = options.variables.get(SERVER_NAME_VARIABLE)
    names = (("grpc.ssl_target_name_override", server_name),) if server_name else ()
    files = ClientFiles(ca, key, cert)
    opened = partial(grpc.aio.secure_channel, target, options=(*CHANNEL_OPTIONS, *names))
    return FollowedChannel(files.paths, lambda: opened(credentials=files.credentials()))


def _token(environ: Mapping[str, str]) -> str:
    if environ.get(TOKEN_VARIABLE):
        return environ[TOKEN_VARIABLE].strip()
    file = environ.get(TOKEN_FILE_VARIABLE)
    try:
        return Path(file).read_text(encoding="ascii").strip() if file else ""
    except (OSError, ValueError):
        return ""
