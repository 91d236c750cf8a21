from types import MappingProxyType

from kinference.config.schema import Backend, Config, Endpoint, ModelRoute, Pool, Routing, Target, TenantPolicy
from kinference.config.values import Count, HttpPath, Name, Secret, Url
from kinference.core.fleet import BackendSpec, EndpointSpec
from kinference.core.policy import ModelRule, TargetKind, TenantRule, UnmatchedTenant
from kinference.core.policy import Target as CoreTarget
from kinference.ids import Address, ObjectRef
from kinference.runtime.rules import backend_specs, endpoint_specs, routing_rules
from kinference.vocabulary import Api, Engine, QosClass

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
