"""PullBody, clause by clause."""

import asyncio
import json

import grpc
import pytest
from grpc import StatusCode

from tests.conformance.picker.client import MIB, PULL_FAILED, Client, Server, status_of, until


async def test_a_large_body_comes_back_whole_in_small_chunks(client: Client, server: Server) -> None:
    body = json.dumps({"model": "llama", "messages": [{"role": "user", "content": "y" * 5 * MIB}]}).encode()
    stream_id, _ = await client.push(*[body[at : at + 700_000] for at in range(0, len(body), 700_000)])
    picked = await client.pick(stream_id)
    chunks = await client.pull(picked.response_id)
    assert b"".join(chunks) == body
    assert max(map(len, chunks)) <= 256 * 1024
    assert server.buffered_bytes() == 0


async def test_a_body_is_pulled_once(client: Client) -> None:
    picked = await client.pushed_and_picked()
    await client.pull(picked.response_id)
    assert await status_of(client.pull(picked.response_id)) is StatusCode.NOT_FOUND
    for unknown in (0, 12345):
        assert await status_of(client.pull(unknown)) is StatusCode.NOT_FOUND


async def test_a_cancelled_pull_cannot_be_resumed_and_its_ticket_lives_on(client: Client, server: Server) -> None:
    body = json.dumps({"model": "llama", "messages": [{"role": "user", "content": "z" * 15 * MIB}]}).encode()
    picked = await client.pick((await client.push(*[body[at : at + MIB] for at in range(0, len(body), MIB)]))[0])
    call = client.pull_call(picked.response_id)
    assert await call.read()
    assert await status_of(client.pull(picked.response_id)) is StatusCode.NOT_FOUND
    call.cancel()
    await until(lambda: server.buffered_bytes() == 0)
    assert await status_of(client.pull(picked.response_id)) is StatusCode.NOT_FOUND
    assert await client.first(picked.response_id)
    assert await client.abort(picked.response_id)
    assert server.is_idle()


@pytest.mark.parametrize("server", [{"buffer_max_bytes": 20 * MIB, "stall_grace": 0.2}], indirect=True)
async def test_a_pull_that_stopped_for_good_gives_way_to_a_new_push(client: Client, server: Server) -> None:
    body = json.dumps({"model": "llama", "messages": [{"role": "user", "content": "z" * 18 * MIB}]}).encode()
    picked = await client.pick((await client.push(*[body[at : at + MIB] for at in range(0, len(body), MIB)]))[0])
    call = client.pull_call(picked.response_id)
    assert await call.read()
    await asyncio.sleep(0.5)
    assert server.buffered_bytes() > 5 * MIB
    assert (await client.push(*[b"x" * MIB] * 19))[1] == 19 * MIB
    async with asyncio.timeout(10):
        assert await status_of(read_on(call)) is StatusCode.RESOURCE_EXHAUSTED


async def test_an_abort_ends_a_pull_that_is_under_way(client: Client, server: Server) -> None:
    body = json.dumps({"model": "llama", "messages": [{"role": "user", "content": "z" * 15 * MIB}]}).encode()
    picked = await client.pick((await client.push(*[body[at : at + MIB] for at in range(0, len(body), MIB)]))[0])
    call = client.pull_call(picked.response_id)
    assert await call.read()
    assert await client.abort(picked.response_id, PULL_FAILED)
    await until(server.is_idle)
    assert server.buffered_bytes() == 0
    assert await status_of(read_on(call)) is StatusCode.NOT_FOUND


async def test_a_final_report_does_not_cut_a_pull_short(client: Client, server: Server) -> None:
    body = json.dumps({"model": "llama", "messages": [{"role": "user", "content": "z" * 15 * MIB}]}).encode()
    picked = await client.pick((await client.push(*[body[at : at + MIB] for at in range(0, len(body), MIB)]))[0])
    call = client.pull_call(picked.response_id)
    assert await call.read()
    assert await client.final(picked.response_id)
    assert not server.is_idle()
    assert await status_of(read_on(call)) is StatusCode.OK
    await until(server.is_idle)


async def read_on(call: grpc.aio.UnaryStreamCall[bytes, bytes]) -> None:
    while await call.read() is not grpc.aio.EOF:
        pass
