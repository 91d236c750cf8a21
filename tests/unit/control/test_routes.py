import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from kinference.control.catalogue import Catalogue, Provider, Route
from kinference.control.errors import Missing, Overtaken, Unmet
from kinference.control.registry import ProviderChange, Registry
from kinference.control.routes import RouteRequest, Routes
from kinference.control.scope import Scope
from kinference.control.store.base import Kind, Row
from kinference.control.store.sqlite import SqliteStore
from kinference.errors import InvalidArgument
from kinference.observe.metrics import Metrics
from tests.unit.control.fakes import Answer, Outside

WANTED = RouteRequest("", "p", "m")


@pytest.fixture(autouse=True)
async def provider(registry: Registry, openai: ProviderChange) -> Provider:
    return await registry.create("p", openai, "test")


async def test_fact1_each_set_gives_the_next_version(routes: Routes) -> None:
    assert (await routes.set(WANTED, "test")).route == Route("inference.local", "p", "m", 0, 1)
    assert (await routes.set(RouteRequest("", "p", "n", timeout_secs=9), "test")).route.version == 2
    assert await routes.get("") == Route("inference.local", "p", "n", 9, 2)


async def test_fact2_fact3_the_two_routes_have_versions_of_their_own(routes: Routes) -> None:
    for name in ("", "  ", "inference.local", " inference.local "):
        await routes.set(RouteRequest(name, "p", "m"), "test")
    assert (await routes.set(RouteRequest("sandbox-system", "p", "m"), "test")).route.version == 1
    assert (await routes.get("")).version == 4


@pytest.mark.parametrize(
    ("wanted", "token"),
    [
        (RouteRequest("other", "", ""), "unknown route_name 'other'"),
        (RouteRequest("Inference.local", "p", "m"), "unknown route_name"),
        (RouteRequest("", " ", ""), "provider_name is required"),
        (RouteRequest("", "gone", "\t"), "model_id is required"),
        (RouteRequest("", "p" * 254, "m"), "provider_name is longer than 253 bytes"),
        (RouteRequest("", "p", "m" * 1025), "model_id is longer than 1024 bytes"),
    ],
)
async def test_fact4_fact5_the_first_check_that_fails_is_told(routes: Routes, wanted: RouteRequest, token: str) -> None:
    with pytest.raises(InvalidArgument, match=token):
        await routes.set(wanted, "test")


async def test_fact6_a_missing_provider_is_a_precondition(routes: Routes) -> None:
    with pytest.raises(Unmet, match="provider 'p ' not found"):
        await routes.set(RouteRequest("", "p ", "m"), "test")


async def test_fact9_what_was_never_set_is_missing(routes: Routes) -> None:
    with pytest.raises(Missing, match="kinference route set"):
        await routes.get("sandbox-system")


async def test_fact12_nothing_is_stored_when_verification_fails(routes: Routes, answering: Callable[..., None]) -> None:
    answering(Answer(401))
    with pytest.raises(Unmet, match="failed to verify"):
        await routes.set(WANTED, "test")
    with pytest.raises(Missing):
        await routes.get("")


async def test_fact13_fact22_no_verify_stores_without_trying(routes: Routes, outside: Outside) -> None:
    result = await routes.set(RouteRequest("", "p", "m", no_verify=True), "test")
    assert (result.validated, outside.asked) == (None, [])


async def test_a_set_over_another_version_than_expected_is_overtaken(routes: Routes) -> None:
    await routes.set(WANTED, "test")
    with pytest.raises(Overtaken):
        await routes.set(RouteRequest("", "p", "n", expected_version=2), "test")
    assert (await routes.set(RouteRequest("", "p", "n", expected_version=1), "test")).route.version == 2


async def test_a_hundred_racing_sets_are_all_counted_once(routes: Routes) -> None:
    results = await asyncio.gather(*(routes.set(RouteRequest("", "p", f"m{n}"), "test") for n in range(100)))
    assert sorted(result.route.version for result in results) == list(range(1, 101))
    newest = max(results, key=lambda result: result.route.version)
    assert await routes.get("") == newest.route


async def test_a_provider_that_goes_while_its_endpoint_is_tried_is_not_set(
    routes: Routes, catalogue: Catalogue, outside: Outside
) -> None:
    class Deleting(Outside):
        async def send(self, request: object) -> Answer:
            await catalogue.delete_provider("p")
            return Answer(200)

    routes._parts.verifier._upstream = Deleting()  # the provider must go just then
    with pytest.raises(Unmet, match="not found"):
        await routes.set(WANTED, "test")


async def test_fact39_deleting_is_idempotent_and_versions_start_again(routes: Routes) -> None:
    await routes.set(WANTED, "test")
    assert await routes.delete("", "test")
    assert not await routes.delete("", "test")
    assert (await routes.bundle()).routes == ()
    assert (await routes.set(WANTED, "test")).route.version == 1


@pytest.mark.parametrize("call", ["set", "get", "delete"])
async def test_a_workspace_that_is_not_there_is_not_found(routes: Routes, call: str) -> None:
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "set": lambda: routes.set(RouteRequest("bad name", "p", "m", scope=Scope("other")), "test"),
        "get": lambda: routes.get("bad name", Scope("other")),
        "delete": lambda: routes.delete("bad name", "test", Scope("other")),
    }
    with pytest.raises(Missing, match=r"workspace 'other' not found; .*control\.workspaces"):
        await calls[call]()
    assert (await routes.set(RouteRequest("", "p", "m", scope=Scope("default")), "test")).route.version == 1


async def test_fact38_a_workspace_has_routes_of_its_own(routes: Routes) -> None:
    team = Scope("team-a")
    await routes.set(WANTED, "test")
    assert (await routes.bundle(team)).routes == ()
    made = await routes.set(replace(WANTED, scope=team, model_id="other"), "test")
    assert (made.route.version, made.route.key) == (1, "team-a/inference.local")
    assert [route.model_id for route in (await routes.bundle(team)).routes] == ["other"]
    assert [route.model_id for route in (await routes.bundle()).routes] == [WANTED.model_id]
    assert (await routes.get("", team)).model_id == "other"
    assert await routes.delete("", "test", team)
    assert (await routes.bundle(team)).routes == ()
    assert len((await routes.bundle()).routes) == 1


async def test_a_sandbox_has_its_own_route_in_place_of_its_workspaces(routes: Routes) -> None:
    one, other = Scope("team-a", "box-1"), Scope("team-a", "box-2")
    await routes.set(replace(WANTED, scope=Scope("team-a")), "test")
    await routes.set(replace(WANTED, scope=Scope("team-a"), route_name="extra", allows_extra=True), "test")
    await routes.set(replace(WANTED, scope=one, model_id="own"), "test")
    assert [(route.name, route.model_id) for route in (await routes.bundle(one)).routes] == [
        ("inference.local", "own"),
        ("extra", WANTED.model_id),
    ]
    assert [route.model_id for route in (await routes.bundle(other)).routes] == [WANTED.model_id] * 2
    assert (await routes.bundle(Scope(sandbox="box-1"))).routes == ()


async def test_fact23_fact24_the_bundle_has_what_is_set_in_a_fixed_order(routes: Routes) -> None:
    assert (await routes.bundle()).routes == ()
    await routes.set(RouteRequest("sandbox-system", "p", "s"), "test")
    assert [route.name for route in (await routes.bundle()).routes] == ["sandbox-system"]
    await routes.set(WANTED, "test")
    bundle = await routes.bundle()
    assert [(route.name, route.model_id) for route in bundle.routes] == [
        ("inference.local", "m"),
        ("sandbox-system", "s"),
    ]
    assert {route.base_url for route in bundle.routes} == {"https://up.test/v1"}
    assert {route.api_key for route in bundle.routes} == {"sk-test-secret"}


async def test_further_routes_stand_between_the_two_and_are_not_the_contracts(routes: Routes) -> None:
    for name in ("sandbox-system", "zeta", "alpha", ""):
        await routes.set(RouteRequest(name, "p", "m", allows_extra=True), "test")
    names = [route.name for route in (await routes.bundle()).routes]
    assert names == ["inference.local", "alpha", "zeta", "sandbox-system"]
    assert (await routes.get("alpha", allows_extra=True)).version == 1
    for call in (
        routes.get("alpha"),
        routes.delete("alpha", "test"),
        routes.set(RouteRequest("alpha", "p", "m"), "test"),
    ):
        with pytest.raises(InvalidArgument, match="unknown route_name"):
            await call
    assert await routes.delete("alpha", "test", allows_extra=True)


@pytest.mark.parametrize("name", ["Alpha", "-a", "a b", "a/b", "a" * 64, "é"])
async def test_a_further_route_has_a_plain_name(routes: Routes, name: str) -> None:
    with pytest.raises(InvalidArgument, match="unknown route_name"):
        await routes.set(RouteRequest(name, "p", "m", allows_extra=True), "test")


async def test_fact29_a_rotated_key_is_in_the_next_bundle(routes: Routes, registry: Registry) -> None:
    await routes.set(WANTED, "test")
    before = await routes.bundle()
    await registry.update("p", ProviderChange(credentials={"OPENAI_API_KEY": "sk-new"}), "test")
    after = await routes.bundle()
    assert after.routes[0].api_key == "sk-new"
    assert after.revision != before.revision


async def test_a_broken_route_takes_no_other_down_and_is_told_of_once(
    routes: Routes, registry: Registry, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    await registry.create("q", ProviderChange("openai", {"K": "sk-q"}), "test")
    await routes.set(WANTED, "test")
    await routes.set(RouteRequest("sandbox-system", "q", "m"), "test")
    await registry.update("q", ProviderChange(credentials={"K": ""}), "test")
    with caplog.at_level(logging.ERROR):
        bundles = [await routes.bundle() for _ in range(3)]
    assert [[route.name for route in bundle.routes] for bundle in bundles] == [["inference.local"]] * 3
    assert "no usable API key" in bundles[0].left_out[0].reason
    assert len([record for record in caplog.records if record.levelno == logging.ERROR]) == 1
    assert b'kinference_control_routes_left_out{route="sandbox-system"} 1.0' in metrics.exposition()
    await routes.delete("sandbox-system", "test")
    assert b'kinference_control_routes_left_out{route="sandbox-system"} 0.0' in metrics.exposition()
    await registry.update("q", ProviderChange(credentials={"K": "sk-q"}), "test")
    await routes.set(RouteRequest("sandbox-system", "q", "m"), "test")
    assert len((await routes.bundle()).routes) == 2
    assert b'kinference_control_routes_left_out{route="sandbox-system"} 0.0' in metrics.exposition()


async def test_a_route_stored_without_its_provider_is_a_precondition_and_left_out(
    routes: Routes, store: SqliteStore
) -> None:
    await store.write(Row(Kind.ROUTE, "inference.local", b'{"model_id": "m", "timeout_secs": 0}'))
    with pytest.raises(Unmet, match="set it again"):
        await routes.get("")
    assert "without its provider" in (await routes.bundle()).left_out[0].reason


async def test_a_damaged_record_takes_only_its_own_routes_out(routes: Routes, store: SqliteStore) -> None:
    await routes.set(WANTED, "test")
    await store.write(Row(Kind.PROVIDER, "torn", b'{"type": '))
    await store.write(Row(Kind.ROUTE, "further", b'{"model_id": "m", "timeout_secs": 0}', "torn"))
    await store.write(Row(Kind.ROUTE, "other", b"\xff", "p"))
    bundle = await routes.bundle()
    assert [each.name for each in bundle.routes] == ["inference.local"]
    reasons = {each.name: each.reason for each in bundle.left_out}
    assert "damaged record" in reasons["further"]
    assert "set it again" in reasons["other"]


async def test_a_broken_route_that_another_replica_deletes_is_left_out_no_longer(
    routes: Routes, registry: Registry, catalogue: Catalogue, metrics: Metrics
) -> None:
    await routes.set(WANTED, "test")
    await registry.update("p", ProviderChange(credentials={"OPENAI_API_KEY": ""}), "test")
    await routes.bundle()
    assert b'kinference_control_routes_left_out{route="inference.local"} 1.0' in metrics.exposition()
    await catalogue.delete_route("inference.local")
    await routes.bundle()
    assert b'kinference_control_routes_left_out{route="inference.local"} 0.0' in metrics.exposition()


async def test_a_sandbox_that_polls_has_no_secret_of_another_workspace_opened(
    routes: Routes, registry: Registry, metrics: Metrics
) -> None:
    await routes.set(WANTED, "test")
    await registry.update("p", ProviderChange(credentials={"OPENAI_API_KEY": ""}), "test")
    await routes.bundle(Scope("team-a", "box"))
    assert b"routes_left_out{" not in metrics.exposition()
    await routes.examined()
    assert b'routes_left_out{route="inference.local"} 1.0' in metrics.exposition()


async def test_every_change_is_in_the_audit_log_without_a_secret(
    routes: Routes, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "kinference.control.audit"):
        await routes.set(WANTED, "alice")
        await routes.delete("", "bob")
    told = [(record.message, vars(record)["actor"], vars(record)["route"]) for record in caplog.records]
    assert told == [("route set", "alice", "inference.local"), ("route deleted", "bob", "inference.local")]
    assert "sk-test" not in str([vars(record) for record in caplog.records])
