"""Real connections and a virtual clock against a small model: calls, resets, lost connections and jumps in any order."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from threading import Thread
from typing import Any, TypeVar

import grpc
import pytest
from grpc import StatusCode
from grpc.aio import StreamUnaryCall
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from kinference.conformance.case import chat
from kinference.conformance.client import Client, Issued, open_channel, status_of
from kinference.conformance.message import encode
from kinference.ids import ResponseId, Seconds, StreamId
from kinference.picker.bodies import Bodies
from kinference.picker.desk import Desk
from kinference.picker.limits import PickerLimits
from kinference.picker.reports import Reports
from kinference.picker.tickets import State, Ticket, Tickets
from kinference.wire.pieces import Pieces
from tests.conformance.serving import JumpingClock, Served, Setup, served

TTL, LEASE = 100.0, 1000.0
SETUP = Setup(PickerLimits(body_ttl=TTL, ticket_ttl=LEASE))
Result = TypeVar("Result")


@dataclass
class Model:
    """Bodies and requests as the contract has them: two lives, that of the bytes and that of the request."""

    pushes: dict[StreamUnaryCall[bytes, bytes], bytes] = field(default_factory=dict)
    stored: dict[int, tuple[bytes, float]] = field(default_factory=dict)
    consumed: dict[int, float] = field(default_factory=dict)
    picked: dict[int, tuple[bytes, float]] = field(default_factory=dict)
    live: dict[int, float] = field(default_factory=dict)
    """Requests, and when each is due."""
    reported: set[int] = field(default_factory=set)
    closed: list[int] = field(default_factory=lambda: [0, 12345])

    @property
    def held(self) -> int:
        stored = [body for group in (self.stored, self.picked) for body, _ in group.values()]
        return sum(map(len, (*self.pushes.values(), *stored)))

    def at(self, now: float) -> None:
        for group in (self.stored, self.picked):
            for key in [key for key, (_, since) in group.items() if since + TTL <= now]:
                del group[key]
        self.consumed = {key: since for key, since in self.consumed.items() if since + TTL > now}
        for key in [key for key, due in self.live.items() if due <= now]:
            self.close(key)

    def close(self, response_id: int) -> None:
        self.picked.pop(response_id, None)
        del self.live[response_id]
        self.closed.append(response_id)


class Machine(RuleBasedStateMachine):
    """Each rule is a call on a real connection; the server and the client have a loop in a thread of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.model, self.clock = Model(), JumpingClock()
        self.loop, self.stack = asyncio.new_event_loop(), AsyncExitStack()
        self.thread = Thread(target=self.loop.run_forever)
        self.thread.start()
        self.server: Served = self.run(self.stack.enter_async_context(served(SETUP, clock=self.clock)))
        self.client: Client = self.run(self.connect())

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout=60)

    async def connect(self) -> Client:
        return Client(open_channel(self.server.target), self.server.target, Issued())

    def body(self, number: int) -> bytes:
        return chat("llama" if number % 4 else "nobody", f"{number} " * (number * 40 + 1))

    # --- pushes ----------------------------------------------------------------------------------

    @rule(number=st.integers(0, 9), cut=st.integers(1, 50))
    def a_push_begins(self, number: int, cut: int) -> None:
        part = self.body(number)[:cut]
        self.model.pushes[self.run(self.client.begin_push(part))] = part

    @precondition(lambda self: self.model.pushes)
    @rule(data=st.data(), number=st.integers(0, 9))
    def a_push_goes_on(self, data: st.DataObject, number: int) -> None:
        call = data.draw(st.sampled_from(list(self.model.pushes)))
        self.run(call.write(encode({1: self.body(number)})))
        self.model.pushes[call] += self.body(number)

    @precondition(lambda self: self.model.pushes)
    @rule(data=st.data())
    def a_push_ends(self, data: st.DataObject) -> None:
        call = data.draw(st.sampled_from(list(self.model.pushes)))
        body = self.model.pushes.pop(call)
        stream_id, total = self.run(self.half_close(call))
        assert total == len(body)
        assert stream_id not in (0, *self.model.stored, *self.model.consumed)
        self.model.stored[stream_id] = (body, self.clock.now())

    async def half_close(self, call: StreamUnaryCall[bytes, bytes]) -> tuple[int, int]:
        await call.done_writing()
        return self.client.pushed(await call)

    @precondition(lambda self: self.model.pushes)
    @rule(data=st.data())
    def a_push_is_reset(self, data: st.DataObject) -> None:
        call = data.draw(st.sampled_from(list(self.model.pushes)))
        del self.model.pushes[call]
        self.loop.call_soon_threadsafe(call.cancel)

    @rule(number=st.integers(0, 9))
    def a_body_is_pushed_whole(self, number: int) -> None:
        self.push(number)

    def push(self, number: int) -> int:
        stream_id, total = self.run(self.client.push(self.body(number)))
        assert total == len(self.body(number))
        self.model.stored[stream_id] = (self.body(number), self.clock.now())
        return stream_id

    # --- picks and pulls -------------------------------------------------------------------------

    @precondition(lambda self: self.model.stored)
    @rule(data=st.data())
    def a_body_is_picked(self, data: st.DataObject) -> None:
        self.pick(data.draw(st.sampled_from(list(self.model.stored))))

    @rule(numbers=st.lists(st.integers(0, 9), min_size=1, max_size=3), reported=st.booleans())
    def bodies_are_pushed_and_picked(self, numbers: list[int], reported: bool) -> None:
        for number in numbers:
            response_id = self.pick(self.push(number))
            if response_id and reported:
                self.first(response_id)

    def pick(self, stream_id: int) -> int:
        body, _ = self.model.stored.pop(stream_id)
        picked = self.run(self.client.pick(stream_id))
        self.model.consumed[stream_id] = self.clock.now()
        assert picked.is_choice == (picked.response_id != 0) == picked.has_destination
        assert picked.body_total_bytes == (len(body) if picked.is_choice else 0)
        if picked.is_choice:
            assert picked.response_id not in self.model.live
            self.model.picked[picked.response_id] = (body, self.clock.now())
            self.model.live[picked.response_id] = self.clock.now() + TTL
        return picked.response_id

    @rule(data=st.data())
    def what_cannot_be_picked_says_why(self, data: st.DataObject) -> None:
        stream_id = data.draw(st.sampled_from([0, 12345, *self.model.consumed]))
        wanted = {0: StatusCode.INVALID_ARGUMENT, 12345: StatusCode.NOT_FOUND}
        assert self.run(status_of(self.client.pick(stream_id))) is wanted.get(stream_id, StatusCode.FAILED_PRECONDITION)

    @precondition(lambda self: self.model.picked)
    @rule(data=st.data())
    def a_body_is_pulled(self, data: st.DataObject) -> None:
        response_id = data.draw(st.sampled_from(list(self.model.picked)))
        body, _ = self.model.picked.pop(response_id)
        assert b"".join(self.run(self.client.pull(response_id))) == body
        self.model.live[response_id] = self.clock.now() + LEASE
        self.run(self.server.wait_until(lambda: not self.server.desk._tickets.pulls))

    @rule(data=st.data())
    def what_cannot_be_pulled_is_not_found(self, data: st.DataObject) -> None:
        response_id = data.draw(
            st.sampled_from([*self.model.closed, *(self.model.live.keys() - self.model.picked.keys())])
        )
        assert self.run(status_of(self.client.pull(response_id))) is StatusCode.NOT_FOUND

    @precondition(lambda self: self.model.picked)
    @rule(data=st.data())
    def a_pull_is_cancelled_and_its_request_aborted(self, data: st.DataObject) -> None:
        response_id = data.draw(st.sampled_from(list(self.model.picked)))
        assert self.run(self.cancelled_pull(response_id))
        self.model.close(response_id)

    async def cancelled_pull(self, response_id: int) -> bool:
        await self.begun_and_cancelled(response_id)
        return await self.client.abort(response_id)

    @precondition(lambda self: self.model.picked.keys() - self.model.reported)
    @rule(data=st.data())
    def a_pull_is_cancelled_and_its_request_lives_on(self, data: st.DataObject) -> None:
        """Cancelled amid the body or behind its last byte: the first report begins its lease either way."""
        unreported = [key for key in self.model.picked if key not in self.model.reported]
        response_id = data.draw(st.sampled_from(unreported))
        del self.model.picked[response_id]
        self.run(self.begun_and_cancelled(response_id))
        self.run(self.server.wait_until(lambda: not self.server.desk._tickets.pulls))
        self.first(response_id)

    async def begun_and_cancelled(self, response_id: int) -> None:
        call = self.client.pull_call(response_id)
        await call.read()
        call.cancel()

    # --- reports ---------------------------------------------------------------------------------

    @precondition(lambda self: self.model.live)
    @rule(data=st.data(), how=st.sampled_from(["first", "first", "final", "abort"]))
    def a_report_counts_while_its_request_lives(self, data: st.DataObject, how: str) -> None:
        response_id = data.draw(st.sampled_from(list(self.model.live)))
        if how == "first":
            self.first(response_id)
        else:
            assert self.run(self.report(how, response_id))
            self.model.close(response_id)

    def first(self, response_id: int) -> None:
        assert self.run(self.client.first_token(response_id))
        if response_id not in self.model.reported:
            self.model.reported.add(response_id)
            self.model.live[response_id] = self.clock.now() + LEASE

    @rule(data=st.data(), how=st.sampled_from(["first", "final", "abort"]))
    def a_report_of_what_is_over_counts_for_nothing(self, data: st.DataObject, how: str) -> None:
        assert not self.run(self.report(how, data.draw(st.sampled_from(self.model.closed[-5:]))))

    async def report(self, how: str, response_id: int) -> bool:
        if how == "first":
            return await self.client.first_token(response_id)
        return await (self.client.final_token if how == "final" else self.client.abort)(response_id)

    # --- weather ---------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([1.0, 20.0, 40.0, TTL, LEASE]))
    def time_passes(self, seconds: float) -> None:
        self.clock.seconds += seconds
        self.run(self.reclaim())
        self.model.at(self.clock.now())

    async def reclaim(self) -> None:
        while self.server.desk.expire():
            pass

    @rule()
    def the_connection_is_lost(self) -> None:
        self.model.pushes.clear()
        self.run(self.client.channel.close())
        self.client = self.run(self.connect())

    @invariant()
    def every_byte_is_counted(self) -> None:
        self.run(self.server.wait_until(lambda: self.server.desk.buffered_bytes == self.model.held))

    @invariant()
    def what_lives_is_what_the_model_says(self) -> None:
        desk = self.server.desk
        assert len(desk._tickets) == len(self.model.live)

    def teardown(self) -> None:
        try:
            self.run(self.client.channel.close())
            self.clock.seconds += 10 * LEASE
            self.run(
                self.server.wait_until(
                    lambda: not any(body.state.name == "OPEN" for body in self.server.desk._bodies._live.values())
                )
            )
            self.run(self.reclaim())
        finally:
            self.end()

    def end(self) -> None:
        """Whatever was found, nothing outlives it."""
        try:
            self.run(self.stack.aclose())
        finally:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join()
            self.loop.close()


TestPickerOverSockets = Machine.TestCase
TestPickerOverSockets.settings = settings(
    max_examples=40,
    stateful_step_count=50,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # to shrink over sockets takes longer than to read the steps
)


def forgets_what_was_consumed(patch: pytest.MonkeyPatch) -> None:
    right = Bodies.consume

    def consume(self: Bodies, stream_id: StreamId, now: Seconds) -> Pieces:
        pieces = right(self, stream_id, now)
        self._consumed.stop(stream_id)
        return pieces

    patch.setattr(Bodies, "consume", consume)


def keeps_what_was_reset(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Bodies, "discard", lambda *_: None)


def acknowledges_everything(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Reports, "final_token", lambda *_: True)


def closes_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Reports, "final_token", lambda self, report: self._tickets.find(report.response_id) is not None)


def never_expires(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Desk, "expire", lambda _: False)


def serves_a_pull_to_everybody(patch: pytest.MonkeyPatch) -> None:
    right = Tickets.unpulled

    def unpulled(self: Tickets, response_id: ResponseId) -> Ticket:
        ticket = self.find(response_id)
        if ticket is None or ticket.state is State.UNPULLED:
            return right(self, response_id)
        return Ticket(response_id, ticket.flow, ())

    patch.setattr(Tickets, "unpulled", unpulled)


FAULTS = (
    forgets_what_was_consumed,
    keeps_what_was_reset,
    acknowledges_everything,
    closes_nothing,
    never_expires,
    serves_a_pull_to_everybody,
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_planted_fault_is_found_over_sockets(
    fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    monkeypatch.setattr(Served, "PATIENCE", 1.0)
    hunt = settings(
        Machine.TestCase.settings,
        max_examples=400,  # it ends at the first that finds it; forty once found nothing
        database=None,
        phases=(Phase.generate,),
        report_multiple_bugs=False,
    )
    with pytest.raises((AssertionError, TimeoutError, KeyError, grpc.aio.AioRpcError)):
        run_state_machine_as_test(Machine, settings=hunt)
