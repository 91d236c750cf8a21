"""Set and Get, fact by fact; the numbers are those of the behaviour that clients of the original rely on."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import grpc
import pytest

from tests.conformance.control.client import Client
from tests.conformance.control.conftest import Admin, Provider

INVALID, PRECONDITION = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION
MISSING = grpc.StatusCode.NOT_FOUND


async def refused(call: Awaitable[Any], code: grpc.StatusCode, *tokens: str) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await call
    details = refusal.value.details() or ""
    assert refusal.value.code() is code, details
    assert all(token in details for token in tokens), details
    assert "sk-" not in details
    return details


async def test_fact01_each_set_counts_one_up(client: Client, admin: Admin) -> None:
    await admin.create()
    assert (await client.set(model="a")).version == 1
    second = await client.set(model="b")
    assert (second.version, second.provider_name, second.model_id, second.route_name) == (
        2,
        "p",
        "b",
        "inference.local",
    )
    told = await client.get()
    assert (told.version, told.provider_name, told.model_id, told.route_name) == (2, "p", "b", "inference.local")


async def test_fact02_three_spellings_name_the_users_route(client: Client, admin: Admin) -> None:
    await admin.create()
    assert [(await client.set(route=name)).version for name in ("", "  ", "inference.local")] == [1, 2, 3]


async def test_fact03_fact10_the_system_route_has_its_own_version(client: Client, admin: Admin) -> None:
    await admin.create()
    await client.set()
    assert (await client.set(route="sandbox-system", model="s")).version == 1
    assert (await client.get("sandbox-system")).model_id == "s"
    assert (await client.get()).model_id == "m"


async def test_fact04_another_route_is_unknown(client: Client) -> None:
    for call in (client.set(route="unknown-route"), client.get("unknown-route")):
        await refused(call, INVALID, "unknown route_name", "unknown-route", "inference.local", "sandbox-system")


async def test_fact05_blank_names_are_refused_in_order(client: Client) -> None:
    await refused(client.set(provider=" ", model=""), INVALID, "provider_name is required")
    await refused(client.set(provider="gone", model=" "), INVALID, "model_id is required")


async def test_fact06_a_missing_provider_is_a_precondition(client: Client) -> None:
    await refused(client.set(provider="gone"), PRECONDITION, "'gone'", "not found")


@pytest.mark.parametrize("kind", ["generic", "claude", "codex", "opencode", "github"])
async def test_fact07_other_types_are_unsupported(client: Client, admin: Admin, kind: str) -> None:
    await admin.create(kind=kind)
    await refused(client.set(), INVALID, "unsupported type", "openai, anthropic, nvidia")


async def test_fact08_a_blank_credential_is_none(client: Client, admin: Admin) -> None:
    await admin.create(credentials={"OPENAI_API_KEY": "  "})
    await refused(client.set(), INVALID, "no usable API key credential")


async def test_fact09_what_was_never_set_is_not_found(client: Client) -> None:
    await refused(client.get(), MISSING)
    await refused(client.get("sandbox-system"), MISSING)


async def test_fact11_fact26_an_openai_provider_is_probed_with_a_chat(
    client: Client, admin: Admin, provider: Provider
) -> None:
    await admin.create()
    answer = await client.set(model="gpt-test")
    assert answer.validation_performed
    assert [(each.url, each.protocol) for each in answer.validated_endpoints] == [
        (f"{provider.url}/v1/chat/completions", "openai_chat_completions")
    ]
    (probe,) = provider.probes
    assert probe.headers[b"authorization"] == b"Bearer sk-test"
    assert probe.headers[b"content-type"] == b"application/json"
    assert probe.body["model"] == "gpt-test"


async def test_fact12_a_refused_key_stores_nothing(client: Client, admin: Admin, provider: Provider) -> None:
    provider.answers["/v1/chat/completions"] = (401, b'{"error": {"message": "key sk-test is wrong"}}')
    await admin.create()
    details = await refused(client.set(), PRECONDITION, "failed to verify inference endpoint", "API key", "--no-verify")
    assert "HTTP 401" in details
    await refused(client.get(), MISSING)


async def test_fact13_fact22_no_verify_stores_whatever_verify_says(client: Client, admin: Admin) -> None:
    await admin.create(OPENAI_BASE_URL="http://127.0.0.1:1")
    answer = await client.set(no_verify=True, verify=True)
    assert (answer.version, answer.validation_performed, len(answer.validated_endpoints)) == (1, False, 0)


async def test_fact14_an_endpoint_that_is_not_there_is_not_stored(client: Client, admin: Admin) -> None:
    await admin.create(OPENAI_BASE_URL="http://127.0.0.1:1")
    await refused(client.set(), PRECONDITION, "failed to verify inference endpoint", "service is up")
    await refused(client.get(), MISSING)


async def test_fact15_a_mock_passes_verification(client: Client, admin: Admin) -> None:
    await admin.create(OPENAI_BASE_URL="mock://test")
    answer = await client.set()
    assert answer.validated_endpoints[0].url == "mock://test/v1/chat/completions"


async def test_fact16_an_anthropic_provider_is_probed_its_own_way(
    client: Client, admin: Admin, provider: Provider
) -> None:
    await admin.create(kind="anthropic", credentials={"ANTHROPIC_API_KEY": "sk-ant"}, ANTHROPIC_BASE_URL=provider.url)
    answer = await client.set()
    assert answer.validated_endpoints[0].protocol == "anthropic_messages"
    (probe,) = provider.probes
    assert (probe.path, probe.headers[b"x-api-key"]) == ("/v1/messages", b"sk-ant")
    assert probe.headers[b"anthropic-version"] == b"2023-06-01"


async def test_fact17_an_older_endpoint_is_tried_again_with_max_tokens(
    client: Client, admin: Admin, provider: Provider
) -> None:
    provider.answers["/v1/chat/completions"] = (400, b'{"error": "unknown field max_completion_tokens"}')
    await admin.create()
    assert (await client.set()).validation_performed
    assert ["max_tokens" in probe.body for probe in provider.probes] == [False, True]


async def test_fact18_an_endpoint_that_only_embeds_is_found(client: Client, admin: Admin, provider: Provider) -> None:
    provider.answers = {"/v1/embeddings": (200, b"{}")}
    await admin.create()
    assert (await client.set()).validated_endpoints[0].protocol == "openai_embeddings"


@pytest.mark.parametrize("status", [401, 429, 500])
async def test_fact19_other_refusals_end_the_probing(
    client: Client, admin: Admin, provider: Provider, status: int
) -> None:
    provider.answers["/v1/chat/completions"] = (status, b"{}")
    await admin.create()
    await refused(client.set(), PRECONDITION, f"HTTP {status}")
    assert len(provider.probes) == 1


async def test_fact20_a_400_that_names_the_key_is_about_credentials(
    client: Client, admin: Admin, provider: Provider
) -> None:
    provider.answers["/v1/chat/completions"] = (400, b'{"error": {"code": "invalid_api_key"}}')
    await admin.create()
    await refused(client.set(), PRECONDITION, "API key")


async def test_fact21_of_several_refused_shapes_the_first_is_told(
    client: Client, admin: Admin, provider: Provider
) -> None:
    provider.answers = {
        "/v1/chat/completions": (404, b'{"error": "first"}'),
        "/v1/responses": (404, b'{"error": "second"}'),
    }
    await admin.create()
    assert "second" not in await refused(client.set(), PRECONDITION, "first")


async def test_fact39_a_route_can_be_unset(later: Client, admin: Admin) -> None:
    await admin.create()
    await later.set()
    assert [await later.delete(), await later.delete()] == [True, False]
    assert len((await later.bundle()).routes) == 0
    assert (await later.set()).version == 1


async def test_fact40_a_hundred_racing_sets_lose_none(client: Client, admin: Admin) -> None:
    await admin.create(OPENAI_BASE_URL="mock://race")
    answers = await asyncio.gather(*(client.set(model=f"m{number}") for number in range(100)))
    assert sorted(answer.version for answer in answers) == list(range(1, 101))
    last = max(answers, key=lambda answer: answer.version)
    assert (await client.get()).model_id == last.model_id


async def test_fact62_a_timeout_is_kept_and_told(later: Client, admin: Admin) -> None:
    await admin.create()
    answer = await later.set(timeout_secs=120, workspace="default")
    assert (answer.timeout_secs, answer.workspace) == (120, "default")
    assert (await later.get()).timeout_secs == 120
    assert (await later.bundle()).routes[0].timeout_secs == 120


async def test_fact38_a_workspace_that_is_not_there_is_not_found(later: Client) -> None:
    await refused(later.set(workspace="other"), MISSING, "workspace")
    await refused(later.get(workspace="other"), MISSING, "workspace")


async def test_get_works_whatever_became_of_the_provider(client: Client, admin: Admin) -> None:
    await admin.create()
    await client.set()
    await admin.update(credentials={"OPENAI_API_KEY": ""})
    assert (await client.get()).provider_name == "p"


async def test_a_provider_in_use_stays(client: Client, admin: Admin) -> None:
    await admin.create()
    await client.set()
    status, answer = await admin.ask("DELETE", "/p")
    assert (status, answer["error"]["code"]) == (400, "FAILED_PRECONDITION")
    assert "route inference.local" in answer["error"]["message"]
