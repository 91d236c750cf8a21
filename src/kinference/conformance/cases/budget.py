"""The byte budgets of the server, and what gives their bytes back."""

import asyncio
from collections.abc import Iterator

from grpc import StatusCode

from kinference.conformance.case import Probe, case
from kinference.conformance.claims import expect, expect_equal
from kinference.conformance.client import CALL_TIMEOUT, Outcome, status_of
from kinference.conformance.http2 import framed
from kinference.conformance.message import encode
from kinference.conformance.target import LARGE_BODY, MODEL, SHORT_TTL, SMALL_BODY, SMALL_BUFFER


def chunks(probe: Probe, length: int) -> Iterator[bytes]:
    """A body of this length, in the largest chunks."""
    largest = probe.target.limits.chunk_max
    for start in range(0, length, largest):
        yield b"x" * min(largest, length - start)


async def push_status(probe: Probe, length: int) -> StatusCode:
    """How a push of so many bytes ends; what it leaves is handed back after the case."""
    return await status_of(probe.client.push(*chunks(probe, length)))


async def fill(probe: Probe, spare: int = 0) -> list[int]:
    """Push until only `spare` bytes of the server's budget are left. The ids."""
    limits = probe.target.limits
    left, ids = limits.buffer_max - spare, []
    while left:
        length = min(limits.body_max, left)
        stream_id, _ = await probe.client.push(*chunks(probe, length))
        ids.append(stream_id)
        left -= length
    return ids


async def until_it_fits(probe: Probe, length: int, within: float = 5.0) -> bool:
    """Whether a push of so many bytes passes before time is up."""
    deadline = asyncio.get_running_loop().time() + within
    while await push_status(probe, length) is not StatusCode.OK:
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True


@case("B1", needs=(SMALL_BODY,))
async def the_largest_body_passes(probe: Probe) -> None:
    expect_equal(await push_status(probe, probe.target.limits.body_max), StatusCode.OK, "the status")


@case("B1", needs=(SMALL_BODY,))
async def one_byte_more_than_the_largest_body_exhausts(probe: Probe) -> None:
    status = await push_status(probe, probe.target.limits.body_max + 1)
    expect_equal(status, StatusCode.RESOURCE_EXHAUSTED, "the status")


@case("B2", needs=(SMALL_BODY,))
async def a_body_over_the_budget_is_refused_before_it_ends(probe: Probe) -> None:
    most = probe.target.limits.body_max
    call = await probe.client.begin_push(*chunks(probe, most), b"x", timeout=CALL_TIMEOUT)
    expect_equal(await status_of(call), StatusCode.RESOURCE_EXHAUSTED, "the status of a push that does not end")


@case("B3", needs=(SMALL_BUFFER,))
async def the_servers_budget_holds_to_the_byte(probe: Probe) -> None:
    await fill(probe, spare=100)
    expect_equal(await push_status(probe, 101), StatusCode.RESOURCE_EXHAUSTED, "the status of one byte too many")
    expect_equal(await push_status(probe, 100), StatusCode.OK, "the status of the last bytes that fit")
    expect_equal(await push_status(probe, 1), StatusCode.RESOURCE_EXHAUSTED, "the status of a byte beyond")


@case("B4", needs=(SMALL_BUFFER,))
async def a_full_server_keeps_what_it_has(probe: Probe) -> None:
    ids = await fill(probe)
    expect_equal(await push_status(probe, 1), StatusCode.RESOURCE_EXHAUSTED, "the status of a byte beyond")
    for stream_id in ids:
        picked = await probe.client.pick(stream_id)
        expect_equal(picked.outcome, Outcome.BAD_REQUEST, "the outcome of a body that was there before")


@case("B5", needs=(SMALL_BUFFER,))
async def a_refused_pick_gives_its_bytes_back_at_once(probe: Probe) -> None:
    for stream_id in await fill(probe):
        await probe.client.pick(stream_id)
    expect_equal(await push_status(probe, probe.target.limits.body_max), StatusCode.OK, "the status of the next push")
    await _empty_and_fill(probe)


@case("B5", needs=(MODEL, SMALL_BUFFER))
async def a_pick_without_workers_gives_its_bytes_back_at_once(probe: Probe) -> None:
    limits = probe.target.limits
    body = b'{"model":"conformance-unheard-of","prompt":"%s"}' % (b"x" * (limits.chunk_max - 100))
    for _ in range(2 * limits.buffer_max // len(body)):
        picked = await probe.client.push_and_pick(body)
        expect_equal(picked.outcome, Outcome.NO_WORKERS, "the outcome")


@case("B6", needs=(SMALL_BUFFER,))
async def a_reset_push_gives_its_bytes_back(probe: Probe) -> None:
    limits = probe.target.limits
    for _ in range(2):
        held = [
            await probe.client.begin_push(*chunks(probe, limits.body_max))
            for _ in range(limits.buffer_max // limits.body_max)
        ]
        for call in held:
            call.cancel()
    await _empty_and_fill(probe)


@case("B6", needs=(SMALL_BUFFER,))
async def a_lost_connection_gives_the_bytes_of_its_pushes_back(probe: Probe) -> None:
    limits = probe.target.limits
    for _ in range(2):
        async with probe.another_connection() as other:
            for _ in range(limits.buffer_max // limits.body_max):
                await other.begin_push(*chunks(probe, limits.body_max))
    await _empty_and_fill(probe)


@case("B6", needs=(SMALL_BUFFER,))
async def a_push_that_breaks_a_rule_gives_its_bytes_back(probe: Probe) -> None:
    limits = probe.target.limits
    for _ in range(limits.buffer_max // limits.body_max + 1):
        expect_equal(await push_status(probe, limits.body_max + 1), StatusCode.RESOURCE_EXHAUSTED, "the status")
    await _empty_and_fill(probe)


@case("B7", needs=(MODEL, SMALL_BUFFER))
async def a_pull_gives_its_bytes_back(probe: Probe) -> None:
    step = probe.target.limits.chunk_max // 2
    for _ in range(2 * probe.target.limits.buffer_max // step + 1):
        picked = await probe.choice(probe.chat(padding=step))
        await probe.client.pull(picked.response_id)
    await _empty_and_fill(probe)


@case("B7", needs=(MODEL, SMALL_BUFFER))
async def an_abort_gives_the_bytes_back(probe: Probe) -> None:
    step = probe.target.limits.chunk_max // 2
    for _ in range(2 * probe.target.limits.buffer_max // step + 1):
        picked = await probe.choice(probe.chat(padding=step))
        await probe.client.abort(picked.response_id)
    await _empty_and_fill(probe)


@case("B7", needs=(MODEL, SMALL_BUFFER))
async def a_final_report_gives_the_bytes_back(probe: Probe) -> None:
    step = probe.target.limits.chunk_max // 2
    for _ in range(2 * probe.target.limits.buffer_max // step + 1):
        picked = await probe.choice(probe.chat(padding=step))
        await probe.client.final_token(picked.response_id)
    await _empty_and_fill(probe)


@case("B8", needs=(SMALL_BUFFER, SHORT_TTL))
async def what_nobody_picked_gives_its_bytes_back_in_time(probe: Probe) -> None:
    await fill(probe)
    await asyncio.sleep(probe.target.limits.body_ttl + 0.5)
    await _empty_and_fill(probe)


@case("B9", needs=(MODEL, SMALL_BUFFER, LARGE_BODY))
async def a_pull_that_stopped_for_good_gives_way_to_a_new_push(probe: Probe) -> None:
    limits = probe.target.limits
    async with probe.raw() as connection:
        picked = await probe.large_choice(limits.body_max - limits.chunk_max)
        stream = connection.call("PullBody")
        connection.send(stream, framed(encode({1: picked.response_id})), end=True)
        answer = connection.answer(stream)
        await connection.read_until(lambda: len(answer.data) > 0, CALL_TIMEOUT)
        await asyncio.sleep(1.5)
        await fill(probe, spare=picked.body_total_bytes)
        expect(await until_it_fits(probe, picked.body_total_bytes), "a pull that takes nothing blocks a push")


async def _empty_and_fill(probe: Probe) -> None:
    """The server's whole budget is free: all of it can be filled again, to the byte."""
    await probe.client.tidy()
    limits = probe.target.limits
    left = limits.buffer_max
    while left:
        length = min(limits.body_max, left)
        expect(await until_it_fits(probe, length), f"{left} bytes of the server's budget were not given back")
        left -= length
