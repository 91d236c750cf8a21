"""Picks of a caller in the same process that wait."""

import asyncio

import pytest

from kinference.core.waiting import AdmissionRules, ClassRule
from kinference.ids import StreamId
from kinference.picker.choosing import Pending
from kinference.picker.desk import Desk
from kinference.picker.late import Late
from kinference.picker.limits import PickerLimits
from kinference.ports import FirstTokenReport, LocalTarget, PickArguments, Placed
from kinference.vocabulary import QosClass

ARGUMENTS = PickArguments(StreamId(0), "acme")
BODY = b'{"model": "llama", "messages": [{"role": "user", "content": "' + b"x" * 2_000 + b'"}]}'
OTHER = BODY.replace(b"x", b"y")
WAITS = {qos: ClassRule(1.0, 60.0) for qos in QosClass}


@pytest.fixture
def limits() -> PickerLimits:
    """An engine with anything to compute is busy."""
    return PickerLimits(admission=AdmissionRules(start_within_ms=1.0, classes=WAITS, waiting_max=3))


@pytest.fixture
def running(desk: Desk) -> list[Placed]:
    """What keeps both engines busy."""
    placed = [desk.place(body, ARGUMENTS) for body in (BODY, OTHER)]
    return [one for one in placed if isinstance(one, Placed)]


def pending(desk: Desk) -> Pending:
    placed = desk.place(BODY, ARGUMENTS)
    assert isinstance(placed, Pending)
    return placed


def waiting_at(desk: Desk) -> Late:
    return Late(desk, pending(desk))


async def test_it_is_held_also_before_it_is_awaited(desk: Desk, running: list[Placed]) -> None:
    async with asyncio.timeout(5):
        waiting = waiting_at(desk)
        assert len(desk.admission) == 1
        desk.reports.first_token(FirstTokenReport(running[0].picked.response_id, 5, 200))
        assert len(desk.admission) == 0
        placed = await waiting
    assert isinstance(placed.picked.destination, LocalTarget)


async def test_it_is_placed_as_soon_as_an_engine_can_start_it(desk: Desk, running: list[Placed]) -> None:
    async with asyncio.timeout(5):
        waiting = asyncio.ensure_future(waiting_at(desk))
        await asyncio.sleep(0)
        assert not waiting.done()
        desk.reports.first_token(FirstTokenReport(running[0].picked.response_id, 5, 200))
        placed = await waiting
        assert isinstance(placed.picked.destination, LocalTarget)
        assert placed.body == BODY


@pytest.mark.usefixtures("running")
async def test_one_that_is_cancelled_waits_no_longer(desk: Desk) -> None:
    waiting = asyncio.ensure_future(waiting_at(desk))
    await asyncio.sleep(0)
    assert len(desk.admission) == 1
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert len(desk.admission) == 0


@pytest.mark.usefixtures("running")
async def test_one_that_nobody_will_await_waits_no_longer(desk: Desk) -> None:
    waiting = waiting_at(desk)
    assert len(desk.admission) == 1
    waiting.close()
    waiting.close()
    assert len(desk.admission) == 0


async def test_one_that_was_let_go_and_that_nobody_will_await_takes_no_place(desk: Desk, running: list[Placed]) -> None:
    waiting = waiting_at(desk)
    desk.reports.first_token(FirstTokenReport(running[0].picked.response_id, 5, 200))
    assert len(desk.admission) == 0
    waiting.close()
    assert isinstance(desk.place(BODY, ARGUMENTS), Placed)
