import json
from collections.abc import AsyncIterator

import pytest

from kinference.errors import BudgetExceeded, ClientGone, InvalidArgument, UnknownId
from kinference.ids import ResponseId, StreamId
from kinference.picker.desk import Desk
from kinference.picker.inprocess import InProcessPicker
from kinference.ports import FinalTokenReport, FirstTokenReport, PickArguments, Picker, PickResult, PushMetadata
from kinference.vocabulary import AbortReason, Outcome

CHAT = json.dumps({"model": "llama", "messages": [{"role": "user", "content": "hello " * 200}]}).encode()


@pytest.fixture
def picker(desk: Desk) -> Picker:
    return InProcessPicker(desk)


async def cut(body: bytes, size: int = 100) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


async def vanish() -> AsyncIterator[bytes]:
    yield b"half a body"
    raise ClientGone("the client is gone")


async def pick(picker: Picker) -> PickResult:
    pushed = await picker.push_body(cut(CHAT), PushMetadata("req-1", len(CHAT)))
    assert pushed.total_bytes == len(CHAT)
    return await picker.pick(PickArguments(pushed.stream_id, "acme"))


async def test_a_whole_flow_by_direct_call(picker: Picker, desk: Desk) -> None:
    result = await pick(picker)
    assert result.outcome is Outcome.OK
    assert b"".join([piece async for piece in picker.pull_body(result.response_id)]) == CHAT
    assert await picker.report_first_token(FirstTokenReport(result.response_id, 3, 200))
    assert await picker.report_final_token(FinalTokenReport(result.response_id, "llama", 1, 1))
    assert desk.is_idle


async def test_a_push_whose_source_breaks_off_leaves_nothing(picker: Picker, desk: Desk) -> None:
    with pytest.raises(ClientGone):
        await picker.push_body(vanish(), PushMetadata())
    assert (desk.buffered_bytes, desk.is_idle) == (0, True)


async def test_the_rules_of_a_push_hold_here_too(picker: Picker) -> None:
    with pytest.raises(InvalidArgument):
        await picker.push_body(cut(CHAT), PushMetadata(declared_length=7))
    with pytest.raises(BudgetExceeded):
        await picker.push_body(cut(b"x" * 9999), PushMetadata())


async def test_a_chunk_may_be_as_long_as_a_body(picker: Picker) -> None:
    assert (await picker.push_body(cut(b"x" * 4000, 4000), PushMetadata())).total_bytes == 4000


async def test_a_body_is_pulled_once(picker: Picker) -> None:
    result = await pick(picker)
    assert len([piece async for piece in picker.pull_body(result.response_id)]) > 1
    with pytest.raises(UnknownId):
        _ = [piece async for piece in picker.pull_body(result.response_id)]


async def test_a_pull_that_is_given_up_releases_the_rest_and_the_ticket_lives_on(picker: Picker, desk: Desk) -> None:
    result = await pick(picker)
    pieces = picker.pull_body(result.response_id)
    assert await anext(pieces)
    assert 0 < desk.buffered_bytes < len(CHAT)
    await pieces.aclose()  # type: ignore[attr-defined] # the port promises an iterator; this one is a generator
    assert desk.buffered_bytes == 0
    assert await picker.abort(result.response_id, AbortReason.PULL_FAILED, "upstream refused", "req-1")
    assert not await picker.abort(result.response_id, AbortReason.PULL_FAILED)


async def test_unknown_ids_are_refused(picker: Picker) -> None:
    with pytest.raises(UnknownId):
        await picker.pick(PickArguments(StreamId(5), ""))
    with pytest.raises(UnknownId):
        await anext(picker.pull_body(ResponseId(5)))
