import asyncio

import pytest

from kinference.errors import UnknownId
from kinference.gateway import ticket as module
from kinference.gateway.ticket import Ticket
from kinference.ids import ResponseId
from kinference.ports import FinalTokenReport, FirstTokenReport
from kinference.vocabulary import AbortReason
from tests.unit.gateway.fakes import FakePicker

ID = ResponseId(7)
FINAL = FinalTokenReport(ID, "m", 1, 2)


async def test_the_beginning_is_told_in_whole_milliseconds() -> None:
    picker = FakePicker()
    await Ticket(picker, ID).began(0.0126, 200)
    assert picker.first == [FirstTokenReport(ID, 13, 200)]


async def test_a_ticket_is_closed_once_whichever_way_comes_first() -> None:
    picker = FakePicker()
    ticket = Ticket(picker, ID)
    await ticket.complete(FINAL)
    await ticket.complete(FINAL)
    await ticket.abort(AbortReason.PULL_FAILED, "late")
    await ticket.abandon()
    assert (picker.final, picker.aborted) == ([FINAL], [])


@pytest.mark.parametrize(
    ("dispatched", "reason"), [(False, AbortReason.NOT_DISPATCHED), (True, AbortReason.UNSPECIFIED)]
)
async def test_an_abandoned_ticket_says_whether_the_destination_saw_the_prompt(
    reason: AbortReason, *, dispatched: bool
) -> None:
    picker = FakePicker()
    ticket = Ticket(picker, ID)
    ticket.is_dispatched = dispatched
    await ticket.abandon()
    assert picker.aborted == [(ID, reason)]


async def test_a_report_that_fails_is_logged_and_goes_no_further(caplog: pytest.LogCaptureFixture) -> None:
    picker = FakePicker()
    picker.report_error = UnknownId("expired")
    await Ticket(picker, ID).complete(FINAL)
    assert "expired" in caplog.text


async def test_a_picker_that_hangs_is_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Hanging(FakePicker):
        async def report_final_token(self, report: FinalTokenReport) -> bool:
            await asyncio.Event().wait()
            return True

    monkeypatch.setattr(module, "REPORT_PATIENCE", 0.001)
    await Ticket(Hanging(), ID).complete(FINAL)
    assert "timed out" in caplog.text


async def test_a_closing_report_survives_the_cancellation_of_its_request() -> None:
    arrived, go_on, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    class Slow(FakePicker):
        async def report_final_token(self, report: FinalTokenReport) -> bool:
            arrived.set()
            await go_on.wait()
            done.set()
            return True

    async with asyncio.TaskGroup() as tasks:
        closing = tasks.create_task(Ticket(Slow(), ID).complete(FINAL))
        await arrived.wait()
        closing.cancel()
    go_on.set()
    await done.wait()
    assert closing.cancelled()
