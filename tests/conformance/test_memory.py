"""Memory under attack: whatever callers abandon is bounded, counted to the byte, and given back with no call made."""

import asyncio
import gc
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import pytest

from kinference.conformance.case import chat
from kinference.conformance.client import Client, Issued, open_channel
from kinference.conformance.http2 import framed, raw_connection
from kinference.conformance.message import encode
from kinference.core.pick import Router
from kinference.core.waiting import AdmissionRules
from kinference.errors import BudgetExceeded
from kinference.ids import ResponseId, StreamId
from kinference.observe.metrics import Metrics
from kinference.picker import timer
from kinference.picker.bodies import TOMBSTONES_LATE
from kinference.picker.desk import Desk
from kinference.picker.limits import PickerLimits
from kinference.picker.tickets import Ticket
from kinference.picker.timer import ReclaimTimer
from kinference.picker.trim import trim
from kinference.ports import PickArguments, PickResult
from kinference.vocabulary import AbortReason
from tests.conformance.serving import CARRIERS, HASTY, ROOMY, STRICT, JumpingClock, fleet, served, with_limits

PAGE_BYTES = 4096
TENTH_OF_A_SERVER = 87 * 2**20 // 10
"""`kinference serve` holds 87 MiB at rest; what stays after a flood are tables that once were large."""
KIB = 1024
LIMITS = PickerLimits(pull_chunk_max_bytes=16 * KIB)
BODY = chat("llama", "hello", 20 * KIB)
LONG_BODY = chat("llama", "hello", 80 * KIB)


def desk_at(clock: JumpingClock, limits: PickerLimits = LIMITS) -> Desk:
    desk = Desk(Router(fleet(), STRICT, Random(1)), limits, clock, Metrics(), Random(2))
    desk.admission.reconfigure(replace(AdmissionRules(), enabled=False))  # so that a Pick that nobody reports is given
    return desk


def resident_bytes() -> int:
    gc.collect()
    return resident_pages() * PAGE_BYTES


def threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def push(desk: Desk, body: bytes = BODY) -> StreamId:
    stream_id = desk.open(None)
    desk.append(stream_id, bytes(bytearray(body)))  # a copy, as every body from a socket is
    desk.finish(stream_id)
    desk.commit(stream_id)
    desk.discard(stream_id)
    return stream_id


def pick(desk: Desk, body: bytes = BODY) -> ResponseId:
    picked = desk.pick(PickArguments(push(desk, body), "acme"), lambda: None)
    assert isinstance(picked, PickResult)
    return picked.response_id


def stall(desk: Desk) -> None:
    """Pull one piece and then nothing more."""
    ticket = desk.claim(pick(desk, LONG_BODY))
    assert desk.next_piece(ticket)
    desk.piece_sent(ticket)


async def attack(abandon: Callable[[Desk], object], times: int, held_each: int) -> tuple[int, int]:
    """Abandon so many, check the account, let time pass, and have the timer reclaim. Memory at the peak and then."""
    clock = JumpingClock()
    desk = desk_at(clock)
    for _ in range(times):
        abandon(desk)
    assert desk.buffered_bytes == times * held_each
    peak = resident_bytes()
    await reclaim(desk, clock)
    assert desk.is_idle
    assert desk.buffered_bytes == 0
    return peak, resident_bytes()


async def reclaim(desk: Desk, clock: JumpingClock) -> None:
    """What the server's timer does as time passes: first what was abandoned is due, then what remembers it."""
    for seconds in (max(LIMITS.body_ttl, LIMITS.stalled_pull_ttl), LIMITS.body_ttl + TOMBSTONES_LATE):
        clock.seconds += seconds
        running = asyncio.ensure_future(ReclaimTimer(desk, clock).run())
        while (deadline := desk.deadline()) is not None and deadline <= clock.seconds:  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize(
    ("abandon", "times", "held_each"),
    [(push, 10_000, len(BODY)), (pick, 10_000, len(BODY)), (stall, 1_000, len(LONG_BODY) - 16 * KIB)],
    ids=["abandoned uploads", "picks that nobody pulls", "pulls that stall"],
)
async def test_memory_returns_after_the_ttl_with_no_call_made(
    abandon: Callable[[Desk], object], times: int, held_each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timer, "TRIM_LATE", 0.0)  # this clock stands still while the timer runs
    await attack(abandon, times // 10, held_each)
    gc.collect()
    trim()  # what other tests have left behind
    before = resident_bytes()
    peak, after = await attack(abandon, times, held_each)
    assert peak > before + times * held_each / 2, "nothing was held: this test proves nothing"
    assert after < before + TENTH_OF_A_SERVER, f"{before / 2**20:.0f} MiB before, {after / 2**20:.0f} MiB after"


def test_a_flood_of_one_byte_chunks_costs_no_more_than_its_bytes() -> None:
    desk, length = desk_at(JumpingClock()), 100_000
    stream_id = desk.open(None)
    tracemalloc.start()
    for _ in range(length):
        desk.append(stream_id, b"x")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert desk.buffered_bytes == length
    assert peak < length * 2


def test_a_flood_of_empty_chunks_is_bounded() -> None:
    desk = desk_at(JumpingClock(), replace(LIMITS, empty_chunks_max=1000))
    stream_id = desk.open(None)
    for _ in range(1000):
        desk.append(stream_id, b"")
    with pytest.raises(BudgetExceeded, match="empty chunks"):
        desk.append(stream_id, b"")
    assert desk.is_idle


async def test_tombstones_are_bounded_in_number_and_leave_in_time() -> None:
    clock = JumpingClock()
    desk = desk_at(clock, replace(LIMITS, tombstones_max=500))
    for _ in range(2000):
        desk.reports.abort(pick(desk), AbortReason.NOT_DISPATCHED)
        assert len(desk._bodies._consumed) <= 500
    clock.seconds += LIMITS.body_ttl + 10
    await reclaim(desk, clock)
    assert len(desk._bodies._consumed) == 0


@pytest.mark.parametrize("carrier", CARRIERS)
async def test_what_callers_abandon_over_sockets_is_reclaimed_with_no_call_made(carrier: str) -> None:
    setup = with_limits(HASTY, {"stalled_pull_ttl": 1.0, "buffer_max_bytes": ROOMY.limits.buffer_max_bytes})
    async with served(setup, carrier) as server, open_channel(server.target) as channel:
        client = Client(channel, server.target, Issued())
        body = chat("llama", "hello", 100_000)
        async with raw_connection(server.target, window=100) as connection:
            for _ in range(100):
                await client.push(body)
                await client.push_and_pick(body)
                await client.begin_push(body[:1000])
                picked = await client.push_and_pick(body)
                stream = connection.call("PullBody")
                connection.send(stream, framed(encode({1: picked.response_id})), end=True)
            await connection.read_until(lambda: False, 0.2)
            assert server.desk.buffered_bytes > 100 * 1000
            await server.wait_until_idle()


async def test_a_pull_that_is_cut_leaves_nothing_for_the_collector_which_may_be_long_in_coming() -> None:
    gc.collect()
    gc.disable()
    try:
        async with served(ROOMY) as server, open_channel(server.target) as channel:
            client = Client(channel, server.target, Issued())
            async with raw_connection(server.target, window=100) as connection:
                for _ in range(10):
                    picked = await client.push_and_pick(LONG_BODY)
                    stream = connection.call("PullBody")
                    connection.send(stream, framed(encode({1: picked.response_id})), end=True)
                    answer = connection.answer(stream)
                    await connection.read_until(partial(bool, answer.data), 5.0)
                    assert tickets_in_memory() == 1
                    await client.abort(picked.response_id)
                    assert (await connection.finished(stream)).reset
                await server.wait_until_idle()
            assert tickets_in_memory() == 0
    finally:
        gc.enable()


@pytest.mark.parametrize("is_reset", [True, False], ids=["stream reset", "connection lost"])
async def test_a_pull_whose_caller_goes_away_leaves_nothing_for_the_collector_either(is_reset: bool) -> None:
    gc.collect()
    gc.disable()
    try:
        async with served(ROOMY) as server, open_channel(server.target) as channel:
            client = Client(channel, server.target, Issued())
            async with raw_connection(server.target, window=100) as connection:
                picked = await client.push_and_pick(LONG_BODY)
                stream = connection.call("PullBody")
                connection.send(stream, framed(encode({1: picked.response_id})), end=True)
                answer = connection.answer(stream)
                await connection.read_until(partial(bool, answer.data), 5.0)
                if is_reset:
                    connection.reset(stream)
                    await server.wait_until(lambda: server.desk._tickets.pulls == 0)
            await server.wait_until(lambda: server.desk._tickets.pulls == 0)
            await client.abort(picked.response_id)
            await server.wait_until_idle()
            assert tickets_in_memory() == 0
    finally:
        gc.enable()


async def test_pulls_that_stall_over_sockets_give_their_memory_back_with_no_call_made() -> None:
    setup = with_limits(HASTY, {"stalled_pull_ttl": 3.0, "body_ttl": 3.0, "buffer_max_bytes": 2**30})
    gc.collect()
    gc.disable()
    try:
        async with served(setup) as server, open_channel(server.target) as channel:
            client = Client(channel, server.target, Issued())
            body = chat("llama", "hello", 800_000)
            async with raw_connection(server.target, window=100) as connection:
                await client.push_and_pick(body)
                before, peak = resident_pages(), 0
                for _ in range(100):
                    picked = await client.push_and_pick(body)
                    stream = connection.call("PullBody")
                    connection.send(stream, framed(encode({1: picked.response_id})), end=True)
                    peak = max(peak, resident_pages())
                assert (peak - before) * PAGE_BYTES > 40 * len(body), "nothing was held: this test proves nothing"
                await server.wait_until_idle()
                await server.wait_until(lambda: (resident_pages() - before) * PAGE_BYTES < 20 * len(body))
    finally:
        gc.enable()


def resident_pages() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])


def tickets_in_memory() -> int:
    return sum(isinstance(each, Ticket) for each in gc.get_objects())


@pytest.mark.parametrize("carrier", CARRIERS)
async def test_a_stopped_puller_costs_no_more_than_its_own_body(carrier: str) -> None:
    async with served(ROOMY, carrier) as server, open_channel(server.target) as channel:
        client = Client(channel, server.target, Issued())
        total = 0
        async with raw_connection(server.target, window=100) as connection:
            for _ in range(20):
                picked = await client.push_and_pick(chat("llama", "hello", 900_000))
                total += picked.body_total_bytes
                stream = connection.call("PullBody")
                connection.send(stream, framed(encode({1: picked.response_id})), end=True)
            await connection.read_until(lambda: False, 0.3)
            assert total / 2 < server.desk.buffered_bytes <= total
        await client.tidy()


@pytest.mark.parametrize("carrier", CARRIERS)
async def test_a_slow_pusher_holds_no_thread(carrier: str) -> None:
    async with served(ROOMY, carrier) as server, open_channel(server.target) as channel:
        client = Client(channel, server.target, Issued())
        await client.push(b"one, so that every thread that is needed at all has started")
        before = threads()
        calls = [await client.begin_push(b"begun") for _ in range(300)]
        await server.wait_until(lambda: server.desk.buffered_bytes >= 5 * len(calls))
        assert threads() < before + 10
        for call in calls:
            call.cancel()
        await client.tidy()
