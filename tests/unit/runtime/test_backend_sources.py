from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kinference.config.destinations import Backend
from kinference.config.schema import Config
from kinference.config.values import Name
from kinference.control.registry import ProviderChange
from kinference.control.routes import RouteRequest
from kinference.ids import ObjectRef
from kinference.observe.metrics import Metrics
from kinference.runtime.backend_sources import BundleSource
from kinference.runtime.clock import SystemClock
from kinference.runtime.control import Control, control_plane
from kinference.runtime.followed_backends import FollowedBackends, Unresolved
from kinference.sandbox.polling import FetchedBundle, NoBundle
from kinference.sandbox.routes import SandboxRoute
from kinference.vocabulary import Api

BACKEND = Backend(Name("cloud"), Api.ANTHROPIC_MESSAGES, {"m": "n"}, route=Name("claude"))
BY_RECORD = Backend(Name("other"), Api.OPENAI_CHAT, {"m": "n"}, provider=Name("p"))
REF = ObjectRef("default", "cloud")
ROUTE = SandboxRoute("claude", "https://up.test/v1", ("anthropic_messages",), "sk-1\n", "claude", "anthropic")


@pytest.fixture
async def control(tmp_path: Path) -> AsyncIterator[Control]:
    async with control_plane(Config(), {"XDG_STATE_HOME": str(tmp_path)}, SystemClock(), Metrics()) as plane:
        plane.backends.configure(Config(backends=(BACKEND,)))
        yield plane


async def test_a_route_of_the_same_process_is_followed(control: Control, caplog: pytest.LogCaptureFixture) -> None:
    await control.backends.refresh()
    assert "kinference route set --route claude" in vars(caplog.records[-1])["reason"]
    record = ProviderChange("anthropic", {"ANTHROPIC_API_KEY": "sk-1"}, config={"ANTHROPIC_BASE_URL": "https://a.test"})
    await control.registry.create("p", record, "test")
    await control.routes.set(RouteRequest("claude", "p", "claude", no_verify=True, allows_extra=True), "test")
    await control.backends.refresh()
    found = control.backends.get(REF)
    assert found is not None
    assert (found.base_url, found.api_key) == ("https://a.test", "sk-1")
    await control.registry.update("p", ProviderChange(credentials={"ANTHROPIC_API_KEY": ""}), "test")
    await control.backends.refresh()
    assert control.backends.get(REF) == found
    await control.routes.delete("claude", "test", allows_extra=True)
    await control.backends.refresh()
    assert control.backends.get(REF) is None


async def test_a_bundle_of_another_process_is_followed_and_its_last_good_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bundles: list[FetchedBundle] = [FetchedBundle("1", (ROUTE,))]

    async def fetch() -> FetchedBundle:
        if not bundles:
            raise NoBundle("UNAVAILABLE: gone")
        return bundles.pop()

    backends = FollowedBackends(BundleSource(fetch))
    backends.configure(Config(backends=(BACKEND,)))
    for _ in range(3):
        await backends.refresh()
    found = backends.get(REF)
    assert found is not None
    assert (found.base_url, found.api_key, found.api) == ("https://up.test/v1", "sk-1", Api.ANTHROPIC_MESSAGES)
    assert [record.getMessage() for record in caplog.records] == [
        "backends cannot be resolved, the last known stay in use: UNAVAILABLE: gone"
    ]


async def test_a_route_that_is_no_longer_in_the_bundle_is_used_no_longer() -> None:
    bundles = [FetchedBundle("2", ()), FetchedBundle("1", (ROUTE,))]

    async def fetch() -> FetchedBundle:
        return bundles.pop()

    backends = FollowedBackends(BundleSource(fetch))
    backends.configure(Config(backends=(BACKEND,)))
    await backends.refresh()
    assert backends.get(REF) is not None
    await backends.refresh()
    assert backends.get(REF) is None


async def test_records_do_not_leave_the_process_that_keeps_them() -> None:
    async def fetch() -> FetchedBundle:
        return FetchedBundle("1", ())

    resolve = await BundleSource(fetch).read()
    with pytest.raises(Unresolved, match="name a route instead"):
        await resolve(BY_RECORD)
    with pytest.raises(Unresolved, match="route 'claude' is not in the bundle"):
        await resolve(BACKEND)


BY_ROUTE = Backend(Name("cloud"), Api.BEDROCK_CONVERSE, {"m": "n"}, route=Name("nova"))
AWS = "https://bedrock-runtime.us-east-1.amazonaws.com"
KEYS = {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "secret"}


@pytest.mark.parametrize(
    ("credentials", "base_url", "signs"),
    [
        (KEYS, AWS, True),
        (KEYS, "https://bridge.test", False),
        ({}, "https://bridge.test", False),
        ({}, AWS, None),
    ],
)
async def test_a_route_to_bedrock_is_signed_where_the_record_is_in_the_same_process(
    control: Control, caplog: pytest.LogCaptureFixture, credentials: dict[str, str], base_url: str, signs: bool | None
) -> None:
    control.backends.configure(Config(backends=(BY_ROUTE,)))
    given = credentials or {"unused": "x"}
    record = ProviderChange("aws-bedrock", given, config={"BEDROCK_BASE_URL": base_url})
    await control.registry.create("p", record, "test")
    await control.routes.set(RouteRequest("nova", "p", "n", no_verify=True, allows_extra=True), "test")
    await control.backends.refresh()
    found = control.backends.get(REF)
    if signs is None:
        assert found is None
        assert "AWS_BEARER_TOKEN_BEDROCK" in vars(caplog.records[-1])["reason"]
    else:
        assert found is not None
        assert (found.base_url, found.api_key, found.aws is not None) == (base_url, "", signs)


async def test_a_bundle_leads_to_bedrock_by_a_bridge_alone() -> None:
    def route(base_url: str) -> SandboxRoute:
        return SandboxRoute("nova", base_url, ("aws_bedrock_invoke",), "", "n", "aws-bedrock")

    bundles = [FetchedBundle("1", (route("https://bridge.test"),)), FetchedBundle("2", (route(AWS),))]

    async def fetch() -> FetchedBundle:
        return bundles.pop()

    source = BundleSource(fetch)
    with pytest.raises(Unresolved, match="write base_url with aws or api_key"):
        await (await source.read())(BY_ROUTE)
    assert (await (await source.read())(BY_ROUTE)).base_url == "https://bridge.test"
