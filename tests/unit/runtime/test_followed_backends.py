import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kinference.config.destinations import Backend
from kinference.config.schema import Config
from kinference.config.values import Name, Url
from kinference.control.registry import ProviderChange
from kinference.gateway.backends import BackendRoute
from kinference.ids import ObjectRef
from kinference.observe.metrics import Metrics
from kinference.runtime.clock import SystemClock
from kinference.runtime.control import Control, control_plane
from kinference.vocabulary import Api
from kinference.wire.sigv4 import AwsKeys

REF = ObjectRef("default", "cloud")
CLOUD = Backend(Name("cloud"), Api.OPENAI_CHAT, {"m": "n"}, provider=Name("p"))
OWN = Backend(Name("own"), Api.OPENAI_CHAT, {"m": "n"}, base_url=Url("https", "h", 443))
CONFIG = Config(backends=(CLOUD, OWN))
GOOD = ProviderChange("openai", {"OPENAI_API_KEY": "sk-1\n".strip()}, config={"OPENAI_BASE_URL": "https://up.test/v1"})


@pytest.fixture
async def control(tmp_path: Path) -> AsyncIterator[Control]:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    async with control_plane(Config(), environ, SystemClock(), Metrics()) as plane:
        plane.backends.configure(CONFIG)
        yield plane


def errors_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [vars(record)["reason"] for record in caplog.records if record.levelno == logging.ERROR]


async def test_a_backend_is_its_providers_record(control: Control) -> None:
    await control.registry.create("p", GOOD, "test")
    await control.backends.refresh()
    route = control.backends.get(REF)
    assert route is not None
    assert (route.ref, route.base_url, route.api_key, route.api) == (REF, "https://up.test/v1", "sk-1", Api.OPENAI_CHAT)
    assert control.backends.get(OWN.ref) is None


async def test_a_missing_record_is_told_of_once_with_what_to_do(
    control: Control, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        await control.backends.refresh()
    assert control.backends.get(REF) is None
    (told,) = errors_of(caplog)
    assert "kinference provider create" in told


async def test_the_last_good_stays_in_use_while_its_record_is_broken(
    control: Control, caplog: pytest.LogCaptureFixture
) -> None:
    await control.registry.create("p", GOOD, "test")
    await control.backends.refresh()
    await control.registry.update("p", ProviderChange(credentials={"OPENAI_API_KEY": ""}), "test")
    await control.backends.refresh()
    route = control.backends.get(REF)
    assert route is not None
    assert route.api_key == "sk-1"
    assert "no usable API key" in errors_of(caplog)[0]


async def test_a_change_is_followed_at_once(control: Control) -> None:
    async def seen(key: str) -> None:
        while (route := control.backends.get(REF)) is None or route.api_key != key:  # noqa: ASYNC110 - they tell nobody
            await asyncio.sleep(0.005)

    async with asyncio.timeout(3), asyncio.TaskGroup() as group:
        following = group.create_task(control.backends.run())
        await control.registry.create("p", GOOD, "test")
        await seen("sk-1")
        await control.registry.update("p", ProviderChange(credentials={"OPENAI_API_KEY": "sk-2"}), "test")
        await seen("sk-2")
        following.cancel()


async def test_a_used_provider_is_known_by_its_users(control: Control) -> None:
    assert control.backends.users_of("p") == ["backend default/cloud"]
    control.backends.configure(Config())
    assert control.backends.users_of("p") == []
    await control.backends.refresh()
    assert control.backends.get(REF) is None


async def backend_on(control: Control, api: Api, change: ProviderChange) -> BackendRoute:
    """The route of a backend that a new record gives."""
    control.backends.configure(Config(backends=(Backend(Name("cloud"), api, {"m": "claude-x"}, provider=Name("p")),)))
    await control.registry.create("p", change, "test")
    await control.backends.refresh()
    route = control.backends.get(REF)
    assert route is not None
    return route


async def test_a_backend_on_bedrock_signs_with_its_records_keys(control: Control) -> None:
    keys = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "hidden"}
    change = ProviderChange("aws-bedrock", keys, config={"AWS_REGION": "us-east-1"})
    route = await backend_on(control, Api.BEDROCK_CONVERSE, change)
    assert (route.base_url, route.api_key) == ("https://bedrock-runtime.us-east-1.amazonaws.com", "")
    assert route.aws == AwsKeys("AKID", "hidden", "", "us-east-1")


@pytest.mark.parametrize(
    ("api", "version"), [(Api.VERTEX_ANTHROPIC, "v1"), (Api.VERTEX_GEMINI, "v1"), (Api.VERTEX_OPENAI, "v1")]
)
async def test_a_backend_on_vertex_has_the_projects_place_as_its_base(control: Control, api: Api, version: str) -> None:
    config = {"VERTEX_AI_PROJECT": "our-project", "VERTEX_AI_REGION": "us-east5"}
    route = await backend_on(control, api, ProviderChange("vertex", {"VERTEX_AI_TOKEN": "t"}, config=config))
    place = "projects/our-project/locations/us-east5"
    assert (route.base_url, route.api_key) == (f"https://us-east5-aiplatform.googleapis.com/{version}/{place}", "t")


async def test_whoever_asked_is_told_when_a_record_leads_elsewhere_and_only_then(control: Control) -> None:
    told: list[str] = []
    control.backends.on_change(lambda: told.append(control.backends.resolved[REF].api_key))
    await control.registry.create("p", GOOD, "test")
    for _ in range(2):
        await control.backends.refresh()
    assert told == ["sk-1"]
    await control.registry.update("p", ProviderChange(credentials={"OPENAI_API_KEY": "sk-2"}), "test")
    await control.backends.refresh()
    assert told == ["sk-1", "sk-2"]
