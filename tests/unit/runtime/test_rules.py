from dataclasses import replace
from random import Random
from types import MappingProxyType

from kinference.config.destinations import Backend, Endpoint, KvEvents, Lacks, ModelPrice, ModelRoute, Pool, Target
from kinference.config.discovery import Discovery, DnsDiscovery
from kinference.config.schema import Config, Routing
from kinference.config.tenants import TenantLimits, TenantPolicy
from kinference.config.values import Count, HttpPath, Name, Secret, Url
from kinference.core.fleet import BackendSpec, CacheFeed, EndpointSpec, Fleet, Lacking
from kinference.core.limits import Limits
from kinference.core.pick import Router
from kinference.core.policy import ModelRule, TargetKind, TenantRule, UnmatchedTenant
from kinference.core.policy import Target as CoreTarget
from kinference.core.prices import Price, price_of
from kinference.gateway.backends import BackendRoute
from kinference.ids import Address, ObjectRef
from kinference.runtime.rules import apply, backend_specs, endpoint_specs, has_budgets, routing_rules, template_of
from kinference.vocabulary import Api, Engine, Need, QosClass

URL = Url("http", "fd00::1", 8000, "/engine")


def test_an_endpoint_keeps_everything_that_was_configured() -> None:
    pool = Pool(
        Name("chat"),
        (Endpoint(URL, MappingProxyType({"gpu": "h100"}), Count(3)),),
        Name("ml"),
        models=("m",),
        engine=Engine.VLLM,
    )
    assert endpoint_specs(pool) == (
        EndpointSpec(
            pool=ObjectRef("ml", "chat"),
            address=Address("[fd00::1]:8000"),
            scheme="http",
            path_prefix="/engine",
            engine=Engine.VLLM,
            labels={"gpu": "h100"},
            weight=3,
            models=("m",),
        ),
    )


def test_the_core_is_told_nothing_of_a_backends_url_and_credential() -> None:
    backend = Backend(Name("openai"), Api.OPENAI_CHAT, {"gpt": "gpt-5"}, path=HttpPath("/v1/chat"), base_url=URL)
    (spec,) = backend_specs(Config(backends=(backend,)))
    assert (spec.ref, spec.api, spec.models, spec.path) == (
        ObjectRef("default", "openai"),
        Api.OPENAI_CHAT,
        {"gpt": "gpt-5"},
        "/v1/chat",
    )
    assert not hasattr(spec, "base_url")


def test_another_url_or_credential_makes_another_backend_of_it() -> None:
    def spec(url: Url, key: str) -> BackendSpec:
        secret = Secret("${KEY}", key)
        backend = Backend(Name("openai"), Api.OPENAI_CHAT, {"gpt": "gpt-5"}, base_url=url, api_key=secret)
        (made,) = backend_specs(Config(backends=(backend,)))
        assert key not in repr(made)
        return made

    assert spec(URL, "sk-one") == spec(URL, "sk-one")
    assert spec(URL, "sk-one") != spec(URL, "sk-two")
    assert spec(URL, "sk-one") != spec(Url("https", "fd00::1", 8000, "/engine"), "sk-one")


def test_targets_name_their_kind() -> None:
    pool, backend = ObjectRef("default", "chat"), ObjectRef("ml", "openai")
    route = ModelRoute("gpt-*", (Target(pool=pool, weight=Count(3)), Target(backend=backend, priority=Count(1))))
    assert routing_rules(Config(models=(route,))).models == (
        ModelRule(
            "gpt-*",
            (CoreTarget(TargetKind.POOL, pool, "", 3, 0), CoreTarget(TargetKind.BACKEND, backend, "", 1, 1)),
        ),
    )


def test_an_empty_list_of_a_tenant_stays_apart_from_an_absent_one() -> None:
    policy = TenantPolicy(("", "acme"), models=(), classes=(QosClass.BATCH,), destinations=None)
    rules = routing_rules(Config(tenants=(policy,), unmatched_tenant=UnmatchedTenant.REJECT))
    assert rules.tenants == (TenantRule(("", "acme"), (), (QosClass.BATCH,), None),)
    assert rules.unmatched_tenant is UnmatchedTenant.REJECT


def test_the_policy_and_its_parameters_come_along() -> None:
    rules = routing_rules(Config(routing=Routing("round_robin", {"x": 1.5})))
    assert (rules.policy, rules.parameters) == ("round_robin", {"x": 1.5})


OPENAI = Url("https", "api.openai.com", 443, "/v1")


def test_limits_and_the_price_of_time_come_along() -> None:
    limits = TenantLimits(Count(1), Count(2), Count(3), 4.5)
    config = Config(
        tenants=(TenantPolicy(("a",), limits=limits, usd_per_hour=6.0), TenantPolicy(("b",), own_prefixes=True))
    )
    assert routing_rules(config).tenants == (
        TenantRule(("a",), limits=Limits(1, 2, 3, 4.5), usd_per_hour=6.0),
        TenantRule(("b",), own_prefixes=True),
    )
    assert has_budgets(config)
    assert not has_budgets(Config(tenants=(TenantPolicy(("b",), limits=TenantLimits(concurrent=Count(1))),)))


def test_configured_prices_go_before_those_that_are_known_of_the_provider() -> None:
    models = {"mini": "gpt-4o-mini", "big": "gpt-4o", "secret": "nobody-knows"}
    own = ModelPrice("gpt-4o", 1.0, 2.0, 0.5)
    backend = Backend(Name("openai"), Api.OPENAI_CHAT, models, base_url=OPENAI, prices=(own,))
    route = ModelRoute("m", (Target(backend=backend.ref, model="gpt-4.1"),))
    (spec,) = backend_specs(Config(backends=(backend,), models=(route,)))
    assert price_of("gpt-4o", spec.prices) == Price(1.0, 2.0, 0.5)
    assert price_of("gpt-4o-mini", spec.prices) not in (None, Price(1.0, 2.0, 0.5))
    assert price_of("gpt-4.1", spec.prices) is not None
    assert price_of("nobody-knows", spec.prices) is None


def test_an_endpoint_has_the_prices_of_its_pool() -> None:
    pool = Pool(Name("chat"), (Endpoint(URL),), prices=(ModelPrice("*", 0.1, 0.2),))
    (spec,) = endpoint_specs(pool)
    assert price_of("anything", spec.prices) == Price(0.1, 0.2)


def test_a_providers_record_gives_a_backend_its_prices_and_its_revision() -> None:
    backend = Backend(Name("openai"), Api.OPENAI_CHAT, {"m": "gpt-4o"}, provider=Name("p"))
    config = Config(backends=(backend,))
    (without,) = backend_specs(config)
    records = [BackendRoute(backend.ref, str(OPENAI), key, backend.api) for key in ("sk-one", "sk-two")]
    one, two = (backend_specs(config, {backend.ref: record})[0] for record in records)
    assert (without.prices, one.prices) == ((), two.prices)
    assert price_of("gpt-4o", one.prices) is not None
    assert len({without.revision, one.revision, two.revision}) == 3


def test_an_endpoint_publishes_where_its_pool_does_unless_it_says_so_itself() -> None:
    pool_wide, own = KvEvents(Count(5557), Count(5558), Count(2), "kv", tokenize=False), KvEvents(Count(6000))
    pool = Pool(Name("chat"), (Endpoint(URL), Endpoint(URL, kv_events=own)), kv_events=pool_wide)
    assert [spec.cache_feed for spec in endpoint_specs(pool)] == [
        CacheFeed(5557, 5558, 2, "kv", tokenize=False),
        CacheFeed(6000),
    ]


def test_what_models_lack_and_how_long_their_context_is_comes_along() -> None:
    lacks = (Lacks((Need.VISION, Need.AUDIO), "text-*"), Lacks((Need.TOOLS,)))
    expected = (Lacking("text-*", frozenset({Need.VISION, Need.AUDIO})), Lacking("*", frozenset({Need.TOOLS})))
    pool = Pool(Name("chat"), (Endpoint(URL),), lacks=lacks, context_tokens=Count(8_192))
    backend = Backend(Name("b"), Api.OPENAI_CHAT, {"m": "n"}, base_url=URL, lacks=lacks, context_tokens=Count(128_000))
    (local,), (remote,) = endpoint_specs(pool), backend_specs(Config(backends=(backend,)))
    assert (local.lacks, local.context_tokens) == (expected, 8_192)
    assert (remote.lacks, remote.context_tokens) == (expected, 128_000)


def test_a_pool_that_is_discovered_keeps_what_it_has_through_a_reload() -> None:
    discovery = Discovery(dns=DnsDiscovery(Name("engines"), Count(8000)))
    config = Config(pools=(Pool(Name("p"), discovery=discovery, models=("m",)),))
    fleet, ref = Fleet(), ObjectRef("default", "p")
    found = replace(template_of(config.pools[0]), address=Address("10.0.0.1:8000"))
    fleet.set_pool(ref, [found])
    apply(config, Router(fleet, routing_rules(config), Random(1)), fleet)
    assert [endpoint.spec for endpoint in fleet.endpoints()] == [found]
    assert (found.models, found.pool) == (("m",), ref)
