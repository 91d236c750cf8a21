"""PullBody: once, whole, and at the caller's pace."""

import asyncio

from grpc import StatusCode

from kinference.conformance.case import Probe, case
from kinference.conformance.claims import expect, expect_equal
from kinference.conformance.client import read_first, read_to_end, status_of
from kinference.conformance.http2 import framed
from kinference.conformance.message import encode
from kinference.conformance.target import LARGE_BODY, MIB, MODEL, SHORT_TTL

UNREAD = 15 * MIB
"""More than grpcio's windows take in for a reader that does not read."""


@case("L1", needs=(MODEL,))
async def a_body_comes_back_whole_in_chunks_that_fit(probe: Probe) -> None:
    picked = await probe.large_choice(min(5 * MIB, probe.target.limits.body_max // 2))
    chunks = await probe.client.pull(picked.response_id)
    expect_equal(sum(map(len, chunks)), picked.body_total_bytes, "bytes pulled, against body_total_bytes")
    expect(max(map(len, chunks)) <= MIB, f"a chunk of {max(map(len, chunks))} bytes")


@case("L2", needs=(MODEL,))
async def a_second_pull_is_not_found(probe: Probe) -> None:
    picked = await probe.choice()
    await probe.client.pull(picked.response_id)
    for _ in range(2):
        status = await status_of(probe.client.pull(picked.response_id))
        expect_equal(status, StatusCode.NOT_FOUND, "the status of a second PullBody")


@case("L2", needs=(MODEL, LARGE_BODY))
async def a_second_pull_while_the_first_runs_is_not_found(probe: Probe) -> None:
    picked = await probe.large_choice(UNREAD)
    first = probe.client.pull_call(picked.response_id)
    head = await read_first(first)
    status = await status_of(probe.client.pull(picked.response_id))
    expect_equal(status, StatusCode.NOT_FOUND, "the status of a second PullBody")
    total = head + await read_to_end(first)
    expect_equal(total, picked.body_total_bytes, "bytes of the first pull, against body_total_bytes")


@case("L2", needs=(MODEL,))
async def of_many_pulls_at_once_exactly_one_is_served(probe: Probe) -> None:
    picked = await probe.choice()
    statuses = await asyncio.gather(*(status_of(probe.client.pull(picked.response_id)) for _ in range(20)))
    expect_equal(statuses.count(StatusCode.OK), 1, "pulls that were served")
    expect_equal(statuses.count(StatusCode.NOT_FOUND), 19, "pulls that were not found")


@case("L3")
async def an_id_that_names_no_pick_is_not_found(probe: Probe) -> None:
    for response_id in (0, 1, 12345, 2**64 - 1):
        status = await status_of(probe.client.pull(response_id))
        expect_equal(status, StatusCode.NOT_FOUND, f"the status of {response_id}")


@case("L4", needs=(MODEL, LARGE_BODY))
async def a_broken_pull_cannot_be_resumed_and_its_request_lives_on(probe: Probe) -> None:
    picked = await probe.large_choice(UNREAD)
    call = probe.client.pull_call(picked.response_id)
    await read_first(call)
    call.cancel()
    status = await status_of(probe.client.pull(picked.response_id))
    expect_equal(status, StatusCode.NOT_FOUND, "the status of a second PullBody")
    expect(await probe.client.first_token(picked.response_id), "a report after a broken pull was not acknowledged")
    expect(await probe.client.abort(picked.response_id), "an abort after a broken pull released nothing")


@case("L5", needs=(MODEL, LARGE_BODY))
async def no_more_is_sent_than_the_caller_has_room_for(probe: Probe) -> None:
    window = 10_000
    picked = await probe.large_choice(UNREAD)
    async with probe.raw(window) as connection:
        stream = connection.call("PullBody")
        connection.send(stream, framed(encode({1: picked.response_id})), end=True)
        answer = connection.answer(stream)
        await connection.read_until(lambda: len(answer.data) > window or answer.is_over, 0.3)
        expect_equal(len(answer.data), window, "bytes sent into a window that stays shut")
        connection.open_window(stream, 5_000)
        await connection.read_until(lambda: len(answer.data) > window + 5_000 or answer.is_over, 0.3)
        expect_equal(len(answer.data), window + 5_000, "bytes sent after the window was opened")


@case("L6", needs=(MODEL, SHORT_TTL))
async def a_slow_pull_gets_every_byte_however_long_it_takes(probe: Probe) -> None:
    pause, parts = probe.target.limits.body_ttl / 2, 4
    picked = await probe.large_choice(probe.target.limits.chunk_max)
    step = picked.body_total_bytes // parts + 1000
    async with probe.raw(step) as connection:
        stream = connection.call("PullBody")
        connection.send(stream, framed(encode({1: picked.response_id})), end=True)
        answer = connection.answer(stream)
        for _ in range(parts):
            await connection.read_until(lambda: answer.is_over, pause)
            connection.open_window(stream, step)
        await connection.finished(stream)
        expect_equal(answer.grpc_status, 0, "the status of a pull longer than the TTL")
        expect(len(answer.data) > picked.body_total_bytes, "bytes are missing")


@case("L7", needs=(MODEL, SHORT_TTL))
async def a_body_that_nobody_pulled_in_time_is_gone(probe: Probe) -> None:
    picked = await probe.choice()
    await asyncio.sleep(probe.target.limits.body_ttl + 0.5)
    status = await status_of(probe.client.pull(picked.response_id))
    expect_equal(status, StatusCode.NOT_FOUND, "the status after the TTL")
    expect(not await probe.client.abort(picked.response_id), "the request outlived its body")


@case("L8", needs=(MODEL, LARGE_BODY))
async def a_final_report_does_not_cut_a_pull_short(probe: Probe) -> None:
    picked = await probe.large_choice(UNREAD)
    call = probe.client.pull_call(picked.response_id)
    head = await read_first(call)
    expect(await probe.client.final_token(picked.response_id), "the final report was not acknowledged")
    total = head + await read_to_end(call)
    expect_equal(total, picked.body_total_bytes, "bytes pulled, against body_total_bytes")
    expect_equal(await call.code(), StatusCode.OK, "the status of the pull")


@case("L9", needs=(MODEL, LARGE_BODY))
async def an_abort_ends_a_pull(probe: Probe) -> None:
    picked = await probe.large_choice(UNREAD)
    call = probe.client.pull_call(picked.response_id)
    await read_first(call)
    expect(await probe.client.abort(picked.response_id, 2), "the abort released nothing")
    status = await status_of(read_to_end(call))
    expect(status is not StatusCode.OK, "a pull that was aborted ended as if it were complete")


@case("L9", needs=(MODEL,))
async def nothing_is_pulled_after_an_abort(probe: Probe) -> None:
    picked = await probe.choice()
    expect(await probe.client.abort(picked.response_id), "the abort released nothing")
    status = await status_of(probe.client.pull(picked.response_id))
    expect_equal(status, StatusCode.NOT_FOUND, "the status")


@case("L10")
async def what_is_no_pull_request_is_invalid(probe: Probe) -> None:
    for request in (b"\xff", b"\x0a\x05ab"):
        status = await status_of(probe.client.unary("PullBody", request))
        expect_equal(status, StatusCode.INVALID_ARGUMENT, f"the status of {request.hex()}")
