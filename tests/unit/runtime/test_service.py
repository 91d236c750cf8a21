import asyncio
import json
import socket
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from anthropic import AsyncAnthropic, InternalServerError
from anthropic.types import MessageParam

from kinference.config.destinations import Backend
from kinference.config.load import from_engines
from kinference.config.schema import Access, AccessToken, Config, Control, Listen, Peer, Planes, Routing
from kinference.config.tenants import TenantLimits, TenantPolicy
from kinference.config.values import HostPort, Name, Secret, StoreUrl, Url
from kinference.control.registry import ProviderChange
from kinference.core.limits import Limits
from kinference.core.prices import Price
from kinference.errors import ConfigError
from kinference.ports import UpstreamRequest
from kinference.runtime.planes import Plane
from kinference.runtime.service import Ports, running, write_ports
from kinference.sim.options import EngineOptions
from kinference.sim.serving import serve_engine
from kinference.vocabulary import Api, Role
from kinference.wire.aiohttp_upstream import AiohttpUpstream

ANY = HostPort("127.0.0.1", 0)
FREE = Config(listen=Listen(ANY, ANY, ANY))
NOWHERE = replace(from_engines(["http://127.0.0.1:1"]), listen=FREE.listen)


async def status(port: int, target: str) -> int:
    async with AiohttpUpstream() as upstream:
        answer = await upstream.send(UpstreamRequest("GET", f"http://127.0.0.1:{port}", target, ()))
        await answer.close()
        return answer.status


async def shown(port: int, target: str) -> bytes:
    async with AiohttpUpstream() as upstream:
        answer = await upstream.send(UpstreamRequest("GET", f"http://127.0.0.1:{port}", target, ()))
        return b"".join([chunk async for chunk in answer.chunks()])


async def chat_status(port: int) -> int:
    async with AiohttpUpstream() as upstream:
        body = b'{"model": "nobody-serves-this", "messages": [{"role": "user", "content": "hi"}]}'
        fields = ((b"content-type", b"application/json"),)
        asked = UpstreamRequest("POST", f"http://127.0.0.1:{port}", "/v1/chat/completions", fields, (body,))
        answer = await upstream.send(asked)
        await answer.close()
        return answer.status


async def test_all_three_ports_answer_while_it_runs_and_none_afterwards() -> None:
    async with running(FREE) as service:
        ports = service.ports
        assert len({ports.picker, ports.gateway, ports.admin, 0}) == 4
        assert await status(ports.gateway, "/health") == 200
        assert await status(ports.admin, "/healthz") == 200
        async with grpc.aio.insecure_channel(f"127.0.0.1:{ports.picker}") as channel:
            await channel.channel_ready()
    for port in (ports.picker, ports.gateway, ports.admin):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))


async def test_an_unreachable_engine_does_not_hold_up_the_start() -> None:
    async with running(NOWHERE) as service:
        await service.settled()
        assert service.in_flight() == {"127.0.0.1:1": 0}
        assert await status(service.ports.admin, "/readyz") == 503


async def test_a_taken_port_is_named_by_its_key() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config = replace(FREE, listen=replace(FREE.listen, admin=HostPort("127.0.0.1", taken.getsockname()[1])))
        with pytest.raises(
            ConfigError,
            match=r"listen\.admin: cannot listen on .*KINFERENCE_LISTEN_ADMIN to another; port 0 takes a free one",
        ):
            async with running(config):
                pass


async def test_a_new_configuration_is_in_force_at_once() -> None:
    async with running(FREE) as service:
        service.apply(NOWHERE)
        assert service.in_flight() == {"127.0.0.1:1": 0}
        service.apply(FREE)
        assert service.in_flight() == {}


async def test_h17_a_request_under_way_keeps_the_engine_that_a_new_configuration_drops() -> None:
    async with serve_engine(EngineOptions(("m",), speed=20.0, output_tokens=40)) as engine:
        served = replace(from_engines([f"http://127.0.0.1:{engine.port}"]), listen=FREE.listen)
        async with running(served) as service:
            await service.settled()
            client = AsyncAnthropic(base_url=f"http://127.0.0.1:{service.ports.gateway}", api_key="any", max_retries=0)
            asked: list[MessageParam] = [{"role": "user", "content": "hi"}]
            async with client, client.messages.stream(model="m", max_tokens=40, messages=asked) as stream:
                await anext(aiter(stream.text_stream))
                service.apply(FREE)
                answer = await stream.get_final_message()
            assert (answer.stop_reason, answer.usage.output_tokens) == ("max_tokens", 40)
            assert await chat_status(service.ports.gateway) == 404


async def test_h17_a_new_configuration_that_cannot_be_used_changes_nothing() -> None:
    async with running(NOWHERE) as service:
        with pytest.raises(ConfigError, match="round_robin"):
            service.apply(replace(FREE, routing=Routing("round_robbin")))
        assert service.config is NOWHERE
        assert service.in_flight() == {"127.0.0.1:1": 0}


async def test_a_replaced_token_is_shown_to_the_picker_with_the_next_request(caplog: pytest.LogCaptureFixture) -> None:
    def asking(token: str) -> Config:
        return replace(FREE, access=Access((AccessToken(Name("gateway"), Role.PICKER, Secret("${T}", token)),)))

    async with running(asking("first"), planes=frozenset({Plane.PICKER})) as picker:
        peer = Peer(Url("http", "127.0.0.1", picker.ports.picker), Secret("${T}", "first"))
        apart = replace(FREE, planes=Planes(peer))
        async with running(apart, planes=frozenset({Plane.GATEWAY})) as gateway:
            assert await chat_status(gateway.ports.gateway) == 404
            picker.apply(asking("second"))
            assert await chat_status(gateway.ports.gateway) == 503
            gateway.apply(replace(apart, planes=Planes(replace(peer, token=Secret("${T}", "second")))))
            assert await chat_status(gateway.ports.gateway) == 404
            assert "next start" not in caplog.text
            gateway.apply(replace(apart, planes=Planes(replace(peer, url=Url("http", "elsewhere", 1)))))
            assert "next start" in caplog.text


def test_the_ports_file_is_json_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "ports.json"
    write_ports(file, Ports(1, 2, 3))
    assert json.loads(file.read_text()) == {"picker": 1, "gateway": 2, "admin": 3}
    assert list(tmp_path.iterdir()) == [file]


BUDGET = TenantPolicy(("acme",), limits=TenantLimits(usd_per_month=5.0))


async def test_a_budget_needs_a_store_that_can_tell_what_was_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kinference").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match=r"control\.store: the store .* cannot be used.*budgets need it"):
        async with running(replace(FREE, tenants=(BUDGET,))):
            pass
    async with running(FREE):
        pass


async def test_what_was_spent_is_booked_when_the_service_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    config = replace(NOWHERE, tenants=(BUDGET,))
    async with running(config) as service:
        accounts = service._spending.accounts
        account = accounts.of("acme", Limits(usd_per_month=5.0), 0.0)
        assert account is not None
        account.hold(1, Price(1.0, 0.0), 0.0).settle(2_000_000, 0, 0)
    async with running(config) as service:
        account = service._spending.accounts.of("acme", Limits(usd_per_month=5.0), 0.0)
        assert account is not None
        assert account.spent_usd == 2.0


async def test_a_provider_record_that_changes_puts_its_backend_right(tmp_path: Path) -> None:
    backend = Backend(Name("cloud"), Api.OPENAI_CHAT, {"m": "gpt-4o"}, provider=Name("p"))
    section = Control(StoreUrl(f"sqlite:///{tmp_path}/control.db"))
    config = replace(FREE, backends=(backend,), control=section)
    change = ProviderChange("openai", {"OPENAI_API_KEY": "sk-1"}, config={"OPENAI_BASE_URL": "https://up.test/v1"})
    async with running(config) as service:
        control = service._links.control
        assert control is not None
        (before,) = service._parts.fleet.backends()
        await control.registry.create("p", change, "test")
        await control.backends.refresh()
        (after,) = service._parts.fleet.backends()
        assert before.revision != after.revision


async def test_who_has_no_answer_when_the_process_ends_is_told_so_in_its_own_words() -> None:
    options = EngineOptions(("m",), speed=0.01)
    async with serve_engine(options) as engine, asyncio.timeout(20):
        config = replace(from_engines([f"http://127.0.0.1:{engine.port}"]), listen=FREE.listen)
        async with running(config) as service:
            await service.settled()
            async with AsyncAnthropic(
                base_url=f"http://127.0.0.1:{service.ports.gateway}", api_key="any", max_retries=0
            ) as client:
                message: MessageParam = {"role": "user", "content": "hi" * 100_000}
                asked = [
                    asyncio.ensure_future(client.messages.create(model="m", max_tokens=5, messages=[message]))
                    for _ in range(3)
                ]
                while b'{"interactive":2}' not in await shown(service.ports.admin, "/api/v1/waiting"):  # noqa: ASYNC110 - it signals nothing
                    await asyncio.sleep(0.005)
                await service.drain(0.5)
                for refused in await asyncio.gather(*asked, return_exceptions=True):
                    assert isinstance(refused, InternalServerError)
                    assert (refused.status_code, refused.response.headers["retry-after"]) == (503, "1")
                    assert "overloaded_error" in str(refused)
