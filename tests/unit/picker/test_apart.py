"""The picker of another process as a gateway wants it, on the real service; where that would have to fail, on a stub of
its calls.
"""

import asyncio
import json
from collections.abc import AsyncIterator

import grpc
import pytest

from kinference.errors import KinferenceError, PickerUnreachable, UnknownId
from kinference.ids import Address, ResponseId, StreamId
from kinference.picker import apart as module
from kinference.picker.apart import PickerApart
from kinference.picker.desk import Desk
from kinference.picker.remote import RemotePicker
from kinference.picker.service import picker_service
from kinference.ports import (
    FinalTokenReport,
    FirstTokenReport,
    LocalTarget,
    PickArguments,
    Picker,
    PickResult,
    PushedBody,
    PushMetadata,
)
from kinference.vocabulary import AbortReason, Outcome
from kinference.wire.grpc_server import GrpcServer
from kinference.wire.grpc_session import GrpcLimits

CHAT = json.dumps({"model": "llama", "messages": [{"role": "user", "content": "hello " * 200}]}).encode()
ARGUMENTS = PickArguments(StreamId(0), "acme", "req-1")
ID = ResponseId(7)
FIRST, FINAL = FirstTokenReport(ID, 3, 200), FinalTokenReport(ID, "m", 1, 2)


@pytest.fixture
async def calls(desk: Desk) -> AsyncIterator[RemotePicker]:
    server = GrpcServer("127.0.0.1:0", [picker_service(desk)], GrpcLimits(1024 * 1024))
    port = await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield RemotePicker(channel, chunk_max_bytes=300)
    await server.drain(0)


async def test_a_whole_flow(calls: RemotePicker, desk: Desk) -> None:
    async with PickerApart(calls) as apart:
        picker: Picker = apart
        picker.make_room(len(CHAT))
        picker.hold(len(CHAT))
        placed = await apart.place(CHAT, ARGUMENTS)
        picker.let_go(len(CHAT))
        assert (placed.picked.outcome, placed.body, placed.usage) == (Outcome.OK, CHAT, None)
        picker.report_first_token(FirstTokenReport(placed.picked.response_id, 3, 200))
        picker.report_final_token(FinalTokenReport(placed.picked.response_id, "llama", 1, 1))
    (flow,) = desk.flows(1)
    assert (flow.observed_ttft_ms, flow.ended, desk.is_idle) == (3, "final", True)


async def test_a_body_that_nobody_takes_is_not_handed_back(calls: RemotePicker, desk: Desk) -> None:
    async with PickerApart(calls) as picker:
        placed = await picker.place(b"{", ARGUMENTS)
    assert (placed.picked.outcome, placed.body, desk.is_idle) == (Outcome.BAD_REQUEST, b"", True)


class Calls(RemotePicker):
    """Answers as it is told, and remembers."""

    def __init__(self, *pulls: KinferenceError | None) -> None:
        self.pulls = list(pulls)
        self.told: list[object] = []
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.is_pulling = asyncio.Event()

    async def push_body(self, chunks: AsyncIterator[bytes], metadata: PushMetadata) -> PushedBody:
        assert metadata == PushMetadata("req-1", len(b"".join([chunk async for chunk in chunks])))
        return PushedBody(StreamId(5), len(CHAT))

    async def pick(self, arguments: PickArguments) -> PickResult:
        assert arguments.stream_id == 5
        return PickResult(Outcome.OK, destination=LocalTarget(Address("10.0.0.1:8000")), response_id=ID)

    async def pull_body(self, response_id: ResponseId) -> AsyncIterator[bytes]:
        self.is_pulling.set()
        await self.go_on.wait()
        if (failure := self.pulls.pop(0)) is not None:
            raise failure
        yield CHAT

    async def report_first_token(self, report: FirstTokenReport) -> bool:
        await self.go_on.wait()
        self.told.append(report)
        return True

    async def report_final_token(self, report: FinalTokenReport) -> bool:
        self.told.append(report)
        raise PickerUnreachable("away")

    async def abort(
        self, response_id: ResponseId, reason: AbortReason, detail: str = "", client_request_id: str = ""
    ) -> bool:
        self.told.append((response_id, reason, detail, client_request_id))
        return True


async def test_a_body_that_was_lost_before_it_was_pulled_is_picked_anew() -> None:
    calls = Calls(UnknownId("expired"), None)
    async with PickerApart(calls) as picker:
        assert (await picker.place(CHAT, ARGUMENTS)).body == CHAT
    assert calls.told == [(ID, AbortReason.PULL_FAILED, "UnknownId", "")]


async def test_a_body_that_is_lost_again_is_given_up() -> None:
    calls = Calls(UnknownId("expired"), PickerUnreachable("away"))
    async with PickerApart(calls) as picker:
        with pytest.raises(PickerUnreachable):
            await picker.place(CHAT, ARGUMENTS)
    assert [told[1] for told in calls.told if isinstance(told, tuple)] == [AbortReason.PULL_FAILED] * 2


async def test_a_client_that_leaves_while_its_body_is_pulled_is_told() -> None:
    calls = Calls(None)
    calls.go_on.clear()
    async with PickerApart(calls) as picker, asyncio.TaskGroup() as tasks:
        placing = tasks.create_task(picker.place(CHAT, ARGUMENTS))
        await calls.is_pulling.wait()
        placing.cancel()
    assert calls.told == [(ID, AbortReason.NOT_DISPATCHED, "the client went away", "")]


async def test_reports_keep_their_order_and_wait_for_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    calls = Calls()
    calls.go_on.clear()
    async with PickerApart(calls) as picker:
        picker.report_first_token(FIRST)
        picker.report_final_token(FINAL)
        picker.abort(ResponseId(8), AbortReason.UNSPECIFIED)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        other = [(8, AbortReason.UNSPECIFIED, "", "")]
        assert calls.told == other
        calls.go_on.set()
    assert calls.told == [*other, FIRST, FINAL]
    assert "away" in caplog.text


async def test_a_picker_that_hangs_is_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "REPORT_PATIENCE", 0.001)
    calls = Calls()
    calls.go_on.clear()
    async with PickerApart(calls) as picker:
        picker.report_first_token(FIRST)
    assert calls.told == []
    assert "timed out" in caplog.text
