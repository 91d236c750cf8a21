import pytest

from kinference.gateway.ticket import Ticket
from kinference.ids import ResponseId
from kinference.ports import FinalTokenReport, FirstTokenReport
from kinference.vocabulary import AbortReason
from tests.unit.gateway.fakes import FakePicker

ID = ResponseId(7)
FINAL = FinalTokenReport(ID, "m", 1, 2)


def test_the_beginning_is_told_in_whole_milliseconds() -> None:
    picker = FakePicker()
    Ticket(picker, ID).began(0.0126, 200)
    assert picker.first == [FirstTokenReport(ID, 13, 200)]


def test_a_ticket_is_closed_once_whichever_way_comes_first() -> None:
    picker = FakePicker()
    ticket = Ticket(picker, ID)
    ticket.complete(FINAL)
    ticket.complete(FINAL)
    ticket.abort(AbortReason.PULL_FAILED, "late")
    ticket.abandon()
    assert (picker.final, picker.aborted) == ([FINAL], [])


@pytest.mark.parametrize(
    ("dispatched", "reason"), [(False, AbortReason.NOT_DISPATCHED), (True, AbortReason.UNSPECIFIED)]
)
def test_an_abandoned_ticket_says_whether_the_destination_saw_the_prompt(
    reason: AbortReason, *, dispatched: bool
) -> None:
    picker = FakePicker()
    ticket = Ticket(picker, ID)
    ticket.is_dispatched = dispatched
    ticket.abandon()
    assert picker.aborted == [(ID, reason)]
