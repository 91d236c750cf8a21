"""From the configuration to what the core reads: pools, backends and rules."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from glob import escape
from hashlib import blake2b
from types import MappingProxyType
from typing import Final

from kinference.config.destinations import Backend, Endpoint, KvEvents, Lacks, ModelPrice, ModelRoute, Pool
from kinference.config.destinations import Target as ConfiguredTarget
from kinference.config.schema import Config
from kinference.config.tenants import TenantLimits, TenantPolicy
from kinference.core.fleet import BackendSpec, CacheFeed, EndpointSpec, Fleet, Lacking
from kinference.core.limits import Limits
from kinference.core.pick import Router
from kinference.core.policy import ModelRule, RoutingRules, Target, TargetKind, TenantRule
from kinference.core.prices import Price, PricedModel
from kinference.core.waiting import AdmissionRules, ClassRule
from kinference.fleet.discovery.static import set_static_pools
from kinference.gateway.backends import BackendRoute
from kinference.ids import Address, ObjectRef
from kinference.runtime.price_list import listed_price
from kinference.vocabulary import QosClass

NO_RECORDS: Final[Mapping[ObjectRef, BackendRoute]] = MappingProxyType({})


def endpoint_specs(pool: Pool, present: Iterable[EndpointSpec] = ()) -> tuple[EndpointSpec, ...]:
    """A pool's endpoints as they are listed. One that is discovered keeps those that are `present`, for its source to
    say whether they stay, and as what.
    """
    if pool.discovery is not None:
        return tuple(present)
    template = template_of(pool)
    return tuple(_endpoint_spec(template, endpoint) for endpoint in pool.endpoints)


def _endpoint_spec(template: EndpointSpec, endpoint: Endpoint) -> EndpointSpec:
    return replace(
        template,
        address=endpoint.url.address,
        scheme=endpoint.url.scheme,
        path_prefix=endpoint.url.path,
        labels=endpoint.labels,
        weight=endpoint.weight,
        cache_feed=_cache_feed(endpoint.kv_events) or template.cache_feed,
    )


def template_of(pool: Pool) -> EndpointSpec:
    """What a pool says of each of its endpoints, whatever its address."""
    return EndpointSpec(
        pool=pool.ref,
        address=Address(""),
        engine=pool.engine,
        models=pool.models,
        prices=_prices(pool.prices),
        cache_feed=_cache_feed(pool.kv_events),
        lacks=_lacks(pool.lacks),
        context_tokens=pool.context_tokens,
    )


def _cache_feed(events: KvEvents | None) -> CacheFeed | None:
    if events is None:
        return None
    return CacheFeed(events.port, events.replay_port, events.ranks, events.topic, events.tokenize)


def backend_specs(config: Config, records: Mapping[ObjectRef, BackendRoute] = NO_RECORDS) -> tuple[BackendSpec, ...]:
    """The backends without what only the gateway may know of them; `records` are those that a provider stands for."""
    return tuple(_backend_spec(config, backend, records.get(backend.ref)) for backend in config.backends)


def _backend_spec(config: Config, backend: Backend, record: BackendRoute | None) -> BackendSpec:
    url = str(backend.base_url or "") if record is None else record.base_url
    names = dict.fromkeys((*backend.models.values(), *_names_routed_to(backend, config.models)))
    listed = {name: listed_price(name, url) for name in names} if url else {}
    known = tuple(PricedModel(escape(name), price) for name, price in listed.items() if price is not None)
    prices = (*_prices(backend.prices), *known)
    return BackendSpec(
        backend.ref,
        backend.api,
        backend.models,
        backend.path or "",
        _revision(backend, record),
        prices,
        _lacks(backend.lacks),
        backend.context_tokens,
    )


def _lacks(configured: Iterable[Lacks]) -> tuple[Lacking, ...]:
    return tuple(Lacking(one.model, frozenset(one.needs)) for one in configured)


def _revision(backend: Backend, record: BackendRoute | None) -> str:
    """Tells that the URL or the key changed, and nothing of what they are."""
    url, key, aws = backend.base_url, backend.api_key.reveal() if backend.api_key else "", backend.aws
    if aws is not None:
        key = f"{aws.access_key_id.reveal()} {aws.secret_access_key.reveal()} {aws.region}"
    text = f"{url} {key}"
    if record is not None:
        keys = record.aws
        signing = () if keys is None else (keys.access_key_id, keys.secret_access_key, keys.region)
        text = " ".join((record.base_url, record.api_key, *signing))
    return blake2b(text.encode(), digest_size=8).hexdigest()


def _names_routed_to(backend: Backend, routes: Iterable[ModelRoute]) -> Iterable[str]:
    """The models that the routing table asks a backend for by the provider's own names."""
    return (
        target.model for route in routes for target in route.targets if target.backend == backend.ref and target.model
    )


def _prices(configured: Iterable[ModelPrice]) -> tuple[PricedModel, ...]:
    return tuple(
        PricedModel(one.model, Price(one.input_usd, one.output_usd, one.cached_input_usd)) for one in configured
    )


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
    limits = None if rule.limits is None else _limits(rule.limits)
    return TenantRule(
        rule.tenants, rule.models, rule.classes, rule.destinations, limits, rule.usd_per_hour, rule.own_prefixes
    )


def has_budgets(config: Config) -> bool:
    """Whether any tenant's money is counted."""
    return any(rule.limits is not None and rule.limits.usd_per_month is not None for rule in config.tenants)


def _limits(limits: TenantLimits) -> Limits:
    return Limits(limits.requests_per_minute, limits.tokens_per_minute, limits.concurrent, limits.usd_per_month)


def admission_rules(config: Config) -> AdmissionRules:
    """When requests are held, and for how long."""
    admission = config.routing.admission
    waits = {
        QosClass.INTERACTIVE: admission.interactive,
        QosClass.BATCH: admission.batch,
        QosClass.DEFERRABLE: admission.deferrable,
    }
    return AdmissionRules(
        enabled=admission.enabled,
        start_within_ms=admission.start_within * 1e3,
        waiting_max=admission.waiting_max,
        classes={qos: ClassRule(one.objective, one.wait_max) for qos, one in waits.items()},
    )


def apply(config: Config, router: Router, fleet: Fleet, records: Mapping[ObjectRef, BackendRoute] = NO_RECORDS) -> None:
    """Make the router and the fleet follow a configuration; endpoints that stay keep what is known of them.

    Raises ConfigError, and changes nothing, when the policy or a parameter is unknown.
    """
    router.reconfigure(routing_rules(config))
    router.recordings.resize(config.routing.record)
    router.refusals.resize(config.routing.record)
    present = [one.spec for one in fleet.endpoints()]
    set_static_pools(
        fleet,
        {pool.ref: endpoint_specs(pool, [spec for spec in present if spec.pool == pool.ref]) for pool in config.pools},
    )
    fleet.set_backends(backend_specs(config, records))
