"""Drains by the admin port."""

import json
from typing import Any

import pytest

from kinference.dashboard.endpoints import EndpointsApi
from kinference.ids import Address
from tests.unit.dashboard.asked import JSON, AskedExchange

ONE = "/api/v1/endpoints/%5Bfd00%3A%3A1%5D%3A8000"


class Asked:
    """Stands where the fleet is."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, bool]] = []

    def drain(self, address: Address, pool: str, draining: bool) -> list[object]:
        self.calls.append((address, pool, draining))
        return [{"address": address, "draining": draining}] if address == "[fd00::1]:8000" else []


async def ask(fleet: Asked, body: object, path: str = ONE, method: str = "PATCH") -> tuple[int, Any]:
    exchange = AskedExchange(method, path, json.dumps(body).encode(), JSON)
    await EndpointsApi(fleet.drain).handle(exchange, "ops")
    return exchange.status, json.loads(exchange.sent)


async def test_a_drain_begins_and_ends_and_is_in_the_log_with_who_asked(caplog: pytest.LogCaptureFixture) -> None:
    fleet = Asked()
    row = {"address": "[fd00::1]:8000", "draining": True}
    assert await ask(fleet, {"draining": True}) == (200, {"endpoints": [row]})
    await ask(fleet, {"draining": False, "pool": "default/a"})
    assert fleet.calls == [("[fd00::1]:8000", "", True), ("[fd00::1]:8000", "default/a", False)]
    assert caplog.messages == ["[fd00::1]:8000 drains", "[fd00::1]:8000 drains no longer"]
    assert vars(caplog.records[0])["actor"] == "admin ops 127.0.0.1:5"


@pytest.mark.parametrize("body", [{}, {"draining": "yes"}, {"draining": True, "ready": False}, []])
async def test_anything_else_cannot_be_changed(body: object) -> None:
    fleet = Asked()
    assert (await ask(fleet, body))[0] == 400
    assert (await ask(fleet, {"draining": True}, method="DELETE"))[0] == 400
    assert not fleet.calls


async def test_an_endpoint_that_is_not_there_is_said() -> None:
    status, answer = await ask(Asked(), {"draining": True, "pool": "default/a"}, "/api/v1/endpoints/nope")
    assert (status, answer["error"]["code"]) == (404, "NOT_FOUND")
    assert answer["error"]["message"] == "there is no endpoint nope in pool default/a; see: kinference endpoint list"


def test_only_members_of_the_collection_are_answered_for() -> None:
    api = EndpointsApi(Asked().drain)
    assert [api.serves(path) for path in (ONE, "/api/v1/endpoints", "/api/v1/endpointsx/y")] == [True, False, False]
