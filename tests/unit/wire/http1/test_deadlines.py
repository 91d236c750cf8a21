"""One timer for many deadlines."""

import asyncio

from kinference.wire.http1.deadlines import NEVER, Deadlines
from tests.unit.wire.steppedloop import SteppedLoop


class Waiting:
    def __init__(self) -> None:
        self.deadline = NEVER
        self.expired = asyncio.Event()

    def expire(self) -> None:
        self.expired.set()


def watched(deadlines: Deadlines, count: int) -> list[Waiting]:
    made = [Waiting() for _ in range(count)]
    for waiting in made:
        deadlines.watch(waiting)
    return made


async def test_what_is_due_expires_and_what_is_not_stays() -> None:
    deadlines = Deadlines(asyncio.get_running_loop())
    soon, late, forgotten, moved = watched(deadlines, 4)
    deadlines.give(late, 60)
    for waiting in (soon, forgotten, moved):
        deadlines.give(waiting, 0.005)
    deadlines.forget(forgotten)
    deadlines.give(moved, 60)
    await soon.expired.wait()
    assert not any(waiting.expired.is_set() for waiting in (late, forgotten, moved))
    assert soon.deadline == NEVER
    deadlines.close()


async def test_an_earlier_deadline_moves_the_timer_forward() -> None:
    deadlines = Deadlines(asyncio.get_running_loop())
    late, soon = watched(deadlines, 2)
    deadlines.give(late, 3600)
    deadlines.give(soon, 0.005)
    await soon.expired.wait()
    deadlines.close()


async def test_after_one_has_rung_the_next_is_met_too() -> None:
    deadlines = Deadlines(asyncio.get_running_loop())
    first, second = watched(deadlines, 2)
    deadlines.give(first, 0.005)
    deadlines.give(second, 0.01)
    await first.expired.wait()
    await second.expired.wait()
    deadlines.close()


async def test_moving_a_deadline_back_and_forth_makes_no_new_timer() -> None:
    made = 0

    class Loop:
        def time(self) -> float:
            return 0.0

        def call_at(self, when: float, callback: object) -> asyncio.TimerHandle:
            nonlocal made
            made += 1
            return asyncio.get_running_loop().call_later(60, int)

    deadlines = Deadlines(Loop())  # type: ignore[arg-type] # all of a loop that is used
    (waiting,) = watched(deadlines, 1)
    for patience in (300, 600, 300, 600):
        deadlines.give(waiting, patience)
    assert made == 1
    deadlines.close()


def test_after_a_standstill_what_has_come_is_looked_at_first() -> None:
    loop = SteppedLoop()
    deadlines = Deadlines(loop)  # type: ignore[arg-type] # all of a loop that is used
    first, heard, last = watched(deadlines, 3)
    deadlines.give(first, 30)
    deadlines.give(heard, 30)
    deadlines.give(last, 35)
    loop.pass_by(40)
    assert not any(waiting.expired.is_set() for waiting in (first, heard, last))
    deadlines.give(heard, 30)  # it is read now
    loop.pass_by(6)
    assert [waiting.expired.is_set() for waiting in (first, heard, last)] == [True, False, True]
    loop.pass_by(60)
    assert not heard.expired.is_set()
    loop.pass_by(6)
    assert heard.expired.is_set()
    deadlines.close()
