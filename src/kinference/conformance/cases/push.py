"""PushBody: what completes a body, what discards it."""

import asyncio
from collections.abc import AsyncIterator

from grpc import StatusCode

from kinference.conformance import message
from kinference.conformance.case import Probe, case
from kinference.conformance.claims import expect, expect_equal, expect_scattered
from kinference.conformance.client import CALL_TIMEOUT, Outcome, as_they_are, declared, status_of
from kinference.conformance.http2 import framed
from kinference.conformance.message import encode
from kinference.conformance.target import MODEL, PATIENT, SHORT_IDLE

MALFORMED = (b"\x0a\xff", b"\x0a\x05ab", b"\x0f", b"\x0a" + b"\xff" * 11)
AT_ONCE = 2000


@case("P1")
async def a_half_close_completes_the_body(probe: Probe) -> None:
    stream_id, total = await probe.client.push(b"x" * 700, b"y" * 300)
    expect(stream_id, "the answer names the stream_id 0")
    expect_equal(total, 1000, "total_bytes")


@case("P2")
async def a_push_without_bytes_is_complete(probe: Probe) -> None:
    for chunks in ((), (b"",), (b"", b"", b"")):
        stream_id, total = await probe.client.push(*chunks)
        expect_equal(total, 0, f"total_bytes of {len(chunks)} empty chunks")
        picked = await probe.client.pick(stream_id)
        expect_equal(picked.outcome, Outcome.BAD_REQUEST, "the outcome of an empty body")


@case("P3")
async def the_largest_chunk_passes(probe: Probe) -> None:
    largest = probe.target.limits.chunk_max
    _, total = await probe.client.push(b"x" * largest)
    expect_equal(total, largest, "total_bytes")


@case("P4")
async def one_byte_more_than_the_largest_chunk_exhausts(probe: Probe) -> None:
    for chunks in ([b"x" * (probe.target.limits.chunk_max + 1)], [b"s", b"x" * (probe.target.limits.chunk_max + 1)]):
        status = await status_of(probe.client.push_chunks(chunks))
        expect_equal(status, StatusCode.RESOURCE_EXHAUSTED, "the status")


@case("P5")
async def what_is_no_chunk_is_invalid(probe: Probe) -> None:
    for bytes_ in MALFORMED:
        call = probe.client.push_messages(as_they_are(encode({1: b"good"}), bytes_))
        expect_equal(await status_of(call), StatusCode.INVALID_ARGUMENT, f"the status of {bytes_.hex()}")


@case("P6")
async def unknown_fields_are_skipped_and_the_last_chunk_of_a_message_wins(probe: Probe) -> None:
    sent = encode({1: b"lost"}) + encode({7: b"unknown", 9: 5}) + encode({1: b"kept!"})
    _, total = probe.client.pushed(await probe.client.push_messages(as_they_are(sent)))
    expect_equal(total, 5, "total_bytes")


@case("P7")
async def a_push_that_has_not_ended_has_no_answer(probe: Probe) -> None:
    async with probe.raw() as connection:
        stream = connection.call("PushBody")
        connection.send(stream, framed(encode({1: probe.chat()})), end=False)
        answer = connection.answer(stream)
        expect(not await connection.read_until(lambda: bool(answer.data) or answer.is_over, 0.2), "an early answer")
        connection.send(stream, b"", end=True)
        await connection.finished(stream)
        expect_equal(answer.grpc_status, StatusCode.OK.value[0], "the status once it ended")
        probe.client.pushed(bytes(answer.data[5:]))


@case("P8")
async def a_message_cut_short_by_the_half_close_is_never_taken_for_whole(probe: Probe) -> None:
    body = probe.chat()
    for kept in (3, 5, 8, len(body)):
        async with probe.raw() as connection:
            stream = connection.call("PushBody", declared(len(body)))
            connection.send(stream, framed(encode({1: body}))[:kept], end=True)
            status = (await connection.finished(stream)).grpc_status
            expect(status != 0, f"{kept} bytes of a message counted as all of it")


@case("P9", needs=(SHORT_IDLE,))
async def an_idle_push_exceeds_its_deadline(probe: Probe) -> None:
    within = probe.target.limits.push_idle + CALL_TIMEOUT
    for chunks in ((), (b"begun",)):
        status = await status_of(await probe.client.begin_push(*chunks, timeout=within))
        expect_equal(status, StatusCode.DEADLINE_EXCEEDED, "the status")


@case("P9", needs=(SHORT_IDLE,))
async def an_idle_push_is_ended_by_the_server_in_time(probe: Probe) -> None:
    budget = probe.target.limits.push_idle
    async with probe.raw() as connection:
        stream = connection.call("PushBody")
        connection.send(stream, framed(encode({1: b"begun"})), end=False)
        answer = connection.answer(stream)
        early = await connection.read_until(lambda: answer.is_over, budget / 2)
        expect(not early, "ended before half of the budget was over")
        expect(await connection.read_until(lambda: answer.is_over, budget + 5), "still open after the budget")
        expect_equal(answer.grpc_status, StatusCode.DEADLINE_EXCEEDED.value[0], "the status")


@case("P10", needs=(SHORT_IDLE,))
async def a_slow_but_steady_push_is_never_cut(probe: Probe) -> None:
    pause = probe.target.limits.push_idle / 4

    async def steady() -> AsyncIterator[bytes]:
        for _ in range(7):
            yield b"x"
            await asyncio.sleep(pause)

    _, total = probe.client.pushed(await probe.client.push_chunks(steady()))
    expect_equal(total, 7, "total_bytes")


@case("P10", needs=(PATIENT,))
async def a_pause_in_a_push_is_no_end(probe: Probe) -> None:
    async def pausing() -> AsyncIterator[bytes]:
        yield b"before"
        await asyncio.sleep(0.5)
        yield b"after"

    _, total = probe.client.pushed(await probe.client.push_chunks(pausing()))
    expect_equal(total, 11, "total_bytes")


@case("P11", needs=(MODEL,))
async def chunks_of_one_byte_are_a_body_like_any(probe: Probe) -> None:
    body = probe.chat()
    stream_id, total = await probe.client.push(*(body[at : at + 1] for at in range(len(body))))
    expect_equal(total, len(body), "total_bytes")
    picked = await probe.client.pick(stream_id)
    expect(picked.is_choice, f"the body was not understood: {picked.reason}")


@case("P12")
async def pushes_that_are_reset_at_any_moment_harm_nothing(probe: Probe) -> None:
    async def reset(turns: int) -> None:
        async with asyncio.TaskGroup() as tasks:
            push = tasks.create_task(probe.client.push(*[b"x" * 300] * 3, *[b"x" * 9000] * 3))
            for _ in range(turns):
                await asyncio.sleep(0)
            push.cancel()

    await asyncio.gather(*(reset(number % 25) for number in range(150)))
    _, total = await probe.client.push(b"after")
    expect_equal(total, 5, "total_bytes of the push after them")


@case("P12")
async def a_reset_push_is_not_answered(probe: Probe) -> None:
    async with probe.raw() as connection:
        stream = connection.call("PushBody")
        connection.send(stream, framed(encode({1: b"begun"})), end=False)
        connection.reset(stream)
        answer = connection.answer(stream)
        await connection.read_until(lambda: bool(answer.data), 0.2)
        expect(not answer.data, "a push that was reset got an id")
        stream = connection.call("PushBody")
        connection.send(stream, framed(encode({1: b"whole"})), end=True)
        answer = await connection.finished(stream)
        expect_equal(answer.grpc_status, 0, "the status of the next push")
        probe.client.pushed(bytes(answer.data[5:]))


@case("P13")
async def of_thousands_of_pushes_opened_at_once_none_is_refused(probe: Probe) -> None:
    statuses = await asyncio.gather(*(status_of(probe.client.push(b"x")) for _ in range(AT_ONCE)))
    refused = {status.name for status in statuses if status is not StatusCode.OK}
    expect(not refused, f"of {AT_ONCE} pushes some were refused: {sorted(refused)}")


@case("I1")
async def ids_are_not_to_be_guessed(probe: Probe) -> None:
    replies = await asyncio.gather(*(probe.client.push(b"x") for _ in range(40)))
    ids = [stream_id for stream_id, _ in replies]
    expect_scattered(ids)


@case("P14")
async def the_clients_metadata_is_only_for_logs(probe: Probe) -> None:
    for request_id in ("", "req-1", "x" * 2000, "a b ~"):
        metadata = [("kinference-client-request-id", request_id), ("x-unheard-of", "1")]
        reply = await probe.client.push_chunks([b"abc"], metadata)
        expect_equal(probe.client.pushed(reply)[1], 3, "total_bytes")


@case("P15")
async def an_answer_says_what_the_contract_names_and_no_more(probe: Probe) -> None:
    reply = message.decode(await probe.client.push_chunks([b"abc"]))
    expect_equal(sorted(reply), [1, 2], "the fields of a PushBodyResponse")
    await probe.client.pick(message.number(reply, 1))
