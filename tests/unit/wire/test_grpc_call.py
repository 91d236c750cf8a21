"""A call between its connection and its handler, driven by hand."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kinference.errors import ClientGone
from kinference.ids import Seconds
from kinference.wire.alarm import Alarm
from kinference.wire.grpc import CallHead
from kinference.wire.grpc_call import GrpcCall, Method
from kinference.wire.http2.headers import literal
from kinference.wire.rpc import Call, RpcError, RpcService, Status
from tests.unit.wire.http2.peer import framed

HEAD = CallHead("/s/m", None, ())


class FakeCarrier:
    """A connection whose window is open or shut, and whose timers are kept to be rung."""

    def __init__(self) -> None:
        self.peer_names = ("agent.local",)
        self.credited = 0
        self.sent: list[bytes] = []
        self.takes_all = True
        self.later: list[GrpcCall] = []
        self.times_needed = 0
        self.timers: list[GrpcCall] = []

    def taken(self, stream_id: int, size: int) -> None:
        self.credited += size

    def needs_bytes(self) -> None:
        self.times_needed += 1

    def takes(self, stream_id: int, size: int) -> bool:
        return self.takes_all and size <= 100

    def send_message(self, call: GrpcCall, message: bytes) -> bool:
        self.sent.append(message)
        return self.takes_all

    def advance(self, call: GrpcCall) -> None:
        assert call.routine is not None
        call.routine.send(None)

    def wake_later(self, call: GrpcCall) -> None:
        self.later.append(call)

    def wake_after(self, delay: Seconds, call: GrpcCall) -> Alarm:
        self.timers.append(call)
        return Alarm(asyncio.get_running_loop(), 3600, lambda: None)


def started(handler: Callable[[Call], Coroutine[Any, Any, None]]) -> tuple[GrpcCall, FakeCarrier]:
    carrier = FakeCarrier()
    call = GrpcCall(carrier, 1, HEAD, Method(RpcService("s", {}), "s/m", handler, is_counted=True), 100)
    call.routine = handler(call)
    call.routine.send(None)
    return call, carrier


class Ended(Exception):
    """Carries out of a handler what it saw, so that the test's own frame gets it."""


async def report_one(call: Call) -> None:
    raise Ended(await call.receive())


async def test_a_message_wakes_the_handler_that_waits_for_it_and_is_credited() -> None:
    call, carrier = started(report_one)
    assert carrier.times_needed == 1, "the caller must be free to send"
    with pytest.raises(Ended) as seen:
        call.take(framed(b"hello"), ended=False)
    assert seen.value.args == (b"hello",)
    assert carrier.credited == 10


async def test_a_clean_end_is_none() -> None:
    call, _ = started(report_one)
    with pytest.raises(Ended) as seen:
        call.take(b"", ended=True)
    assert seen.value.args == (None,)


async def test_an_end_within_a_message_is_no_end() -> None:
    call, _ = started(report_one)
    with pytest.raises(RpcError) as caught:
        call.take(framed(b"hello")[:7], ended=True)
    assert caught.value.status is Status.INVALID_ARGUMENT


async def test_a_message_too_large_is_told_instead_of_those_before_it_and_nothing_after_it_counts() -> None:
    async def second(call: Call) -> None:
        await call.receive()
        await call.receive()

    call, carrier = started(second)
    with pytest.raises(RpcError) as caught:
        call.take(framed(b"x" * 101), ended=False)
    assert caught.value.status is Status.RESOURCE_EXHAUSTED
    call.take(framed(b"x"), ended=False)
    assert not call.inbox
    assert carrier.credited == 0


async def test_patience_has_an_end() -> None:
    async def impatient(call: Call) -> None:
        await call.receive(timeout=1)

    call, carrier = started(impatient)
    assert carrier.timers == [call]
    call.timed_out = True
    with pytest.raises(TimeoutError):
        carrier.advance(call)


async def test_a_message_that_is_there_needs_no_patience() -> None:
    carrier = FakeCarrier()
    call = GrpcCall(carrier, 1, HEAD, Method(RpcService("s", {}), "s/m", report_one, is_counted=True), 100)
    call.take(framed(b"one") + framed(b"two"), ended=True)
    assert [await call.receive(timeout=1) for _ in range(3)] == [b"one", b"two", None]
    assert carrier.timers == []


async def send_one(call: Call) -> None:
    await call.send(b"x")
    raise Ended


async def test_a_send_waits_until_all_of_it_has_gone() -> None:
    async def handler(call: Call) -> None:
        await call.receive()
        await send_one(call)

    call, carrier = started(handler)
    carrier.takes_all = False
    call.take(framed(b"go"), ended=True)
    assert call.is_waiting
    carrier.advance(call)
    assert call.is_waiting, "something else has happened"
    call.drained = True
    with pytest.raises(Ended):
        carrier.advance(call)


async def test_a_send_that_waits_can_be_cut() -> None:
    async def handler(call: Call) -> None:
        await call.receive()
        await send_one(call)

    call, carrier = started(handler)
    carrier.takes_all = False
    call.take(framed(b"go"), ended=True)
    call.cut()
    call.cut()
    assert carrier.later == [call]
    with pytest.raises(ClientGone):
        carrier.advance(call)


async def test_after_a_cut_nothing_is_sent() -> None:
    carrier = FakeCarrier()
    call = GrpcCall(carrier, 1, HEAD, Method(RpcService("s", {}), "s/m", send_one, is_counted=True), 100)
    call.cut()
    with pytest.raises(ClientGone):
        await call.send(b"x")
    assert carrier.sent == []


async def test_metadata_of_the_answer_is_told_before_it_and_not_after() -> None:
    async def tell(call: Call) -> None:
        call.tell("kinference-a", "1")
        call.tell("kinference-b", "2")
        await call.receive()

    call, _ = started(tell)
    assert call.told == literal(b"kinference-a", b"1") + literal(b"kinference-b", b"2")
    call.has_answered = True
    with pytest.raises(AssertionError, match="the head of the answer has gone"):
        call.tell("kinference-c", "3")
