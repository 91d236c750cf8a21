import json

import pytest

from kinference.ids import ResponseId, StreamId
from kinference.picker.desk import Desk
from kinference.picker.inprocess import InProcessPicker
from kinference.ports import FinalTokenReport, FirstTokenReport, PickArguments, Picker, Placed
from kinference.vocabulary import AbortReason, Outcome

CHAT = json.dumps({"model": "llama", "messages": [{"role": "user", "content": "hello " * 200}]}).encode()
ARGUMENTS = PickArguments(StreamId(0), "acme", "req-1")


@pytest.fixture
def picker(desk: Desk) -> Picker:
    return InProcessPicker(desk)


async def test_a_whole_flow_by_direct_call(picker: Picker, desk: Desk) -> None:
    placed = picker.place(CHAT, ARGUMENTS)
    assert isinstance(placed, Placed)  # at once: nobody is in the way
    assert placed.picked.outcome is Outcome.OK
    assert placed.body is CHAT
    picker.report_first_token(FirstTokenReport(placed.picked.response_id, 3, 200))
    picker.report_final_token(FinalTokenReport(placed.picked.response_id, "llama", 1, 1))
    assert desk.is_idle
    (flow,) = desk.flows(1)
    assert (flow.observed_ttft_ms, flow.ended) == (3, "final")


async def test_an_abort_closes_the_flow(picker: Picker, desk: Desk) -> None:
    placed = picker.place(CHAT, ARGUMENTS)
    assert isinstance(placed, Placed)  # at once: nobody is in the way
    picker.abort(placed.picked.response_id, AbortReason.NOT_DISPATCHED, "upstream refused")
    assert desk.is_idle
    assert desk.flows(1)[0].ended == "abort not_dispatched"


async def test_bytes_that_come_in_are_counted_until_they_are_let_go(picker: Picker, desk: Desk) -> None:
    picker.make_room(100)
    picker.hold(100)
    assert desk.buffered_bytes == 100
    picker.let_go(100)
    assert desk.buffered_bytes == 0


async def test_what_is_told_of_an_unknown_id_changes_nothing(picker: Picker, desk: Desk) -> None:
    picker.report_first_token(FirstTokenReport(ResponseId(5), 3, 200))
    picker.report_final_token(FinalTokenReport(ResponseId(5), "llama", 1, 1))
    picker.abort(ResponseId(5), AbortReason.PULL_FAILED)
    assert desk.is_idle
