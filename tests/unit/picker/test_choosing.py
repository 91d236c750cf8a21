import json
from dataclasses import replace
from random import Random

import pytest

from kinference.core.fleet import BackendSpec, Fleet
from kinference.core.pick import Router
from kinference.core.policy import ModelRule, RoutingRules, Target, TargetKind, TenantRule
from kinference.ids import Address, ObjectRef, StreamId
from kinference.picker.choosing import Chosen, answer, choose
from kinference.ports import LocalTarget, PickArguments, ProviderTarget
from kinference.vocabulary import Api, Loss, Outcome

MESSAGES = [{"role": "user", "content": "hello"}]
CHAT_PATH = "/v1/chat/completions"
CLAUDE, AUDIO = ObjectRef("default", "claude"), ObjectRef("default", "listener")
PICTURE = [{"type": "file", "file": {"filename": "a", "file_data": "data:application/zip;base64,AAAA"}}]


def chosen(router: Router, body: bytes | dict[str, object], tenant: str = "acme") -> Chosen:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return choose(router, PickArguments(StreamId(1), tenant), raw, 0.0)


def test_an_endpoint_that_serves_the_model_is_chosen_and_the_body_left_alone(router: Router) -> None:
    found = chosen(router, {"model": "llama", "messages": MESSAGES})
    assert found.patched is None
    result = answer(found, 100)
    assert (result.outcome, result.requested_model) == (Outcome.OK, "llama")
    assert result.destination in [LocalTarget(Address(f"10.0.0.{n}:8000")) for n in (1, 2)]


def test_an_alias_changes_the_model_and_no_other_byte(router: Router) -> None:
    found = chosen(router, b'{ "temperature":1e0, "model" :"small","messages":[{"role":"user","content":"small"}]}')
    assert found.patched == b'{ "temperature":1e0, "model" :"llama","messages":[{"role":"user","content":"small"}]}'
    assert answer(found, 100).requested_model == "small"


def test_a_backend_is_named_with_its_path_and_asked_by_the_providers_name(router: Router) -> None:
    found = chosen(router, {"model": "gpt", "messages": MESSAGES})
    assert answer(found, 100).destination == ProviderTarget(ObjectRef("default", "cloud"), "/v1/chat")
    assert found.patched is not None
    assert json.loads(found.patched)["model"] == "gpt-long-provider-name"


def test_a_destination_that_failed_the_request_is_not_chosen_for_it_again(router: Router) -> None:
    body = json.dumps({"model": "llama", "messages": MESSAGES}).encode()
    one, two = (LocalTarget(Address(f"10.0.0.{n}:8000")) for n in (1, 2))
    for failed, left in (({one}, two), ({two}, one), ({one, two}, None)):
        arguments = PickArguments(StreamId(1), "acme", failed=frozenset(failed))
        assert answer(choose(router, arguments, body, 0.0), 100).destination == left


def test_a_model_that_nobody_serves_has_no_workers(router: Router) -> None:
    result = answer(chosen(router, {"model": "unheard-of", "messages": MESSAGES}), 100)
    assert (result.outcome, result.destination, result.requested_model) == (Outcome.NO_WORKERS, None, "unheard-of")
    assert "unheard-of" in result.reason


def test_a_tenant_without_the_right_is_rejected(router: Router) -> None:
    result = answer(chosen(router, {"model": "llama", "messages": MESSAGES}, tenant="barred"), 100)
    assert (result.outcome, result.requested_model) == (Outcome.POLICY_REJECTED, "llama")
    assert result.reason.startswith("policy:")


@pytest.mark.parametrize(
    ("body", "model"),
    [
        (b"", ""),
        (b"not json", ""),
        (b"[]", ""),
        (b'{"model":7,"messages":[]}', ""),
        (b'{"messages":[{"role":"user","content":"x"}]}', ""),
        (b'{"model":"llama"}', "llama"),
        (b'{"model":"llama","messages":"text"}', "llama"),
        (b'{"model":"llama","messages":[{"content":"\xff"}]}', "llama"),
        (b'{"model":"llama","messages":' + b"[" * 500 + b"]" * 500 + b"}", "llama"),
        (b'{"model":"' + b"m" * 5000 + b'","messages":[1]}', "m" * 100),
        (b"[" * 100_000, ""),
    ],
)
def test_a_body_that_is_no_request_is_refused_with_its_model_where_that_can_be_read(
    router: Router, body: bytes, model: str
) -> None:
    result = answer(chosen(router, body), 100)
    assert (result.outcome, result.requested_model, result.destination) == (Outcome.BAD_REQUEST, model, None)
    assert 0 < len(result.reason) <= 512


def test_a_refusal_quotes_no_text_of_the_body(router: Router) -> None:
    result = answer(chosen(router, b'{"model":"llama","messages":"a secret"}'), 100)
    assert "secret" not in result.reason


def test_a_body_that_cannot_be_patched_is_refused_and_its_choice_taken_back(router: Router) -> None:
    result = answer(chosen(router, b'{"messages":[1],"model":"small"' + b',"a":1' * 5_000 + b"}"), 100)
    assert (result.outcome, result.requested_model, result.destination) == (Outcome.BAD_REQUEST, "small", None)
    assert "more than 4096 members" in result.reason
    assert {row.requests for row in router.snapshot(0.0)} == {0}


def translating(fleet: Fleet, *backends: BackendSpec, rules: RoutingRules | None = None) -> Router:
    fleet.set_backends(backends)
    return Router(fleet, rules or RoutingRules(), Random(5))


def translated(router: Router, content: object = "hello", loss: Loss = Loss.WARN, **members: object) -> Chosen:
    body = json.dumps({"model": "gpt", "messages": [{"role": "user", "content": content}], **members}).encode()
    arguments = PickArguments(StreamId(1), "", request_path=CHAT_PATH, translates=True, loss=loss)
    return choose(router, arguments, body, 0.0)


def test_a_destination_of_another_api_is_handed_its_own_kind_of_body(fleet: Fleet) -> None:
    found = translated(translating(fleet, BackendSpec(CLAUDE, Api.ANTHROPIC_MESSAGES, {"gpt": "claude-opus-4-6"})))
    assert answer(found, 100).destination == ProviderTarget(CLAUDE, "/v1/messages")
    assert found.patched is not None
    body = json.loads(found.patched)
    assert (body["model"], body["messages"][0]["content"]) == ("claude-opus-4-6", [{"type": "text", "text": "hello"}])


def test_who_cannot_carry_a_request_is_left_for_who_can(fleet: Fleet) -> None:
    specs = [BackendSpec(CLAUDE, Api.ANTHROPIC_MESSAGES, {"gpt": "c"}), BackendSpec(AUDIO, Api.GEMINI, {"gpt": "g"})]
    targets = (Target(TargetKind.BACKEND, CLAUDE, priority=0), Target(TargetKind.BACKEND, AUDIO, priority=1))
    router = translating(fleet, *specs, rules=RoutingRules(models=(ModelRule("gpt", targets),)))
    assert answer(translated(router), 100).destination == ProviderTarget(CLAUDE, "/v1/messages")
    assert answer(translated(router, PICTURE), 100).destination == ProviderTarget(
        AUDIO, "/v1beta/models/g:generateContent"
    )
    assert [row.requests for row in router.snapshot(0.0) if not row.address] == [1, 1]


def test_what_nobody_can_carry_is_named(fleet: Fleet) -> None:
    router = translating(fleet, BackendSpec(CLAUDE, Api.ANTHROPIC_MESSAGES, {"gpt": "c"}))
    result = answer(translated(router, PICTURE), 100)
    assert (result.outcome, result.reason) == (
        Outcome.BAD_REQUEST,
        "file: a Messages destination takes PDF and plain text",
    )
    strict = answer(translated(router, loss=Loss.STRICT, seed=1), 100)
    assert (strict.outcome, strict.reason[:5]) == (Outcome.BAD_REQUEST, "seed:")
    several = answer(translated(router, n=2), 100)
    assert (several.outcome, several.reason[:4]) == (Outcome.NO_WORKERS, "api:")
    assert {row.requests for row in router.snapshot(0.0)} == {0}


def test_tools_of_a_providers_own_are_left_out_only_where_nobody_is_left_who_has_them(fleet: Fleet) -> None:
    specs = [
        BackendSpec(AUDIO, Api.BEDROCK_CONVERSE, {"gpt": "b"}),
        BackendSpec(CLAUDE, Api.ANTHROPIC_MESSAGES, {"gpt": "c"}),
    ]
    targets = (Target(TargetKind.BACKEND, AUDIO, priority=0), Target(TargetKind.BACKEND, CLAUDE, priority=1))
    router = translating(fleet, *specs, rules=RoutingRules(models=(ModelRule("gpt", targets),)))
    found = translated(router, web_search_options={})
    assert answer(found, 100).destination == ProviderTarget(CLAUDE, "/v1/messages")
    assert found.way_back is not None
    assert found.way_back.warnings == "assumed=max_tokens:8192"
    fleet.set_backends(specs[:1])
    found = translated(router, web_search_options={})
    assert answer(found, 100).destination == ProviderTarget(AUDIO, "/model/b/converse")
    assert found.way_back is not None
    assert found.way_back.warnings == "dropped=tools:web_search_options"
    strict = answer(translated(router, loss=Loss.STRICT, web_search_options={}), 100)
    assert (strict.outcome, strict.reason[:19]) == (Outcome.BAD_REQUEST, "web_search_options:")
    assert [row.requests for row in router.snapshot(0.0) if not row.address] == [1]


def test_a_broken_body_is_told_at_once(fleet: Fleet) -> None:
    router = translating(fleet, BackendSpec(CLAUDE, Api.ANTHROPIC_MESSAGES, {"gpt": "c"}))
    result = answer(translated(router, [{"type": "hologram"}]), 100)
    assert (result.outcome, result.reason[:28]) == (Outcome.BAD_REQUEST, "messages[0].content[0].type:")


def test_j10_tenants_that_are_kept_apart_share_no_prefix_at_an_engine(fleet: Fleet, rules: RoutingRules) -> None:
    router = Router(fleet, replace(rules, tenants=(TenantRule(("a", "b"), own_prefixes=True),)), Random(1))
    body: dict[str, object] = {"model": "llama", "messages": MESSAGES}

    def salt(tenant: str, own: str = "") -> str | None:
        found = chosen(router, body | ({"cache_salt": own} if own else {}), tenant).patched
        return None if found is None else json.loads(found)["cache_salt"]

    assert salt("a") == salt("a") != salt("b")
    assert len({salt("a"), salt("b"), salt("b", "x"), salt("b", str(salt("a")))}) == 4
    assert salt("c") is None
