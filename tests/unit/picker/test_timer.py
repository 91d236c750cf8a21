import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from kinference.core.pick import Router
from kinference.observe.metrics import Metrics
from kinference.picker import timer as module
from kinference.picker.desk import Desk
from kinference.picker.limits import PickerLimits
from kinference.picker.timer import TRIM_BYTES, TRIM_LEAST_BYTES, TRIM_LEAST_ITEMS, ReclaimTimer
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


def push(desk: Desk, body: bytes = b"body") -> None:
    stream_id = desk.open(None)
    desk.append(stream_id, body)
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


async def test_after_a_standstill_what_has_come_meanwhile_goes_first(router: Router) -> None:
    async with running(router, LoopClock(), body_ttl=0.2) as desk:
        push(desk)
        time.sleep(0.6)  # noqa: ASYNC251 - it is the whole process that stands still
        for _ in range(10):
            await asyncio.sleep(0)
        assert not desk.is_idle
        await until_idle(desk)


async def test_more_than_one_turn_holds_is_reclaimed_in_several(router: Router) -> None:
    async with running(router, LoopClock(), body_ttl=0.02) as desk:
        for _ in range(1500):
            push(desk)
        held = [desk.buffered_bytes]
        while not desk.is_idle:
            await asyncio.sleep(0)
            held.append(desk.buffered_bytes)
        assert len(set(held)) > 2, "others had their turn while some were held still"


@asynccontextmanager
async def trimming(router: Router, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Desk, list[int]]]:
    """A desk whose timer runs, and what was held at each trim."""
    monkeypatch.setattr(module, "TRIM_LATE", 0.02)
    trims: list[int] = []
    desk = Desk(router, PickerLimits(body_ttl=0.02), LoopClock(), Metrics(), Random(1))
    task = asyncio.ensure_future(ReclaimTimer(desk, LoopClock(), lambda: trims.append(desk.buffered_bytes)).run())
    await asyncio.sleep(0)
    yield desk, trims
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def until_trimmed(trims: list[int]) -> None:
    async with asyncio.timeout(10):
        while not trims:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.005)


@pytest.mark.parametrize(("count", "size"), [(1, TRIM_LEAST_BYTES), (TRIM_LEAST_ITEMS, 4)], ids=["bytes", "items"])
async def test_memory_is_given_back_once_much_was_reclaimed_and_it_is_quiet(
    router: Router, monkeypatch: pytest.MonkeyPatch, count: int, size: int
) -> None:
    async with trimming(router, monkeypatch) as (desk, trims):
        push(desk)
        await until_idle(desk)
        await asyncio.sleep(0.1)
        assert trims == [], "for so little it does not pay"
        for _ in range(count):
            push(desk, bytes(size))
        await until_trimmed(trims)
        await asyncio.sleep(0.1)
        assert trims == [0]
        assert desk.surplus_bytes == 0


async def test_what_callers_let_go_of_is_given_back_when_it_is_very_much_but_not_each_time(
    router: Router, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with trimming(router, monkeypatch) as (desk, trims):
        desk.hold(TRIM_BYTES)
        await asyncio.sleep(0.1)
        assert trims == []
        desk.let_go(TRIM_BYTES)
        await until_trimmed(trims)
        desk.hold(TRIM_BYTES)
        desk.let_go(TRIM_BYTES)
        await asyncio.sleep(0.1)
        assert trims == [0]
