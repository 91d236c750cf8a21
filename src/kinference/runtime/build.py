"""Who gets what: one `build_<part>` each, and nothing else in the tree knows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TypeAlias

from kinference.config.destinations import AwsCredentials
from kinference.config.schema import Config
from kinference.core.fleet import Fleet
from kinference.core.pick import Router
from kinference.dashboard.admin import Admin, AdminSources
from kinference.dashboard.control import ControlApi
from kinference.dashboard.endpoints import EndpointsApi
from kinference.errors import ConfigError
from kinference.fleet.discovery.discoveries import Discoveries
from kinference.fleet.kv_events import CacheFeeds, FeedParts
from kinference.fleet.tokenize import PromptTokens
from kinference.fleet.watch import FleetWatcher
from kinference.gateway.auth import ClientKey
from kinference.gateway.backends import BackendRoute, Directory
from kinference.gateway.departure import Departure
from kinference.gateway.options import GatewayOptions, Outside
from kinference.gateway.service import Gateway
from kinference.ids import ObjectRef, Seconds
from kinference.observe.metrics import Metrics
from kinference.picker.desk import Desk
from kinference.picker.id_source import IdSource
from kinference.picker.limits import PickerLimits
from kinference.picker.service import picker_service
from kinference.picker.timer import ReclaimTimer
from kinference.ports import Clock, Picker, Upstream, UpstreamTimeouts
from kinference.runtime.arrivals import Arrivals
from kinference.runtime.certificates import Certificates, certificates
from kinference.runtime.clock import SystemClock
from kinference.runtime.control import Control
from kinference.runtime.cuts import publish_cuts
from kinference.runtime.departed import Departed
from kinference.runtime.directory import FleetDirectory
from kinference.runtime.drains import Drains
from kinference.runtime.followed_backends import FollowedBackends
from kinference.runtime.planes import Plane
from kinference.runtime.port_limits import grpc_limits, http_options
from kinference.runtime.rules import admission_rules, apply, routing_rules
from kinference.runtime.views import (
    decision_views,
    recording_views,
    refusal_views,
    tenant_views,
    waiting_views,
)
from kinference.runtime.wires import RpcServer, Wire, http_server, rpc_server
from kinference.wire.access import Access, Certificate, Token
from kinference.wire.exchange import Handler, HttpServer
from kinference.wire.rpc import RpcService
from kinference.wire.sandbox_tokens import SandboxTokens
from kinference.wire.sigv4 import AwsKeys
from kinference.wire.strangers import OwnNames
from kinference.wire.untaken import Untaken


@dataclass(frozen=True, slots=True)
class Servers:
    """What listens. None: a plane that another process serves."""

    rpc: RpcServer | None
    """The picker's port, the control plane beside it; the control plane's own where there is no picker."""
    gateway: HttpServer | None
    admin: HttpServer


@dataclass(frozen=True, slots=True)
class Handlers:
    """What answers on the two HTTP ports."""

    gateway: Handler
    admin: Handler


@dataclass(frozen=True, slots=True)
class Parts:
    """What every plane shares."""

    clock: Clock
    metrics: Metrics
    fleet: Fleet
    router: Router
    desk: Desk
    upstream: Upstream
    watcher: FleetWatcher
    discoveries: Discoveries
    feeds: CacheFeeds
    prompt_tokens: PromptTokens
    timer: ReclaimTimer
    wire: Wire
    certificates: Certificates | None
    access: Access
    departure: Departure
    arrivals: Arrivals


def build_parts(config: Config, upstream: Upstream, wire: Wire) -> Parts:
    """The decision core with everything that feeds it."""
    clock, metrics, fleet = SystemClock(), Metrics(), Fleet()
    rng = Random(config.routing.seed)
    router = Router(fleet, routing_rules(config), rng)
    apply(config, router, fleet)
    desk = Desk(router, picker_limits(config), clock, metrics, IdSource())
    watcher = FleetWatcher(fleet, upstream, clock, Random(config.routing.seed))
    feeds = CacheFeeds(FeedParts(fleet, router.engine_blocks, clock, metrics))
    prompt_tokens = PromptTokens(upstream, router.engine_blocks, clock, metrics)
    desk.on_dispatch(prompt_tokens.want)
    return Parts(
        clock,
        metrics,
        fleet,
        router,
        desk,
        upstream,
        watcher,
        Discoveries(fleet, clock, Random(config.routing.seed), watcher.reconcile),
        feeds,
        prompt_tokens,
        ReclaimTimer(desk, clock),
        wire,
        certificates(config, wire),
        Access(*access_credentials(config, clock.wall)),
        Departure(),
        Arrivals(Untaken(config.limits.untaken_max_bytes)),
    )


Credentials: TypeAlias = tuple[Sequence[Token], Sequence[Certificate], SandboxTokens | None]
"""All that callers of the picker's and the admin port may show."""


def access_credentials(config: Config, wall: Callable[[], Seconds]) -> Credentials:
    """Who may call the picker's and the admin port. Raises ConfigError for a key that cannot be used."""
    access = config.access
    tokens = [Token(each.name, each.role, each.token.reveal(), each.workspace or "") for each in access.tokens]
    certificates = [Certificate(each.names, each.role, each.workspace or "") for each in access.certificates]
    return tokens, certificates, _sandbox_tokens(config, wall)


def _sandbox_tokens(config: Config, wall: Callable[[], Seconds]) -> SandboxTokens | None:
    signed = config.access.sandbox_tokens
    if signed is None:
        return None
    try:
        return SandboxTokens(Path(signed.public_key).read_text("ascii"), signed.audience, wall)
    except (OSError, ValueError) as error:
        fix = "name a PEM file with the Ed25519 public key of whoever signs the tokens"
        raise ConfigError("access.sandbox_tokens.public_key", str(error), fix) from None


def picker_limits(config: Config) -> PickerLimits:
    """The configured limits, and the picker's own defaults for the rest."""
    limits = config.limits
    return PickerLimits(
        body_max_bytes=limits.body_max_bytes,
        buffer_max_bytes=limits.buffer_max_bytes,
        chunk_max_bytes=limits.chunk_max_bytes,
        push_idle_timeout=limits.push_idle_timeout,
        body_ttl=limits.body_ttl,
        ticket_ttl=limits.ticket_ttl,
        stalled_pull_ttl=limits.stalled_pull_ttl,
        drain_timeout=limits.drain_timeout,
        admission=admission_rules(config),
    )


def build_gateway(config: Config, parts: Parts, picker: Picker, backends: FollowedBackends) -> Gateway:
    """The HTTP plane, with the credentials that only it may hold."""
    outside = Outside(
        picker=picker,
        upstream=parts.upstream,
        clock=parts.clock,
        metrics=parts.metrics,
        directory=build_directory(config, parts.router, parts.fleet, backends),
        departure=parts.departure,
    )
    options = GatewayOptions(
        keys=tuple(ClientKey(key.key.reveal(), key.tenant, key.service_class) for key in config.gateway.keys),
        allow_unauthenticated=config.allows_unauthenticated,
        own_names=OwnNames(config.listen.names) if config.listen.is_local(config.listen.gateway) else None,
        body_bytes_max=config.limits.body_max_bytes,
        upload_idle=config.limits.push_idle_timeout,
        loss=config.translation.loss,
        timeouts=UpstreamTimeouts(first_byte=config.gateway.first_byte_timeout),
    )
    return Gateway(outside, options)


def build_directory(config: Config, router: Router, fleet: Fleet, backends: FollowedBackends) -> Directory:
    """Where destinations are and what models there are, for one configuration, which the router follows already."""
    rules = router.rulebook
    known, own = FleetDirectory(fleet, rules.models), backend_routes(config)
    return Directory(
        locate=known.locate,
        resolve=lambda ref: own.get(ref) or backends.get(ref),
        models=known.models,
        allows=rules.may_use_model,
    )


def backend_routes(config: Config) -> Mapping[ObjectRef, BackendRoute]:
    """URL and credential of every backend that has its own."""
    return {
        backend.ref: BackendRoute(
            backend.ref,
            str(backend.base_url),
            backend.api_key.reveal() if backend.api_key else "",
            backend.api,
            _aws_keys(backend.aws),
        )
        for backend in config.backends
        if backend.base_url is not None
    }


def _aws_keys(aws: AwsCredentials | None) -> AwsKeys | None:
    if aws is None:
        return None
    token = aws.session_token.reveal() if aws.session_token else ""
    return AwsKeys(aws.access_key_id.reveal(), aws.secret_access_key.reveal(), token, aws.region or "")


def build_admin(
    config: Config,
    parts: Parts,
    planes: frozenset[Plane],
    control: Control | None,
    unready_reason: Callable[[], str | None],
) -> Admin:
    """The admin port's handler."""
    departed = Departed(parts.fleet)

    def refresh() -> None:
        parts.desk.publish()
        parts.arrivals.publish(parts.metrics)
        publish_cuts(parts.fleet, parts.router, parts.metrics)
        parts.discoveries.publish(parts.metrics)
        departed.publish(parts.metrics, parts.clock.now())

    drains = Drains(parts.fleet, lambda: parts.router.snapshot(parts.clock.now()))
    return Admin(
        AdminSources(
            metrics=parts.metrics,
            endpoints=lambda: parts.router.snapshot(parts.clock.now()),
            recordings=lambda limit: recording_views(parts.router, limit),
            refusals=lambda limit: refusal_views(parts.router, limit),
            decisions=lambda limit: decision_views(parts.desk, parts.router, limit),
            tenants=lambda after, limit: tenant_views(parts.router, parts.clock.now(), after, limit),
            waiting=lambda: waiting_views(parts.desk.admission, parts.clock.now()),
            discovery=parts.discoveries.statuses,
            unready_reason=unready_reason,
            refresh=refresh,
            control=None if control is None else ControlApi(control.registry, control.routes),
            drains=EndpointsApi(drains.drain) if Plane.PICKER in planes else None,
            access=parts.access,
            names=OwnNames(config.listen.names),
            is_local=config.listen.is_local(config.listen.admin),
        )
    )


def build_servers(
    config: Config, parts: Parts, planes: frozenset[Plane], control: RpcService | None, handlers: Handlers
) -> Servers:
    """One server a port."""
    address = config.listen.picker if Plane.PICKER in planes else config.listen.control
    services = [picker_service(parts.desk, parts.access)] if Plane.PICKER in planes else []
    if control is not None:
        services.append(control)
    grpc, http = (parts.certificates.grpc, parts.certificates.http) if parts.certificates else (None, None)
    arrivals, limits = parts.arrivals, config.limits
    rpc = grpc_limits(limits, arrivals.account, arrivals.picker)
    gateway, admin = (http_options(limits, arrivals.account, each) for each in (arrivals.gateway, arrivals.admin))
    return Servers(
        rpc=rpc_server(parts.wire, str(address), services, rpc, grpc) if services else None,
        gateway=http_server(parts.wire, handlers.gateway, parts.clock, gateway, http)
        if Plane.GATEWAY in planes
        else None,
        admin=http_server(parts.wire, handlers.admin, parts.clock, admin, http),
    )
