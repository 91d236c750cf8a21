"""The remote picker against the real service on a real connection: it is to behave as the direct call does."""

import json
from collections.abc import AsyncIterator, Callable
from random import Random

import grpc
import pytest

from kinference.core.fleet import Fleet
from kinference.core.limits import Limits
from kinference.core.pick import Router
from kinference.core.policy import RoutingRules, TenantRule
from kinference.errors import BodyConsumed, ClientGone, InvalidArgument, PickerUnreachable, RetryLater, UnknownId
from kinference.ids import Address, ResponseId, StreamId
from kinference.observe.metrics import Metrics
from kinference.picker.desk import Desk
from kinference.picker.limits import PickerLimits
from kinference.picker.remote import RemotePicker
from kinference.picker.service import picker_service
from kinference.ports import (
    Allowance,
    Clock,
    FinalTokenReport,
    FirstTokenReport,
    LocalTarget,
    PickArguments,
    PickResult,
    PushMetadata,
)
from kinference.vocabulary import AbortReason, Outcome
from kinference.wire.grpc_server import GrpcServer
from kinference.wire.grpc_session import GrpcLimits
from kinference.wire.grpcio_server import GrpcioServer
from kinference.wire.rpc import RpcService

CHAT = json.dumps({"model": "llama", "messages": [{"role": "user", "content": "hello " * 200}]}).encode()


@pytest.fixture
async def channel(desk: Desk) -> AsyncIterator[grpc.aio.Channel]:
    server = GrpcServer("127.0.0.1:0", [picker_service(desk)], GrpcLimits(1024 * 1024))
    port = await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel
    await server.drain(0)


@pytest.fixture
def picker(channel: grpc.aio.Channel) -> RemotePicker:
    return RemotePicker(channel, chunk_max_bytes=300)


async def chunks(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), 500):
        yield body[start : start + 500]


async def once(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def vanish() -> AsyncIterator[bytes]:
    yield b"half a body"
    raise ClientGone("the client is gone")


async def pick(picker: RemotePicker, *failed: str) -> PickResult:
    pushed = await picker.push_body(chunks(CHAT), PushMetadata("req-1", len(CHAT)))
    assert pushed.total_bytes == len(CHAT)
    tried = frozenset(LocalTarget(Address(address)) for address in failed)
    return await picker.pick(PickArguments(pushed.stream_id, "acme", failed=tried))


async def test_a_whole_flow(picker: RemotePicker, desk: Desk) -> None:
    result = await pick(picker)
    assert result.outcome is Outcome.OK
    assert b"".join([piece async for piece in picker.pull_body(result.response_id)]) == CHAT
    assert await picker.report_first_token(FirstTokenReport(result.response_id, 3, 200))
    assert await picker.report_final_token(FinalTokenReport(result.response_id, "llama", 1, 1, 0))
    assert not await picker.abort(result.response_id, AbortReason.NOT_DISPATCHED)
    assert desk.is_idle
    assert picker.is_connected


async def test_where_a_request_failed_is_where_it_does_not_go_again(picker: RemotePicker) -> None:
    for _ in range(5):
        result = await pick(picker, "10.0.0.1:8000")
        assert result.destination == LocalTarget(Address("10.0.0.2:8000"))
        assert await picker.abort(result.response_id, AbortReason.NOT_DISPATCHED)


async def test_a_source_that_breaks_off_leaves_nothing_to_pick(picker: RemotePicker, desk: Desk) -> None:
    with pytest.raises(ClientGone):
        await picker.push_body(vanish(), PushMetadata())
    await pick(picker)  # on the same connection, so what was reset before it has been dealt with
    assert desk.buffered_bytes == len(CHAT)


async def test_failures_have_the_names_that_they_have_in_process(
    picker: RemotePicker, channel: grpc.aio.Channel
) -> None:
    with pytest.raises(InvalidArgument, match="declared"):
        await picker.push_body(chunks(CHAT), PushMetadata(declared_length=len(CHAT) + 1))
    with pytest.raises(RetryLater):
        await RemotePicker(channel).push_body(once(b"x" * 9_999), PushMetadata())
    with pytest.raises(UnknownId):
        await picker.pick(PickArguments(StreamId(77), ""))
    with pytest.raises(UnknownId):
        [piece async for piece in picker.pull_body(ResponseId(77))]
    pushed = await picker.push_body(chunks(CHAT), PushMetadata())
    await picker.pick(PickArguments(pushed.stream_id, "acme"))
    with pytest.raises(BodyConsumed):
        await picker.pick(PickArguments(pushed.stream_id, "acme"))


async def test_nobody_is_told_where_an_unreachable_picker_was_looked_for() -> None:
    async with grpc.aio.insecure_channel("127.0.0.1:1") as channel:
        picker = RemotePicker(channel)
        for ask in (picker.push_body(chunks(CHAT), PushMetadata()), picker.pick(PickArguments(StreamId(1), ""))):
            with pytest.raises(PickerUnreachable) as told:
                await ask
            assert "127.0.0.1" not in str(told.value)
        assert not picker.is_connected


def own_server(service: RpcService) -> GrpcServer:
    return GrpcServer("127.0.0.1:0", [service], GrpcLimits(1024 * 1024))


def library_server(service: RpcService) -> GrpcioServer:
    return GrpcioServer("127.0.0.1:0", [service])


@pytest.mark.parametrize("server", [own_server, library_server])
async def test_what_is_left_of_a_tenants_limits_is_told_as_in_process(
    fleet: Fleet, clock: Clock, server: Callable[[RpcService], GrpcServer | GrpcioServer]
) -> None:
    rules = RoutingRules(tenants=(TenantRule(("acme",), limits=Limits(10, 100_000)),))
    desk = Desk(Router(fleet, rules, Random(1)), PickerLimits(), clock, Metrics(), Random(2))
    serving = server(picker_service(desk))
    port = await serving.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        result = await pick(RemotePicker(channel))
        assert result.outcome is Outcome.OK
        assert result.requests == Allowance(10, 9, 6.0)
        assert result.tokens is not None
        assert (result.tokens.limit, result.tokens.remaining < 100_000) == (100_000, True)
    await serving.drain(0)


async def test_a_tenant_without_limits_is_told_of_none(picker: RemotePicker) -> None:
    result = await pick(picker)
    assert (result.requests, result.tokens) == (None, None)
