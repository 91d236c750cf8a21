"""What the contract's suite cannot see or does not ask: draining, reflection, our extensions, the byte account."""

import asyncio
from collections.abc import AsyncIterator

import grpc
import pytest
from grpc import StatusCode
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from kinference.conformance.case import chat
from kinference.conformance.client import Client, Issued, Outcome, open_channel, read_first, status_of
from kinference.conformance.message import encode
from kinference.conformance.target import MIB
from tests.conformance.serving import CARRIERS, ROOMY, TIGHT, Served, served

CHAT = chat("llama", "hello")


@pytest.fixture(params=CARRIERS)
def carrier(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture
async def server(carrier: str) -> AsyncIterator[Served]:
    async with served(ROOMY, carrier) as running:
        yield running


@pytest.fixture
async def client(server: Served) -> AsyncIterator[Client]:
    async with open_channel(server.target) as channel:
        client = Client(channel, server.target, Issued())
        yield client
        await client.tidy()


async def test_a_draining_server_refuses_new_pushes_and_finishes_what_has_begun(client: Client, server: Served) -> None:
    begun = await client.begin_push(CHAT[:50])
    await server.wait_until(lambda: server.desk.buffered_bytes == 50)
    server.desk.drain()
    assert await status_of(client.push(CHAT)) is StatusCode.UNAVAILABLE
    await begun.write(encode({1: CHAT[50:]}))
    await begun.done_writing()
    picked = await client.pick(client.pushed(await begun)[0])
    assert b"".join(await client.pull(picked.response_id)) == CHAT
    assert await client.final_token(picked.response_id)
    assert server.desk.is_idle


async def test_reflection_names_the_service(client: Client) -> None:
    stub = reflection_pb2_grpc.ServerReflectionStub(client.channel)
    ask = reflection_pb2.ServerReflectionRequest(list_services="")
    named = [
        service.name
        async for reply in stub.ServerReflectionInfo(iter([ask]))
        for service in reply.list_services_response.service
    ]
    assert "kinference.v1.Picker" in named


async def test_a_body_is_changed_in_nothing_but_its_model(client: Client) -> None:
    body = b'{"temperature":1.0, "model":"gpt","messages":[{"role":"user","content":"gpt"}]}'
    picked = await client.push_and_pick(body)
    assert picked.fields[7] == encode({1: encode({1: b"default", 2: b"cloud"}), 2: b"/v1/chat"})
    pulled = b"".join(await client.pull(picked.response_id))
    assert pulled == body.replace(b'"model":"gpt"', b'"model":"gpt-long-provider-name"')


@pytest.mark.parametrize(
    ("path", "outcome"), [("/v1/messages", Outcome.NO_WORKERS), ("/v1/chat/completions", Outcome.OK)]
)
async def test_the_clients_path_settles_the_api(client: Client, path: str, outcome: Outcome) -> None:
    body = b'{"model":"gpt","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}'
    metadata = [("kinference-request-path", path)]
    assert (await client.push_and_pick(body, metadata=metadata)).outcome == outcome
    translates = [*metadata, ("kinference-translates", "1")]
    assert (await client.push_and_pick(body, metadata=translates)).outcome == Outcome.OK


@pytest.mark.parametrize("how", ["reset", "deadline", "connection closed"])
async def test_every_byte_of_a_broken_push_is_given_back(server: Served, how: str) -> None:
    async with open_channel(server.target) as channel:
        client = Client(channel, server.target, Issued())
        calls = [await client.begin_push(b"begun", timeout=0.5 if how == "deadline" else None) for _ in range(10)]
        await server.wait_until(lambda: server.desk.buffered_bytes == 50)
        if how == "reset":
            for call in calls:
                call.cancel()
        if how == "deadline":
            assert {await status_of(call) for call in calls} == {StatusCode.DEADLINE_EXCEEDED}
        if how != "connection closed":
            await server.wait_until_idle()
    await server.wait_until_idle()


async def test_a_pull_that_is_reset_gives_back_what_was_not_read(client: Client, server: Served) -> None:
    body = chat("llama", "hello", 15 * MIB)
    stream_id, _ = await client.push(*(body[at : at + MIB] for at in range(0, len(body), MIB)))
    picked = await client.pick(stream_id)
    call = client.pull_call(picked.response_id)
    await read_first(call)
    assert server.desk.buffered_bytes > 0
    call.cancel()
    await server.wait_until(lambda: server.desk.buffered_bytes == 0)
    assert await client.final_token(picked.response_id)


async def test_a_pull_that_gives_way_is_told_why() -> None:
    body = chat("llama", "hello", 15 * MIB)
    async with served(TIGHT) as server, open_channel(server.target) as channel:
        client = Client(channel, server.target, Issued())
        stream_id, _ = await client.push(*(body[at : at + MIB] for at in range(0, len(body), MIB)))
        call = client.pull_call((await client.pick(stream_id)).response_id)
        await read_first(call)
        await asyncio.sleep(TIGHT.limits.stall_grace + 0.2)
        for _ in range(2):
            await client.push(*[b"x" * MIB] * 8)
        assert await status_of(_read_on(call)) is StatusCode.RESOURCE_EXHAUSTED
        await client.tidy()


async def _read_on(call: grpc.aio.UnaryStreamCall[bytes, bytes]) -> None:
    while await call.read() is not grpc.aio.EOF:
        pass
