import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import grpc
import pytest

from kinference.control.service import SERVICE
from kinference.sandbox.polling import INTERVAL, BundleClient, FetchedBundle, NoBundle, Poller, interval_of
from kinference.sandbox.routes import RouteTable, SandboxRoute
from kinference.wire.grpcio_server import GrpcioServer
from kinference.wire.proto import control_pb2 as pb
from kinference.wire.rpc import Call, RpcError, RpcService, Status

CHAT = "openai_chat_completions"
ROUTE = SandboxRoute("inference.local", "https://h", (CHAT,), "sk-1", "m", "openai", 9, True, ":rawPredict")


class Source:
    """Bundles or failures in order, the last one for ever."""

    def __init__(self, *bundles: FetchedBundle | NoBundle) -> None:
        self._bundles = list(bundles)

    async def fetch(self) -> FetchedBundle:
        bundle = self._bundles[0] if len(self._bundles) == 1 else self._bundles.pop(0)
        if isinstance(bundle, NoBundle):
            raise bundle
        return bundle


async def test_a_new_revision_replaces_the_routes() -> None:
    table = RouteTable()
    poller = Poller(Source(FetchedBundle("1", (ROUTE,)), FetchedBundle("2", ())).fetch, table, 1)
    await poller.poll()
    assert table.serving(CHAT) == ROUTE
    await poller.poll()
    assert table.is_empty


async def test_an_equal_revision_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    table = RouteTable()
    poller = Poller(Source(FetchedBundle("1", (ROUTE,)), FetchedBundle("1", ())).fetch, table, 1)
    await poller.poll()
    await poller.poll()
    assert table.serving(CHAT) == ROUTE


async def test_the_last_routes_stay_while_none_can_be_had(caplog: pytest.LogCaptureFixture) -> None:
    table = RouteTable()
    poller = Poller(Source(FetchedBundle("1", (ROUTE,)), NoBundle("UNAVAILABLE: gone")).fetch, table, 1)
    for _ in range(4):
        await poller.poll()
    assert table.serving(CHAT) == ROUTE
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1


async def test_it_polls_for_ever_also_after_a_failed_start() -> None:
    table = RouteTable()
    poller = Poller(Source(NoBundle("not up yet"), FetchedBundle("1", (ROUTE,))).fetch, table, 0.001)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        polling = group.create_task(poller.run())
        while table.is_empty:  # noqa: ASYNC110 - the table tells nobody
            await asyncio.sleep(0.001)
        polling.cancel()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(None, INTERVAL), ("9", 9), ("0", INTERVAL), ("abc", INTERVAL), ("-1", INTERVAL), ("", INTERVAL)],
)
def test_fact61_the_interval_is_a_number_above_0_or_the_default(text: str | None, seconds: float) -> None:
    assert interval_of(text) == seconds


@asynccontextmanager
async def serving(handler: Callable[[Call], object]) -> AsyncIterator[grpc.aio.Channel]:
    server = GrpcioServer("127.0.0.1:0", [RpcService(SERVICE, {"GetInferenceBundle": handler})])  # type: ignore[dict-item] # each test writes its own handler
    port = await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel
    await server.drain(0)


async def test_a_bundle_is_fetched_with_the_token_of_the_moment() -> None:
    seen: list[object] = []

    async def bundle(call: Call) -> None:
        seen.append(dict(call.metadata)["authorization"])
        told = pb.ResolvedRoute(
            name=ROUTE.name,
            base_url=ROUTE.base_url,
            protocols=ROUTE.protocols,
            api_key=ROUTE.api_key,
            model_id=ROUTE.model_id,
            provider_type=ROUTE.provider_type,
            timeout_secs=ROUTE.timeout_secs,
            model_in_path=True,
            request_path_override=":rawPredict",
        )
        await call.send(pb.GetInferenceBundleResponse(routes=[told], revision="7").SerializeToString())

    tokens = iter(("first", "second"))
    async with serving(bundle) as channel:
        client = BundleClient(channel, lambda: next(tokens))
        assert [await client.fetch() for _ in range(2)] == [FetchedBundle("7", (ROUTE,))] * 2
    assert seen == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize("token", ["two\nlines", "a b", "\u00e9", "nul\x00"])
async def test_what_cannot_be_a_token_is_not_sent_and_ends_nothing(token: str) -> None:
    async with grpc.aio.insecure_channel("127.0.0.1:1") as channel:
        with pytest.raises(NoBundle, match="no token has") as told:
            await BundleClient(channel, lambda: token).fetch()
    assert token not in str(told.value)


async def test_a_refusal_is_no_bundle() -> None:
    async def refuse(call: Call) -> None:
        raise RpcError(Status.PERMISSION_DENIED, "a user may not")

    async with serving(refuse) as channel:
        with pytest.raises(NoBundle, match="PERMISSION_DENIED: a user may not"):
            await BundleClient(channel, lambda: "").fetch()
