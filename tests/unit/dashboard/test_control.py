import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kinference.config.schema import Config, Control
from kinference.config.values import Name
from kinference.dashboard.control import ControlApi
from kinference.observe.metrics import Metrics
from kinference.ports import Headers
from kinference.runtime.clock import SystemClock
from kinference.runtime.control import control_plane
from tests.unit.dashboard.asked import JSON, AskedExchange

PROVIDER = {
    "name": "a b/c",
    "type": "openai",
    "credentials": {"OPENAI_API_KEY": "sk-secret"},
    "config": {"OPENAI_BASE_URL": "mock://up"},
}
ONE = "/api/v1/providers/a%20b%2Fc"
ROUTE = "/api/v1/routes/inference.local"
EVERYONE = {"workspace": "default", "sandbox": ""}


class Client:
    def __init__(self, api: ControlApi) -> None:
        self._api = api

    async def raw(self, method: str, path: str, content: bytes = b"", headers: Headers = JSON) -> tuple[int, Any]:
        exchange = AskedExchange(method, path, content, headers)
        await self._api.handle(exchange, "alice")
        assert "sk-secret" not in exchange.sent.decode()
        return exchange.status, json.loads(exchange.sent)

    async def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        return await self.raw(method, path, b"" if body is None else json.dumps(body).encode())

    async def refused(self, method: str, path: str, body: object = None) -> tuple[int, str, str]:
        status, answer = await self.ask(method, path, body)
        return status, answer["error"]["code"], answer["error"]["message"]


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    config = Config(control=Control(workspaces=(Name("team-a"),)))
    async with control_plane(config, {"XDG_STATE_HOME": str(tmp_path)}, SystemClock(), Metrics()) as control:
        yield Client(ControlApi(control.registry, control.routes))


async def test_the_life_of_a_provider(client: Client) -> None:
    shown = {**PROVIDER, "credentials": {"OPENAI_API_KEY": "REDACTED"}, "version": 1}
    assert await client.ask("POST", "/api/v1/providers", PROVIDER) == (200, shown)
    assert await client.ask("GET", "/api/v1/providers") == (200, {"providers": [shown]})
    assert await client.ask("GET", ONE) == (200, shown)
    status, updated = await client.ask("PATCH", ONE, {"config": {"OPENAI_BASE_URL": ""}, "references": {"K": "${X}"}})
    assert (status, updated["config"], updated["credentials"]["K"], updated["version"]) == (200, {}, "${X}", 2)
    assert await client.ask("DELETE", ONE) == (200, {"deleted": True})
    assert await client.ask("DELETE", ONE) == (200, {"deleted": False})


async def test_a_route_may_be_a_workspaces_or_one_sandboxs(client: Client) -> None:
    await client.ask("POST", "/api/v1/providers", PROVIDER)
    asked = {"provider": "a b/c", "model": "m"}
    mine = f"{ROUTE}?workspace=team-a&sandbox=box-1"
    status, answer = await client.ask("PUT", mine, asked)
    assert (status, answer["workspace"], answer["sandbox"]) == (200, "team-a", "box-1")
    assert (await client.ask("GET", ROUTE))[0] == 404
    assert (await client.ask("GET", mine))[1]["version"] == 1
    (listed,) = (await client.ask("GET", "/api/v1/routes"))[1]["routes"]
    assert (listed["workspace"], listed["sandbox"], listed["broken"]) == ("team-a", "box-1", None)
    assert (await client.ask("GET", f"{ROUTE}?workspace=other"))[0] == 404
    assert (await client.ask("GET", f"{ROUTE}?sandbox=a/b"))[0] == 400
    assert (await client.ask("GET", f"{ROUTE}?workspaces=team-a"))[0] == 400
    assert (await client.ask("DELETE", mine)) == (200, {"deleted": True})


async def test_the_life_of_a_route(client: Client) -> None:
    await client.ask("POST", "/api/v1/providers", PROVIDER)
    route = {"route": "inference.local", "provider": "a b/c", "model": "m", "timeout_secs": 9, "version": 1, **EVERYONE}
    endpoint = {"url": "mock://up/v1/chat/completions", "protocol": "openai_chat_completions"}
    asked = {"provider": "a b/c", "model": "m", "timeout_secs": 9}
    assert await client.ask("PUT", ROUTE, asked) == (200, {**route, "validated_endpoints": [endpoint]})
    assert await client.ask("GET", ROUTE) == (200, route)
    assert await client.ask("GET", "/api/v1/routes") == (200, {"routes": [{**route, "broken": None}]})
    assert (await client.refused("DELETE", ONE))[:2] == (400, "FAILED_PRECONDITION")
    assert await client.ask("DELETE", ROUTE) == (200, {"deleted": True})
    assert (await client.refused("GET", ROUTE))[:2] == (404, "NOT_FOUND")


async def test_a_broken_route_says_why(client: Client) -> None:
    await client.ask("POST", "/api/v1/providers", PROVIDER)
    await client.ask("PUT", ROUTE, {"provider": "a b/c", "model": "m"})
    await client.ask("PATCH", ONE, {"credentials": {"OPENAI_API_KEY": ""}})
    _, answer = await client.ask("GET", "/api/v1/routes")
    assert "no usable API key" in answer["routes"][0]["broken"]


async def test_a_route_can_be_replaced_by_the_version_that_was_read(client: Client) -> None:
    await client.ask("POST", "/api/v1/providers", PROVIDER)
    asked = {"provider": "a b/c", "model": "m"}
    await client.ask("PUT", ROUTE, asked)
    assert (await client.refused("PUT", ROUTE, {**asked, "version": 7}))[:2] == (409, "ABORTED")
    assert (await client.ask("PUT", ROUTE, {**asked, "version": 1}))[1]["version"] == 2


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("POST", "/api/v1/providers", {"type": ""}, "INVALID_ARGUMENT"),
        ("POST", "/api/v1/providers", {"typ": "openai"}, "INVALID_ARGUMENT"),
        ("POST", "/api/v1/providers", {"type": "openai", "credentials": {"K": 1}}, "INVALID_ARGUMENT"),
        ("POST", "/api/v1/providers", [], "INVALID_ARGUMENT"),
        ("GET", "/api/v1/providers/gone", None, "NOT_FOUND"),
        ("PATCH", "/api/v1/providers/gone", {}, "NOT_FOUND"),
        ("PUT", "/api/v1/routes/Other", {"provider": "p", "model": "m"}, "INVALID_ARGUMENT"),
        ("PUT", ROUTE, {"provider": "gone", "model": "m"}, "FAILED_PRECONDITION"),
        ("PUT", ROUTE, {"provider": "p", "model": "m", "timeout_secs": -1}, "INVALID_ARGUMENT"),
        ("POST", ROUTE, {}, "INVALID_ARGUMENT"),
        ("PUT", "/api/v1/providers", {}, "INVALID_ARGUMENT"),
    ],
)
async def test_what_cannot_be_is_refused_by_name(
    client: Client, method: str, path: str, body: object, code: str
) -> None:
    assert (await client.refused(method, path, body))[1] == code


async def test_a_name_can_be_had_once(client: Client) -> None:
    await client.ask("POST", "/api/v1/providers", PROVIDER)
    assert (await client.refused("POST", "/api/v1/providers", PROVIDER))[:2] == (409, "ALREADY_EXISTS")
