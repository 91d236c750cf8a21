"""Whole requests, many at once, and what holds for every call."""

import asyncio
from collections.abc import AsyncIterator

from grpc import StatusCode

from kinference.conformance import message
from kinference.conformance.case import Probe, case
from kinference.conformance.claims import expect, expect_equal
from kinference.conformance.client import CALL_TIMEOUT, Client, declared, read_first, status_of
from kinference.conformance.http2 import framed
from kinference.conformance.message import decode, encode
from kinference.conformance.target import LARGE_BODY, MIB, MODEL

IN_FLIGHT = 100
ROUNDS, TINY_CHUNKS = 5, 1000
HEALTH = "/grpc.health.v1.Health/Check"
SERVING = 1
GZIP = "gzip"


async def whole(probe: Probe, client: Client, number: int) -> None:
    """One request from push to its end, in small chunks."""
    text = f"request {number}."
    body = probe.chat(text, padding=9000)

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 1000):
            yield body[start : start + 1000]
            await asyncio.sleep(0)

    reply = await client.push_chunks(chunks(), declared(len(body)))
    stream_id, total = client.pushed(reply)
    expect_equal(total, len(body), "total_bytes")
    picked = await client.pick(stream_id)
    expect(picked.is_choice, f"no destination: {picked.reason}")
    pulled = b"".join(await client.pull(picked.response_id))
    expect_equal(len(pulled), picked.body_total_bytes, "bytes pulled, against body_total_bytes")
    expect(text.encode() in pulled, "the body of another request")
    if number % 4 == 0:
        expect(await client.abort(picked.response_id), "the abort released nothing")
        return
    expect(await client.first_token(picked.response_id), "the first report was not acknowledged")
    expect(await client.final_token(picked.response_id), "the final report was not acknowledged")


@case("E1", needs=(MODEL,))
async def requests_interleave_on_one_connection(probe: Probe) -> None:
    await asyncio.gather(*(whole(probe, probe.client, number) for number in range(IN_FLIGHT)))


@case("E1", needs=(MODEL,))
async def requests_on_many_connections_do_not_mix(probe: Probe) -> None:
    async def one(number: int) -> None:
        async with probe.another_connection() as client:
            await whole(probe, client, number)

    await asyncio.gather(*(one(number) for number in range(10)))


@case("E2", needs=(MODEL, LARGE_BODY))
async def a_stalled_pull_and_a_slow_push_hold_up_nothing_else(probe: Probe) -> None:
    picked = await probe.large_choice(12 * MIB)
    stalled = probe.client.pull_call(picked.response_id)
    await read_first(stalled)
    slow = [await probe.client.begin_push(b"begun") for _ in range(10)]
    async with asyncio.timeout(CALL_TIMEOUT):
        for number in range(5):
            await whole(probe, probe.client, number)
    stalled.cancel()
    for call in slow:
        call.cancel()


@case("E2", needs=(MODEL,))
async def a_flood_of_tiny_chunks_holds_up_nothing_else(probe: Probe) -> None:
    """Each Pick comes behind bytes of the flood on its own connection, and is answered while the flood goes on."""
    body, byte = probe.chat(), framed(encode({1: b"x"}))
    async with probe.raw() as connection:
        flood = connection.call("PushBody")
        for _ in range(ROUNDS):
            for _ in range(TINY_CHUNKS):
                connection.send(flood, byte, end=False)
            stream = connection.call("PushBody", declared(len(body)))
            connection.send(stream, framed(encode({1: body})), end=True)
            stream_id, _ = probe.client.pushed(bytes((await connection.finished(stream)).data[5:]))
            stream = connection.call("Pick")
            connection.send(stream, framed(encode({1: stream_id, 5: probe.target.names.tenant.encode()})), end=True)
            answer = await connection.finished(stream)
            expect_equal(answer.grpc_status, 0, "the status of a Pick beside the flood")
            probe.client.issued.response_ids.add(message.number(decode(bytes(answer.data[5:])), 3))
            expect(not connection.answer(flood).is_over, "the flood was ended by the server")
        connection.send(flood, b"", end=True)
        _, total = probe.client.pushed(bytes((await connection.finished(flood)).data[5:]))
    expect_equal(total, ROUNDS * TINY_CHUNKS, "total_bytes of the flood")


@case("E3", needs=(MODEL,))
async def a_request_may_be_abandoned_at_any_point(probe: Probe) -> None:
    for _ in range(5):
        async with probe.another_connection() as other:
            await other.begin_push(b"begun")
            await other.push(b"never picked")
            picked = await other.push_and_pick(probe.chat())
            expect(picked.is_choice, f"no destination: {picked.reason}")
            pull = other.pull_call((await other.push_and_pick(probe.chat())).response_id)
            await pull.read()
    await whole(probe, probe.client, 1)


@case("E4", needs=(MODEL,))
async def an_answer_is_not_compressed_for_who_takes_it_plain(probe: Probe) -> None:
    for accepted in ((), (("grpc-accept-encoding", "identity"),)):
        picked = await probe.choice(probe.chat(padding=5000))
        async with probe.raw() as connection:
            stream = connection.call("PullBody", accepted)
            connection.send(stream, framed(encode({1: picked.response_id})), end=True)
            answer = await connection.finished(stream)
            expect_equal(answer.grpc_status, 0, "the status")
            encoding = answer.headers.get("grpc-encoding", "identity")
            expect_equal(encoding, "identity", "the encoding of the answer")
            expect(answer.data and answer.data[0] == 0, "a message is marked as compressed")


@case("E5")
async def what_is_not_served_is_unimplemented(probe: Probe) -> None:
    for method in ("Unheard", "/kinference.v1.Unheard/Pick", "/kinference.v2.Picker/Pick"):
        status = await status_of(probe.client.unary(method, b""))
        expect_equal(status, StatusCode.UNIMPLEMENTED, f"the status of {method}")


@case("E6")
async def health_is_served(probe: Probe) -> None:
    for service in (b"", b"kinference.v1.Picker"):
        answer = decode(await probe.client.unary(HEALTH, encode({1: service})))
        expect_equal(message.number(answer, 1), SERVING, "the health")


@case("E7")
async def a_call_without_a_message_is_invalid(probe: Probe) -> None:
    async with probe.raw() as connection:
        for method in ("Pick", "PullBody", "Abort"):
            stream = connection.call(method)
            connection.send(stream, b"", end=True)
            status = (await connection.finished(stream)).grpc_status
            expect(status, f"{method} without a request answered with the status {status}")


@case("E8", needs=(MODEL,))
async def a_host_may_frame_its_chunks_itself(probe: Probe) -> None:
    body = probe.chat("x" * 300)
    first, second = body[:100], body[100:]
    octets = framed(b"\x0a" + message.varint(len(first)) + first) + framed(
        b"\x0a" + message.varint(len(second)) + second
    )
    async with probe.raw() as connection:
        stream = connection.call("PushBody", declared(len(body)))
        for at in range(0, len(octets), 7):  # frames that fall anywhere in a message
            connection.send(stream, octets[at : at + 7], end=False)
        connection.send(stream, b"", end=True)
        answer = await connection.finished(stream)
        expect_equal(answer.grpc_status, 0, "the status")
        stream_id, total = probe.client.pushed(bytes(answer.data[5:]))
    expect_equal(total, len(body), "total_bytes")
    expect((await probe.client.pick(stream_id)).is_choice, "no destination")
