"""The contract's whole flow, black box: one request, a hundred at once, and around them."""

import asyncio
import json
from collections.abc import AsyncIterator

from grpc import StatusCode
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from tests.conformance.picker.client import (
    CHAT,
    MIB,
    OK,
    Client,
    Server,
    declared,
    decode,
    encode,
    forever,
    status_of,
    until,
)


async def test_the_whole_flow(client: Client, server: Server) -> None:
    stream_id, total = await client.push(CHAT[:100], b"", CHAT[100:], metadata=declared(len(CHAT)))
    assert (stream_id != 0, total) == (True, len(CHAT))
    picked = await client.pick(stream_id)
    assert (picked.outcome, picked.model, picked.total) == (OK, "llama", len(CHAT))
    assert picked.response_id != 0
    assert picked.fields[2] in (encode({1: b"10.0.0.1:8000"}), encode({1: b"10.0.0.2:8000"}))
    assert b"".join(await client.pull(picked.response_id)) == CHAT
    assert await client.first(picked.response_id)
    assert await client.final(picked.response_id)
    assert server.is_idle()
    assert server.buffered_bytes() == 0


async def test_a_hundred_interleaved_flows_on_one_connection(client: Client, server: Server) -> None:
    async def flow(number: int) -> None:
        body = json.dumps({"model": "llama", "messages": [{"role": "user", "content": f"{number} " * 3000}]}).encode()

        async def chunks() -> AsyncIterator[bytes]:
            for start in range(0, len(body), 1000):
                yield body[start : start + 1000]
                await asyncio.sleep(0)

        reply = decode(await client.push_call(chunks(), declared(len(body)), timeout=30))
        assert reply[2] == len(body)
        assert isinstance(reply[1], int)
        picked = await client.pick(reply[1])
        assert picked.total == len(body)
        assert b"".join(await client.pull(picked.response_id)) == body
        if number % 4 == 0:
            assert await client.abort(picked.response_id)
            return
        assert await client.first(picked.response_id)
        assert await client.final(picked.response_id)

    await asyncio.gather(*(flow(number) for number in range(100)))
    assert server.is_idle()
    assert server.buffered_bytes() == 0


async def test_a_stalled_pull_and_a_slow_push_hold_up_nothing_else(client: Client) -> None:
    big = json.dumps({"model": "llama", "messages": [{"role": "user", "content": "x" * 12 * MIB}]}).encode()
    chunks = [big[start : start + MIB] for start in range(0, len(big), MIB)]
    stalled = client.pull_call((await client.pick((await client.push(*chunks))[0])).response_id)
    assert await stalled.read()
    slow = client.push_call(forever())
    for _ in range(5):
        picked = await client.pushed_and_picked()
        assert b"".join(await client.pull(picked.response_id)) == CHAT
    stalled.cancel()
    slow.cancel()


async def test_a_draining_server_refuses_new_pushes_and_finishes_what_has_begun(client: Client, server: Server) -> None:
    go_on = asyncio.Event()

    async def halting() -> AsyncIterator[bytes]:
        yield CHAT[:50]
        await go_on.wait()
        yield CHAT[50:]

    begun = client.push_call(halting())
    await until(lambda: server.buffered_bytes() == 50)
    server.drain()
    assert await status_of(client.push_call([CHAT])) is StatusCode.UNAVAILABLE
    go_on.set()
    stream_id = decode(await begun)[1]
    assert isinstance(stream_id, int)
    picked = await client.pick(stream_id)
    assert b"".join(await client.pull(picked.response_id)) == CHAT
    assert await client.final(picked.response_id)
    assert server.is_idle()


async def test_health_and_reflection_are_served_and_nothing_else(client: Client) -> None:
    health = health_pb2_grpc.HealthStub(client.channel)
    for service in ("", "kinference.v1.Picker"):
        answer = await health.Check(health_pb2.HealthCheckRequest(service=service))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    stub = reflection_pb2_grpc.ServerReflectionStub(client.channel)
    ask = reflection_pb2.ServerReflectionRequest(list_services="")
    named = [
        service.name
        async for reply in stub.ServerReflectionInfo(iter([ask]))
        for service in reply.list_services_response.service
    ]
    assert "kinference.v1.Picker" in named
    assert await status_of(client.unary("Unheard", b"")) is StatusCode.UNIMPLEMENTED


async def test_answers_are_not_compressed_for_a_caller_that_did_not_ask(client: Client) -> None:
    picked = await client.pushed_and_picked()
    call = client.pull_call(picked.response_id)
    assert await call.read()
    metadata = await call.initial_metadata()
    assert dict(metadata or ()).get("grpc-encoding", "identity") == "identity"
    call.cancel()
