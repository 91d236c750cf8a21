"""The control plane of one process: who gets what of its parts."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from kinference.config.env import state_folder
from kinference.config.schema import Config
from kinference.control.catalogue import Catalogue
from kinference.control.credentials import Credentials
from kinference.control.errors import Referred, StoreFailed
from kinference.control.kubernetes_secrets import KubernetesSecrets
from kinference.control.registry import Registry
from kinference.control.routes import RouteParts, Routes
from kinference.control.service import inference_service
from kinference.control.store.backup import dumped, parsed
from kinference.control.store.base import Store
from kinference.control.store.keys import KeySource
from kinference.control.store.postgres import PostgresStore
from kinference.control.store.sealing import Sealer
from kinference.control.store.sqlite import SqliteStore
from kinference.control.verify import Verifier
from kinference.errors import ConfigError
from kinference.observe.metrics import Metrics
from kinference.ports import Clock
from kinference.runtime.backend_sources import RecordSource
from kinference.runtime.cluster import own_cluster
from kinference.runtime.followed_backends import FollowedBackends
from kinference.wire.access import Access
from kinference.wire.guarded_upstream import GuardedUpstream, admits_any, admits_public
from kinference.wire.http1.upstream import Http1Upstream
from kinference.wire.rpc import RpcService
from kinference.wire.trust import Trust

SQLITE = "sqlite:///"


@dataclass(frozen=True, slots=True)
class Control:
    """What the other planes see of it."""

    service: RpcService
    routes: Routes
    registry: Registry
    backends: FollowedBackends


def build_store(config: Config, environ: Mapping[str, str]) -> Store:
    """The configured store; by default a file of this user's, which appears when something is first stored."""
    place = store_place(config, environ)
    return SqliteStore(place) if isinstance(place, Path) else PostgresStore(place)


def store_place(config: Config, environ: Mapping[str, str]) -> Path | str:
    """The file of the configured store, or the address of its server, which holds no password."""
    address = config.control.store
    if address is None:
        return state_folder(environ) / "control.db"
    return Path(address.removeprefix(SQLITE)) if address.startswith(SQLITE) else address


def build_credentials(environ: Mapping[str, str], kubernetes: KubernetesSecrets | None = None) -> Credentials:
    """Sealing with the configured key, or with one made on first use."""
    return Credentials(Sealer(key_source(environ).load), environ, kubernetes)


@asynccontextmanager
async def kubernetes_secrets(environ: Mapping[str, str], clock: Clock) -> AsyncIterator[KubernetesSecrets | None]:
    """Those of the cluster that this process is a pod of; None outside of one."""
    cluster = own_cluster(environ)
    if cluster is None:
        yield None
        return
    async with Http1Upstream(Trust(cluster.authority)) as upstream:
        yield KubernetesSecrets(upstream, cluster.api, clock.now)


def key_source(environ: Mapping[str, str]) -> KeySource:
    """Where the key of all secrets is."""
    return KeySource(environ, state_folder(environ) / "secret.key")


@asynccontextmanager
async def control_plane(
    config: Config, environ: Mapping[str, str], clock: Clock, metrics: Metrics, access: Access | None = None
) -> AsyncIterator[Control]:
    """The control plane, its store open if one was configured; without an `access` nobody is asked for a token.

    Raises ConfigError when the store cannot be used.
    """
    admits = admits_any if config.verifies_private else admits_public
    async with (
        GuardedUpstream(admits) as upstream,
        opened_store(config, environ) as store,
        kubernetes_secrets(environ, clock) as kubernetes,
    ):
        if config.control.store is not None:
            await _open(store)
        catalogue, credentials = Catalogue(store), build_credentials(environ, kubernetes)
        workspaces = frozenset(config.control.workspaces)
        routes = Routes(RouteParts(catalogue, credentials, Verifier(upstream), metrics, workspaces))
        backends = FollowedBackends(RecordSource(catalogue, routes))
        registry = Registry(catalogue, credentials, backends.users_of)
        service = inference_service(routes, access or Access(), clock)
        yield Control(service, routes, registry, backends)


async def _open(store: Store) -> None:
    try:
        await store.open()
    except StoreFailed as error:
        raise ConfigError("control.store", str(error)) from error


async def backup(config: Config, environ: Mapping[str, str]) -> bytes:
    """Every record of the store, for a file. Raises StoreFailed."""
    async with opened_store(config, environ) as store:
        return await dumped(store)


async def restore(config: Config, environ: Mapping[str, str], content: bytes) -> int:
    """Replace every record by those of a backup; how many there are now. Raises StoreFailed."""
    rows = parsed(content)
    async with opened_store(config, environ) as store:
        try:
            await store.load(rows)
        except Referred:
            raise StoreFailed("a route of the backup refers to a provider that is not in it") from None
    return len(rows)


async def rotate_key(config: Config, environ: Mapping[str, str]) -> int:
    """Put a new key in front of the key file and every secret under it; how many records changed.

    Keys that stand in the environment are the operator's to change: then the secrets go under the first of them.
    """
    source = key_source(environ)
    if source.file is not None:
        source.rotate()
    async with opened_store(config, environ) as store:
        changed = await Registry(Catalogue(store), build_credentials(environ), lambda _name: ()).rewrap()
    if source.file is not None:
        source.forget()
    return changed


@asynccontextmanager
async def opened_store(config: Config, environ: Mapping[str, str]) -> AsyncIterator[Store]:
    """The configured store, which connects when it is first used."""
    store = build_store(config, environ)
    try:
        yield store
    finally:
        await store.close()
