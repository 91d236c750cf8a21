"""What the control plane does not do for whoever asks: reach into the network, follow redirects, mix up its callers."""

from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace
from typing import Any

import grpc
import pytest

from kinference.config.schema import Access, AccessToken, Config, Verify
from kinference.config.values import Name, Secret
from kinference.runtime.service import running
from kinference.vocabulary import Role
from tests.conformance.control.client import Client
from tests.conformance.control.conftest import Admin, Provider

TOKENS = (
    AccessToken(Name("alice"), Role.USER, Secret("${A}", "user-token")),
    AccessToken(Name("box"), Role.SANDBOX, Secret("${B}", "box-token")),
)


@pytest.fixture
def config(config: Config, request: pytest.FixtureRequest) -> Config:
    return replace(config, control=replace(config.control, **getattr(request, "param", {})))


async def status_of(call: Awaitable[Any]) -> tuple[grpc.StatusCode, str]:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code(), error.details() or ""
    return grpc.StatusCode.OK, ""


@pytest.mark.parametrize("config", [{"verify": Verify(allow_private=False)}], indirect=True)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"])
async def test_a_private_endpoint_is_not_tried_where_it_is_not_allowed(
    client: Client, admin: Admin, provider: Provider, host: str
) -> None:
    await admin.create(OPENAI_BASE_URL=provider.url.replace("127.0.0.1", host))
    code, details = await status_of(client.set())
    assert code is grpc.StatusCode.FAILED_PRECONDITION
    assert "control.verify.allow_private" in details
    assert provider.probes == []
    assert (await client.set(no_verify=True)).version == 1


@pytest.mark.parametrize("address", ["169.254.169.254", "[fd00:ec2::254]", "[::ffff:169.254.169.254]"])
async def test_the_machines_own_credentials_are_never_asked_for(client: Client, admin: Admin, address: str) -> None:
    await admin.create(OPENAI_BASE_URL=f"http://{address}/latest")
    code, details = await status_of(client.set())
    assert code is grpc.StatusCode.FAILED_PRECONDITION
    assert "metadata" in details


async def test_no_redirect_is_followed_and_no_page_repeated(client: Client, admin: Admin, provider: Provider) -> None:
    provider.answers["/v1/chat/completions"] = (307, b"<title>Intranet</title>")
    await admin.create()
    code, details = await status_of(client.set())
    assert code is grpc.StatusCode.FAILED_PRECONDITION
    assert "HTTP 307" in details
    assert "Intranet" not in details
    assert len(provider.probes) == 1


@pytest.fixture
async def channel(config: Config) -> AsyncIterator[grpc.aio.Channel]:
    async with (
        running(replace(config, access=Access(TOKENS))) as service,
        grpc.aio.insecure_channel(f"127.0.0.1:{service.ports.picker}") as opened,
    ):
        yield opened


async def test_fact37_users_and_sandboxes_are_kept_apart(channel: grpc.aio.Channel) -> None:
    unset = grpc.StatusCode.UNAUTHENTICATED
    for token, user, sandbox in (
        ("", unset, unset),
        ("wrong", unset, unset),
        ("user-token", grpc.StatusCode.NOT_FOUND, grpc.StatusCode.PERMISSION_DENIED),
        ("box-token", grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.OK),
    ):
        client = Client(channel, token=token)
        assert [(await status_of(call))[0] for call in (client.get(), client.bundle())] == [user, sandbox]


async def test_fact37_a_sandbox_sets_nothing(channel: grpc.aio.Channel) -> None:
    for later in (False, True):
        code, _ = await status_of(Client(channel, later=later, token="box-token").set())
        assert code is grpc.StatusCode.PERMISSION_DENIED
