"""What the parts ask of one another."""

import pytest

from kinference.config.checks import ADVICE, CHECKS, run
from kinference.config.load import advice, parse
from kinference.config.problems import InvalidConfig
from kinference.config.schema import Config

ENVIRON = {"A": "key-a", "B": "key-b", "A2": "key-a"}
POOL = "pools: [{name: p, endpoints: ['http://h:1']}]\n"
BACKEND = "backends: [{name: b, api: openai_chat, models: {m: n}, base_url: 'https://h', api_key: '${A}'}]\n"


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidConfig) as refusal:
        parse(text, ENVIRON)
    return [str(problem) for problem in refusal.value.problems]


def test_the_defaults_pass_every_check() -> None:
    assert run((*CHECKS, *ADVICE), Config()) == []


def test_a_good_file_passes() -> None:
    config = parse(
        f"{POOL}{BACKEND}models: [{{model: m, targets: [{{pool: p}}, {{backend: default/b, priority: 1}}]}}]", ENVIRON
    )
    assert config.models[0].targets[0].pool == config.pools[0].ref


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("listen: {picker: 127.0.0.1:80, admin: 127.0.0.1:80}", "listen.admin: another listener has this address"),
        ("limits: {body_ttl: 0}", "limits.body_ttl: must be more than 0"),
        ("gateway: {first_byte_timeout: 0}", "gateway.first_byte_timeout: must be more than 0"),
        ("tenants: [{tenants: [a], limits: {concurrent: 0}}]", "tenants[0].limits.concurrent: must be more than 0"),
        (
            "tenants: [{tenants: [a], limits: {usd_per_month: -1}}]",
            "tenants[0].limits.usd_per_month: must not be less than 0",
        ),
        ("tenants: [{tenants: [a], usd_per_hour: 0}]", "tenants[0].usd_per_hour: must be more than 0"),
        (
            f"{POOL[:-3]}, prices: [{{model: m, input_usd: 1, output_usd: -2}}]}}]",
            "pools[0].prices[0]: less than 0; write dollars for a million tokens",
        ),
        ("limits: {body_max_bytes: 2GiB}", "limits.body_max_bytes: larger than buffer_max_bytes"),
        (f"{POOL[:-2]}, {{name: p, endpoints: ['http://h:2']}}]", "pools[1].name: another pool has this name"),
        (f"{POOL[:-3]}, kv_events: {{port: 0}}}}]", "pools[0].kv_events.port: is no port"),
        (f"{POOL[:-3]}, kv_events: {{port: 65535, ranks: 2}}}}]", "pools[0].kv_events.port: is no port"),
        (f"{POOL[:-3]}, kv_events: {{port: 1, ranks: 0}}}}]", "pools[0].kv_events.ranks: must be 1 to 64"),
        (
            f"{POOL[:-3]}, kv_events: {{port: 1, replay_port: 1}}}}]",
            "pools[0].kv_events.replay_port: is the port of the events",
        ),
        (
            "pools: [{name: p, endpoints: [{url: 'http://h:1', kv_events: {port: 70000}}]}]",
            "pools[0].endpoints[0].kv_events.port: is no port",
        ),
        ("pools: [{name: p, endpoints: []}]", "pools[0].endpoints: no endpoint; list at least one URL"),
        ("pools: [{name: p, endpoints: [{url: 'http://h:1', weight: 0}]}]", "pools[0].endpoints: every weight is 0"),
        ("pools: [{name: p, endpoints: ['http://h:1', 'http://H:1/']}]", "pools[0].endpoints[1]: another endpoint"),
        ("pools: [{name: p, endpoints: ['http://h:1/v1/']}]", "pools[0].endpoints[0]: an engine's URL with a version"),
        (
            "backends: [{name: b, api: openai_chat, models: {m: n}}]",
            "backends[0]: needs exactly one of base_url, provider and",
        ),
        (
            "backends: [{name: b, api: openai_chat, models: {m: n}, provider: x, base_url: 'http://h'}]",
            "backends[0]: needs exactly one of base_url, provider and route",
        ),
        (BACKEND.replace("{m: n}", "{}"), "backends[0].models: no model"),
        (BACKEND.replace("{m: n}", "{m: ''}"), "backends[0].models: an empty model name"),
        (
            "access: {tokens: [{name: a, role: user, token: '${A}'}, {name: b, role: sandbox, token: '${A2}'}]}",
            "access.tokens[1].token: another entry has the same token",
        ),
        (
            "models: [{model: m, targets: [{pool: p}]}]",
            "models[0].targets[0].pool: no pool is called default/p; there is",
        ),
        (
            f"{POOL}models: [{{model: m, targets: [{{pool: q}}]}}]",
            "models[0].targets[0].pool: no pool is called default/q",
        ),
        (
            f"{BACKEND}models: [{{model: m, targets: [{{backend: x/b}}]}}]",
            "models[0].targets[0].backend: no backend is called",
        ),
        (
            f"{POOL}models: [{{model: m, targets: [{{model: n}}]}}]",
            "models[0].targets[0]: needs exactly one of pool and",
        ),
        (
            f"{POOL}{BACKEND}models: [{{model: m, targets: [{{pool: p, backend: b}}]}}]",
            "models[0].targets[0]: needs exactly",
        ),
        ("models: [{model: m, targets: []}]", "models[0].targets: no target"),
        (f"{POOL}models: [{{model: '', targets: [{{pool: p}}]}}]", "models[0].model: an empty model name"),
        (
            f"{POOL}models: [{{model: m, targets: [{{pool: p, weight: 0}}]}}]",
            "models[0].targets: every weight of priority 0",
        ),
        (
            f"{POOL}models: [{{model: m, targets: [{{pool: p}}]}}, {{model: m, targets: [{{pool: p}}]}}]",
            "models[1].model: another line has this model",
        ),
        (
            "routing: {policy: round_robbin}",
            "routing.policy: no policy named 'round_robbin'; did you mean 'round_robin'?",
        ),
        ("routing: {parameters: {bnad: 1}}", "routing.parameters.bnad: policy 'expected_latency' has no parameter"),
        ("tenants: [{tenants: []}]", "tenants[0].tenants: no tenant"),
        (
            "gateway: {keys: [{key: '${A}', tenant: a}, {key: '${A2}', tenant: b}]}",
            "gateway.keys[1].key: another entry has the same key",
        ),
    ],
)
def test_parts_that_do_not_hold_together_are_refused(text: str, problem: str) -> None:
    found = problems(text)
    assert len(found) == 1
    assert found[0].partition(": ")[2].startswith(problem)


def test_a_key_without_a_url_has_nowhere_to_go() -> None:
    found = problems("backends: [{name: b, api: openai_chat, models: {m: n}, provider: x, api_key: '${A}'}]")
    assert any("api_key: goes with base_url only" in problem for problem in found)


def test_the_line_of_the_key_is_told() -> None:
    assert problems(f"{POOL}\nmodels:\n- model: m\n  targets:\n  - pool: q\n")[0].startswith("line 6: ")


def test_a_name_may_be_used_again_in_another_namespace() -> None:
    text = f"{POOL[:-2]}, {{name: p, namespace: team, endpoints: ['http://h:1']}}]"
    assert [str(pool.ref) for pool in parse(text).pools] == ["default/p", "team/p"]


def test_the_same_port_may_be_left_to_the_system_twice() -> None:
    assert parse("listen: {picker: 127.0.0.1:0, admin: 127.0.0.1:0}").listen.admin.port == 0


@pytest.mark.parametrize(
    ("backend", "line"),
    [
        (
            BACKEND.replace("api:", "path: /v1/x, api:").replace("https://h", "https://h/v4"),
            "backends[0].path: names a version as base_url does, whose stands: /v4/v1/x; name it in one",
        ),
        (BACKEND.replace("https://h", "http://h"), "backends[0].base_url: sends the key unencrypted; write https"),
    ],
)
def test_what_is_probably_not_meant_is_pointed_out(backend: str, line: str) -> None:
    (told,) = advice(parse(backend, ENVIRON), {})
    assert told.startswith(line)


@pytest.mark.parametrize("path", ["", "path: /chat/completions, "])
def test_a_version_that_base_url_names_is_as_it_should_be(path: str) -> None:
    backend = BACKEND.replace("api:", f"{path}api:").replace("https://h", "https://h/v1")
    assert advice(parse(backend, ENVIRON), {}) == []


AWS = "aws: {access_key_id: '${A}', secret_access_key: '${A}'"


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        ("api: bedrock_converse, base_url: 'https://h', api_key: '${A}', " + AWS + "}", "goes with base_url and"),
        ("api: bedrock_converse, provider: x, " + AWS + "}", "goes with base_url and"),
        ("api: openai_chat, base_url: 'https://h', " + AWS + "}", "signs nothing"),
        ("api: bedrock_converse, base_url: 'https://h', " + AWS + "}", "base_url names none"),
    ],
)
def test_keys_that_cannot_sign_are_told(rest: str, told: str) -> None:
    assert any(told in problem for problem in problems("backends: [{name: b, models: {m: n}, " + rest + "}]"))


@pytest.mark.parametrize(
    "rest",
    [
        "base_url: 'https://h', " + AWS + ", region: us-east-1}",
        "base_url: 'https://bedrock-runtime.us-east-1.amazonaws.com', " + AWS + "}",
    ],
)
def test_keys_with_a_region_can_sign(rest: str) -> None:
    parse("backends: [{name: b, api: bedrock_converse, models: {m: n}, " + rest + "}]", {"A": "a"})
