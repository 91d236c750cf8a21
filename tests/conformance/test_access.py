"""Bearer tokens as callers meet them: which role opens what, on every port, on either wire, and while tokens change."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import grpc
import pytest
from grpc import StatusCode
from grpc_health.v1 import health_pb2, health_pb2_grpc

from kinference.cli import main
from kinference.config.schema import Access, AccessToken, Config, Control, Listen
from kinference.config.values import HostPort, Name, Secret, StoreUrl
from kinference.conformance.client import Client, Issued, open_channel, status_of
from kinference.conformance.target import Security, Target
from kinference.runtime.service import Service, running
from kinference.runtime.wires import Wire
from kinference.vocabulary import Role

ANY = HostPort("127.0.0.1", 0)
TOKENS = {role: f"{role.value}-token" for role in Role}
BUNDLE = "/openshell.inference.v1.Inference/GetInferenceBundle"
ROUTE = "/openshell.inference.v1.Inference/GetClusterInference"
OPENED_BY: Mapping[str, set[Role]] = {
    "/kinference.v1.Picker/Abort": {Role.PICKER},
    BUNDLE: {Role.SANDBOX},
    ROUTE: {Role.USER, Role.ADMIN},
    "/metrics": {Role.METRICS, Role.ADMIN},
    "/api/v1/endpoints": {Role.ADMIN},
    "/api/v1/decisions": {Role.ADMIN},
    "/api/v1/providers": {Role.ADMIN},
}


def guarded(folder: Path, tokens: Mapping[Role, str]) -> Config:
    access = Access(tuple(AccessToken(Name(role.value), role, Secret("${T}", token)) for role, token in tokens.items()))
    store = Control(StoreUrl(f"sqlite:///{folder}/control.db"))
    return Config(listen=Listen(ANY, ANY, ANY), access=access, control=store, pools=())


@pytest.fixture(params=Wire, ids=lambda wire: str(wire.value))
async def service(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Service]:
    async with running(guarded(tmp_path, TOKENS), request.param) as service:
        yield service


async def opens(service: Service, what: str, token: str) -> object:
    """The status of a call or request with this token."""
    if what.count("/") == 2 and "." in what:
        target = Target("127.0.0.1", service.ports.picker, security=Security(token=token))
        async with open_channel(target) as channel:
            return await status_of(Client(channel, target, Issued()).unary(what, b""))
    return (await asyncio.to_thread(fetch, f"http://127.0.0.1:{service.ports.admin}{what}", token))[0]


def fetch(url: str, token: str) -> tuple[int, Mapping[str, str]]:
    try:
        with urlopen(Request(url, headers={"authorization": f"Bearer {token}"} if token else {}), timeout=10) as answer:
            return answer.status, dict(answer.headers)
    except HTTPError as error:
        with error:
            return error.code, dict(error.headers)


@pytest.mark.parametrize("what", OPENED_BY)
async def test_each_role_opens_what_is_its_own_and_nothing_else(service: Service, what: str) -> None:
    is_call = what.count("/") == 2 and "." in what
    unknown, denied = (StatusCode.UNAUTHENTICATED, StatusCode.PERMISSION_DENIED) if is_call else (401, 403)
    assert [await opens(service, what, token) for token in ("", "wrong", "picker-toke")] == [unknown] * 3
    opened = {role for role in Role if await opens(service, what, TOKENS[role]) not in (unknown, denied)}
    assert opened == OPENED_BY[what]
    assert {await opens(service, what, TOKENS[role]) for role in set(Role) - opened} == {denied}


async def test_every_method_of_the_picker_asks(service: Service) -> None:
    target = Target("127.0.0.1", service.ports.picker)
    async with open_channel(target) as channel:
        client = Client(channel, target, Issued())
        unary = ("Pick", "ReportFirstToken", "ReportFinalToken", "Abort")
        statuses = {await status_of(client.unary(each, b"")) for each in unary}
        statuses |= {await status_of(client.pull(1)), await status_of(await client.begin_push())}
    assert statuses == {StatusCode.UNAUTHENTICATED}


async def test_a_push_is_refused_before_any_of_it_is_read(service: Service) -> None:
    target = Target("127.0.0.1", service.ports.picker)
    async with open_channel(target) as channel:
        call = await Client(channel, target, Issued()).begin_push()
        assert await status_of(call) is StatusCode.UNAUTHENTICATED


async def test_health_is_told_to_everybody(service: Service) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{service.ports.picker}") as channel:
        answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    for path in ("/healthz", "/readyz"):
        status, _ = await asyncio.to_thread(fetch, f"http://127.0.0.1:{service.ports.admin}{path}", "")
        assert status in (200, 503)


async def test_who_shows_nothing_over_http_is_told_what_to_show(service: Service) -> None:
    status, headers = await asyncio.to_thread(fetch, f"http://127.0.0.1:{service.ports.admin}/metrics", "")
    assert (status, {name.lower(): value for name, value in headers.items()}["www-authenticate"]) == (
        401,
        'Bearer realm="kinference"',
    )


async def test_a_new_configuration_turns_tokens_over_at_once(service: Service, tmp_path: Path) -> None:
    what = "/kinference.v1.Picker/Abort"
    service.apply(guarded(tmp_path, TOKENS | {Role.PICKER: "next-token"}))
    assert await opens(service, what, "next-token") is StatusCode.OK
    assert await opens(service, what, TOKENS[Role.PICKER]) is StatusCode.UNAUTHENTICATED


async def test_no_token_is_told_by_any_answer_or_in_the_log(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG"):
        for what in OPENED_BY:
            for token in (*TOKENS.values(), "wrong-secret"):
                await opens(service, what, token)
    assert not [token for token in (*TOKENS.values(), "wrong-secret") if token in caplog.text]


async def test_the_suite_runs_with_a_token_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    token, wrong = tmp_path / "token", tmp_path / "wrong"
    token.write_text("picker-token\n")
    wrong.write_text("metrics-token\n")
    async with running(guarded(tmp_path, TOKENS)) as service:
        only = ["--only", "abort", "--only", "push.a-half-close-*", "--only", "pull.an-unknown-*", "--output", "json"]
        command = ["conformance", "--target", f"127.0.0.1:{service.ports.picker}", *only]
        assert await asyncio.to_thread(main, [*command, "--token-file", str(token)]) == 0
        capsys.readouterr()
        assert await asyncio.to_thread(main, [*command, "--token-file", str(wrong)]) == 1
    assert "PERMISSION_DENIED" in capsys.readouterr().out


async def test_the_commands_for_the_admin_port_take_a_token_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = tmp_path / "token"
    token.write_text("admin-token")
    async with running(guarded(tmp_path, TOKENS)) as service:
        command = ["route", "get", "--admin", f"http://127.0.0.1:{service.ports.admin}", "--output", "json"]
        assert await asyncio.to_thread(main, [*command, "--token-file", str(token)]) == 0
        assert await asyncio.to_thread(main, command) == 1
    assert "needs authorization" in capsys.readouterr().err


async def test_the_audit_log_names_who_changed_a_record_over_http(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(guarded(tmp_path, TOKENS)) as service:
        url = f"http://127.0.0.1:{service.ports.admin}/api/v1/providers"
        headers = {"authorization": "Bearer admin-token", "content-type": "application/json"}
        request = Request(url, json.dumps({"name": "p", "type": "openai", "credentials": {"A": "x"}}).encode(), headers)
        with caplog.at_level("INFO", "kinference.control.audit"):
            await asyncio.to_thread(lambda: urlopen(request, timeout=10).close())
    assert vars(caplog.records[-1])["actor"].startswith("admin admin 127.0.0.1")
