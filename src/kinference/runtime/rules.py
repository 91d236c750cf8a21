"""From the configuration to what the core reads: pools, backends and rules."""

from collections.abc import Iterable
from hashlib import blake2b

from kinference.config.schema import Backend, Config, Endpoint, ModelRoute, Pool, TenantPolicy
from kinference.config.schema import Target as ConfiguredTarget
from kinference.core.fleet import BackendSpec, EndpointSpec, Fleet
from kinference.core.pick import Router
from kinference.core.policy import ModelRule, RoutingRules, Target, TargetKind, TenantRule
from kinference.fleet.static import set_static_pools
from kinference.ids import ObjectRef


def endpoint_specs(pool: Pool) -> tuple[EndpointSpec, ...]:
    """A pool's endpoints as discovery hands them over."""
    return tuple(_endpoint_spec(pool, endpoint) for endpoint in pool.endpoints)


def _endpoint_spec(pool: Pool, endpoint: Endpoint) -> EndpointSpec:
    return EndpointSpec(
        pool=pool.ref,
        address=endpoint.url.address,
        scheme=endpoint.url.scheme,
        path_prefix=endpoint.url.path,
        engine=pool.engine,
        labels=endpoint.labels,
        weight=endpoint.weight,
        models=pool.models,
    )


def backend_specs(config: Config) -> tuple[BackendSpec, ...]:
    """The backends without what only the gateway may know of them."""
    return tuple(
        BackendSpec(backend.ref, backend.api, backend.models, backend.path or "", _revision(backend))
        for backend in config.backends
    )


def _revision(backend: Backend) -> str:
    """Tells that the URL or the key changed, and nothing of what they are."""
    key = backend.api_key.reveal() if backend.api_key else ""
    if (aws := backend.aws) is not None:
        key = f"{aws.access_key_id.reveal()} {aws.secret_access_key.reveal()} {aws.region}"
    return blake2b(f"{backend.base_url} {key}".encode(), digest_size=8).hexdigest()


def routing_rules(config: Config) -> RoutingRules:
    """The routing table, the tenants' rules and the policy."""
    return RoutingRules(
        models=tuple(_model_rule(route) for route in config.models),
        tenants=tuple(_tenant_rule(rule) for rule in config.tenants),
        unmatched_tenant=config.unmatched_tenant,
        policy=config.routing.policy,
        parameters=dict(config.routing.parameters),
    )


def _model_rule(route: ModelRoute) -> ModelRule:
    return ModelRule(route.model, tuple(_targets(route.targets)))


def _targets(targets: Iterable[ConfiguredTarget]) -> Iterable[Target]:
    for target in targets:
        kind, ref = _destination(target)
        yield Target(kind, ref, target.model, target.weight, target.priority)


def _destination(target: ConfiguredTarget) -> tuple[TargetKind, ObjectRef]:
    if target.pool is not None:
        return TargetKind.POOL, target.pool
    assert target.backend is not None  # the configuration's cross-checks let exactly one of them be
    return TargetKind.BACKEND, target.backend


def _tenant_rule(rule: TenantPolicy) -> TenantRule:
    return TenantRule(rule.tenants, rule.models, rule.classes, rule.destinations)


def apply(config: Config, router: Router, fleet: Fleet) -> None:
    """Make the router and the fleet follow a configuration; endpoints that stay keep what is known of them.

    Raises ConfigError, and changes nothing, when the policy or a parameter is unknown.
    """
    router.reconfigure(routing_rules(config))
    set_static_pools(fleet, {pool.ref: endpoint_specs(pool) for pool in config.pools})
    fleet.set_backends(backend_specs(config))
