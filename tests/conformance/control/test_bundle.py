"""The bundle, fact by fact."""

import time
from collections.abc import Callable
from typing import Any

import grpc
import pytest

from tests.conformance.control.client import Client
from tests.conformance.control.conftest import Admin

ALL_OPENAI = [
    *("openai_chat_completions", "openai_completions", "openai_responses", "openai_embeddings"),
    "model_discovery",
]


async def test_fact23_nothing_set_is_an_empty_success(client: Client) -> None:
    bundle = await client.bundle()
    assert len(bundle.routes) == 0
    assert bundle.revision


async def test_fact24_the_users_route_comes_first(client: Client, admin: Admin) -> None:
    await admin.create()
    await client.set(route="sandbox-system", model="s")
    assert [route.name for route in (await client.bundle()).routes] == ["sandbox-system"]
    await client.set()
    assert [route.name for route in (await client.bundle()).routes] == ["inference.local", "sandbox-system"]


@pytest.mark.parametrize(
    ("kind", "key", "expected"),
    [
        ("openai", "OPENAI_API_KEY", ("https://api.openai.com/v1", ALL_OPENAI)),
        (" OpenAI ", "OPENAI_API_KEY", ("https://api.openai.com/v1", ALL_OPENAI)),
        ("nvidia", "NVIDIA_API_KEY", ("https://integrate.api.nvidia.com/v1", ALL_OPENAI)),
        ("deepinfra", "DEEPINFRA_API_KEY", ("https://api.deepinfra.com/v1/openai", ALL_OPENAI)),
        (
            "anthropic",
            "ANTHROPIC_API_KEY",
            ("https://api.anthropic.com/v1", ["anthropic_messages", "model_discovery"]),
        ),
    ],
)
async def test_fact25_fact26_fact30_a_type_has_its_url_and_protocols(
    client: Client, admin: Admin, kind: str, key: str, expected: tuple[str, list[str]]
) -> None:
    await admin.create(kind=kind, credentials={key: "sk-1", "A_OTHER": "sk-2"}, UNRELATED="1")
    await client.set(no_verify=True)
    (route,) = (await client.bundle()).routes
    assert (route.base_url, list(route.protocols)) == expected
    assert (route.api_key, route.model_id, route.provider_type) == ("sk-1", "m", kind.strip().lower())


async def test_fact27_the_revision_follows_the_content_and_nothing_else(later: Client, admin: Admin) -> None:
    await admin.create()
    await later.set()
    revisions = [(await later.bundle()).revision for _ in range(2)]
    await later.set()
    revisions.append((await later.bundle()).revision)
    assert len(set(revisions)) == 1
    changes: list[Callable[[], Any]] = [
        lambda: admin.update(credentials={"OPENAI_API_KEY": "sk-new"}),
        lambda: admin.update(config={"OPENAI_BASE_URL": "https://other.test"}),
        lambda: later.set(model="n", no_verify=True),
        lambda: later.set(model="n", timeout_secs=7, no_verify=True),
    ]
    for change in changes:
        await change()
        revisions.append((await later.bundle()).revision)
    assert len(set(revisions)) == 1 + len(changes)


async def test_fact27_the_revision_outlives_the_process(
    client: Client, admin: Admin, restart: Callable[[], Any]
) -> None:
    await admin.create()
    await client.set()
    before = (await client.bundle()).revision
    async with restart() as again, grpc.aio.insecure_channel(f"127.0.0.1:{again.ports.picker}") as channel:
        assert (await Client(channel).bundle()).revision == before


async def test_fact28_a_bundle_tells_when_it_was_made(client: Client) -> None:
    assert abs((await client.bundle()).generated_at_ms / 1000 - time.time()) < 60


async def test_fact29_a_rotated_key_is_in_the_next_bundle(client: Client, admin: Admin) -> None:
    await admin.create()
    await client.set()
    await admin.update(credentials={"OPENAI_API_KEY": "sk-rotated"})
    assert (await client.bundle()).routes[0].api_key == "sk-rotated"


async def test_fact31_without_the_preferred_credential_the_first_in_the_alphabet(client: Client, admin: Admin) -> None:
    await admin.create(credentials={"Z": "sk-z", "B": "sk-b", "A": " "})
    await client.set()
    assert (await client.bundle()).routes[0].api_key == "sk-b"


@pytest.mark.parametrize(
    ("model", "region", "expected"),
    [
        (
            "claude-x",
            "us-central1",
            (
                "https://us-central1-aiplatform.googleapis.com/v1/projects/my-project/locations/us-central1/publishers/anthropic/models",
                "claude-x",
                ":rawPredict",
            ),
        ),
        (
            "gemini-x",
            "global",
            (
                "https://aiplatform.googleapis.com/v1beta1/projects/my-project/locations/global/endpoints/openapi",
                "google/gemini-x",
                "/chat/completions",
            ),
        ),
    ],
)
async def test_fact33_vertex_puts_model_and_region_where_they_belong(
    later: Client, admin: Admin, model: str, region: str, expected: tuple[str, str, str]
) -> None:
    placed = {"VERTEX_AI_PROJECT": "my-project", "VERTEX_AI_REGION": region}
    await admin.create(kind="vertex", credentials={"VERTEX_AI_TOKEN": "t"}, **placed)
    await later.set(model=model, no_verify=True)
    (route,) = (await later.bundle()).routes
    assert (route.base_url, route.model_id, route.request_path_override) == expected
    assert (route.provider_type, route.model_in_path) == ("google-vertex-ai", model == "claude-x")


async def test_fact35_bedrock_needs_its_bridge_and_no_key(client: Client, admin: Admin) -> None:
    await admin.create(kind="aws-bedrock", credentials={}, UNRELATED="1")
    with pytest.raises(grpc.aio.AioRpcError, match="empty base_url"):
        await client.set(no_verify=True)
    await admin.update(config={"BEDROCK_BASE_URL": "http://bridge"})
    with pytest.raises(grpc.aio.AioRpcError, match="none of its protocols can be tried"):
        await client.set()
    await client.set(no_verify=True)
    (route,) = (await client.bundle()).routes
    assert (route.api_key, list(route.protocols)) == ("", ["aws_bedrock_invoke"])


async def test_a_broken_route_takes_no_other_down(client: Client, admin: Admin) -> None:
    await admin.create()
    await admin.create("q", credentials={"K": "sk-q"})
    await client.set(route="sandbox-system")
    await client.set("q")
    await admin.update(credentials={"OPENAI_API_KEY": ""})
    assert [route.name for route in (await client.bundle()).routes] == ["inference.local"]


async def test_both_generations_read_the_same_bundle(client: Client, later: Client, admin: Admin) -> None:
    await admin.create()
    await later.set(timeout_secs=9)
    old, new = await client.bundle(), await later.bundle()
    assert (old.revision, old.routes[0].api_key) == (new.revision, new.routes[0].api_key)
