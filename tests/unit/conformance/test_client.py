from grpc import StatusCode

from kinference.conformance.case import Probe
from kinference.conformance.client import Outcome, as_they_are, declared, read_first, read_to_end, status_of
from tests.conformance.serving import Served


async def test_a_whole_request_through_its_methods(probe: Probe) -> None:
    client, body = probe.client, probe.chat()
    stream_id, total = await client.push(body[:9], body[9:], metadata=declared(len(body)))
    assert total == len(body)
    picked = await client.pick(stream_id)
    assert (picked.outcome, picked.is_choice, picked.has_destination) == (Outcome.OK, True, True)
    assert picked.requested_model == "llama"
    assert picked.body_total_bytes == len(body)
    assert b"".join(await client.pull(picked.response_id)) == body
    assert await client.first_token(picked.response_id)
    assert await client.final_token(picked.response_id)
    assert not await client.abort(picked.response_id)


async def test_a_push_that_the_server_ends_early_tells_its_status(probe: Probe) -> None:
    assert await status_of(probe.client.push(b"x" * 10, metadata=declared(3))) is StatusCode.INVALID_ARGUMENT
    assert await status_of(probe.client.push_messages(as_they_are(b"\xff"))) is StatusCode.INVALID_ARGUMENT
    call = await probe.client.begin_push(b"x" * 10, b"more", metadata=declared(3), timeout=10)
    assert await status_of(call) is StatusCode.INVALID_ARGUMENT


async def test_a_pull_is_counted_by_the_bytes_of_its_chunks(probe: Probe) -> None:
    picked = await probe.choice(probe.chat(padding=600_000))
    call = probe.client.pull_call(picked.response_id)
    assert await read_first(call) + await read_to_end(call) == picked.body_total_bytes


async def test_tidying_hands_back_everything_that_was_issued(probe: Probe, server: Served) -> None:
    await probe.client.push(b"never picked")
    await probe.choice()
    async with probe.another_connection() as other:
        await other.push(b"never picked either")
    assert server.desk.buffered_bytes > 0
    await probe.client.tidy()
    assert server.desk.is_idle
    assert server.desk.buffered_bytes == 0
