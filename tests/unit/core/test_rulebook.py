"""Rules: which model name means what, and who may use it."""

import pytest

from kinference.core.policy import ModelRule, RoutingRules, Target, TargetKind, TenantRule, UnmatchedTenant
from kinference.core.request import Request
from kinference.core.rulebook import NAME_MAX, Rulebook, is_glob, may_go, shown
from kinference.ids import ObjectRef
from kinference.vocabulary import Api, QosClass

POOL = ObjectRef("default", "gpu")


def target(model: str) -> tuple[Target, ...]:
    return (Target(TargetKind.POOL, POOL, model),)


def book(*tenants: TenantRule, unmatched: UnmatchedTenant = UnmatchedTenant.ALLOW) -> Rulebook:
    return Rulebook(RoutingRules(tenants=tenants, unmatched_tenant=unmatched))


def request(tenant: str, model: str = "m", qos: QosClass = QosClass.INTERACTIVE) -> Request:
    return Request(model, Api.OPENAI_CHAT, (), 0, tenant=tenant, qos=qos)


def refusal(rules: Rulebook, asked: Request) -> str:
    return rules.refusal(asked, rules.tenant_rule(asked.tenant))


def test_an_exact_name_wins_over_globs_and_the_most_literal_glob_over_the_rest() -> None:
    patterns = ("*", "gpt-*", "gpt-4*", "gpt-4o")
    rules = Rulebook(RoutingRules(models=tuple(ModelRule(one, target(one)) for one in patterns)))
    for model, pattern in (("gpt-4o", "gpt-4o"), ("gpt-4x", "gpt-4*"), ("gpt-3", "gpt-*"), ("llama", "*")):
        assert rules.resolve(model) == target(pattern)


def test_of_equal_patterns_the_first_one_counts() -> None:
    rules = Rulebook(RoutingRules(models=(ModelRule("m", target("a")), ModelRule("m", target("b")))))
    assert rules.resolve("m") == target("a")


def test_a_model_without_a_rule_resolves_to_nothing() -> None:
    rules = Rulebook(RoutingRules(models=(ModelRule("a*", target("x")),)))
    assert rules.resolve("b") is None
    assert rules.resolve("A1") is None


def test_no_glob_is_run_over_an_absurdly_long_name() -> None:
    rules = Rulebook(RoutingRules(models=(ModelRule("a*", target("x")),)))
    assert rules.resolve("a" * NAME_MAX) is not None
    assert rules.resolve("a" * (NAME_MAX + 1)) is None


def test_an_exact_tenant_wins_over_the_wildcard() -> None:
    named, anyone = TenantRule(("acme",)), TenantRule(("*",), models=())
    rules = book(anyone, named)
    assert rules.tenant_rule("acme") is named
    assert rules.tenant_rule("other") is anyone


@pytest.mark.parametrize("tenant", ["Acme", "acme ", "acm", "acme*"])
def test_tenant_names_match_exactly(tenant: str) -> None:
    assert book(TenantRule(("acme",))).tenant_rule(tenant) is None


def test_the_empty_tenant_matches_only_a_rule_that_names_it() -> None:
    assert book(TenantRule(("*",))).tenant_rule("") is None
    own = TenantRule(("",))
    assert book(TenantRule(("*",)), own).tenant_rule("") is own


def test_a_tenant_called_star_is_any_named_tenant() -> None:
    anyone = TenantRule(("*",))
    assert book(anyone).tenant_rule("*") is anyone


def test_an_unmatched_tenant_is_allowed_or_refused_as_configured() -> None:
    assert refusal(book(TenantRule(("acme",))), request("")) == ""
    refused = refusal(book(TenantRule(("acme",)), unmatched=UnmatchedTenant.REJECT), request(""))
    assert refused.startswith("policy: ")
    assert "unmatched_tenant" in refused


def test_models_absent_means_all_and_empty_means_none() -> None:
    assert refusal(book(TenantRule(("t",))), request("t")) == ""
    assert refusal(book(TenantRule(("t",), models=("a", "m*"))), request("t")) == ""
    assert refusal(book(TenantRule(("t",), models=("a",))), request("t")).startswith("policy: tenant 't' may not use")
    assert refusal(book(TenantRule(("t",), models=())), request("t")).startswith("policy: ")


def test_a_class_outside_the_list_is_refused() -> None:
    rules = book(TenantRule(("t",), classes=(QosClass.BATCH,)))
    assert refusal(rules, request("t", qos=QosClass.BATCH)) == ""
    assert "INTERACTIVE" in refusal(rules, request("t"))


def test_destinations_match_by_name_or_by_namespace_and_name() -> None:
    assert may_go(None, POOL)
    assert may_go(TenantRule(("t",)), POOL)
    for patterns, allowed in ((("gpu",), True), (("default/*",), True), (("cpu", "prod/*"), False), ((), False)):
        assert may_go(TenantRule(("t",), destinations=patterns), POOL) is allowed


def test_what_a_glob_is() -> None:
    assert [is_glob(one) for one in ("m", "m*", "m?", "[ab]")] == [False, True, True, True]


def test_a_clients_name_is_shown_escaped_and_short() -> None:
    assert shown("a\nb") == "'a\\nb'"
    assert len(shown("x" * 10_000)) < 100


def test_which_models_a_tenant_may_use_follows_the_same_rules() -> None:
    rules = book(TenantRule(("t",), models=("a*",)), TenantRule(("all",)), unmatched=UnmatchedTenant.REJECT)
    assert [rules.may_use_model(tenant, "a1") for tenant in ("t", "all", "x", "")] == [True, True, False, False]
    assert not rules.may_use_model("t", "b")
    assert book().may_use_model("", "b")
