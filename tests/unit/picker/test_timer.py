import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from kinference.core.pick import Router
from kinference.observe.metrics import Metrics
from kinference.picker import timer as module
from kinference.picker.desk import Desk
from kinference.picker.limits import PickerLimits
from kinference.picker.timer import TRIM_BYTES, TRIM_LEAST_BYTES, ReclaimTimer
from kinference.ports import Clock


class LoopClock:
    """The event loop's own time."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def wall(self) -> float:
        return 0.0


@asynccontextmanager
async def running(router: Router, clock: Clock, body_ttl: float) -> AsyncIterator[Desk]:
    desk = Desk(router, PickerLimits(body_ttl=body_ttl), clock, Metrics(), Random(1))
    task = asyncio.ensure_future(ReclaimTimer(desk, clock).run())
    await asyncio.sleep(0)
    yield desk
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def push(desk: Desk) -> None:
    stream_id = desk.open(None)
    desk.append(stream_id, b"body")
    desk.finish(stream_id)
    desk.commit(stream_id)


async def until_idle(desk: Desk) -> None:
    async with asyncio.timeout(10):
        while not desk.is_idle:  # noqa: ASYNC110 - a desk signals nothing when it becomes idle
            await asyncio.sleep(0.005)


async def test_what_is_due_is_reclaimed_with_no_call_made_meanwhile(router: Router) -> None:
    async with running(router, LoopClock(), body_ttl=0.02) as desk:
        push(desk)
        await until_idle(desk)
        assert desk.buffered_bytes == 0


async def test_a_timer_that_slept_for_good_wakes_for_a_first_deadline_again_and_again(router: Router) -> None:
    async with running(router, LoopClock(), body_ttl=0.01) as desk:
        for _ in range(3):
            push(desk)
            await until_idle(desk)
            await asyncio.sleep(0)


async def test_more_than_one_turn_holds_is_reclaimed_in_several(router: Router) -> None:
    async with running(router, LoopClock(), body_ttl=0.02) as desk:
        for _ in range(1500):
            push(desk)
        await until_idle(desk)


async def test_memory_is_given_back_once_much_was_reclaimed(router: Router) -> None:
    trims: list[int] = []
    clock = LoopClock()
    desk = Desk(router, PickerLimits(body_ttl=0.02), clock, Metrics(), Random(1))
    timer = asyncio.ensure_future(ReclaimTimer(desk, clock, lambda: trims.append(desk.buffered_bytes)).run())
    push(desk)
    await until_idle(desk)
    assert trims == []
    for _ in range(TRIM_BYTES // desk.limits.chunk_max_bytes):
        stream_id = desk.open(None)
        desk.append(stream_id, bytes(desk.limits.chunk_max_bytes))
        desk.finish(stream_id)
        desk.commit(stream_id)
    await until_idle(desk)
    await asyncio.sleep(0.01)
    assert trims == [0]
    timer.cancel()
    await asyncio.gather(timer, return_exceptions=True)


async def test_less_is_given_back_when_it_has_been_quiet(router: Router, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TRIM_LATE", 0.02)
    trimmed, clock = asyncio.Event(), LoopClock()
    desk = Desk(router, PickerLimits(body_ttl=0.02), clock, Metrics(), Random(1))
    timer = asyncio.ensure_future(ReclaimTimer(desk, clock, trimmed.set).run())
    stream_id = desk.open(None)
    desk.append(stream_id, bytes(TRIM_LEAST_BYTES))
    desk.finish(stream_id)
    desk.commit(stream_id)
    async with asyncio.timeout(10):
        await trimmed.wait()
    timer.cancel()
    await asyncio.gather(timer, return_exceptions=True)
