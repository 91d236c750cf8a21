"""What waits for a call that is told what to do, stepped by hand as the carrier steps it."""

import asyncio
from collections.abc import Awaitable, Coroutine, Sequence
from typing import Any

import pytest

from kinference.errors import ClientGone
from kinference.ids import Seconds
from kinference.wire.alarm import Alarm
from kinference.wire.grpc_waits import drained, pause, received, rested, run


class ToldCall:
    """Notes what is asked of it."""

    def __init__(self) -> None:
        self.is_waiting = self.was_woken = self.drained = self.is_told = self.timed_out = False
        self.metadata: Sequence[tuple[str, str | bytes]] = ()
        self.peer_names: Sequence[str] = ()
        self.failure: Exception | None = None
        self.waits: list[Seconds | None] = []

    def take_message(self) -> bytes | None:
        self.check()
        return b"message"

    def turn(self) -> Awaitable[None]:
        self.is_waiting = True
        return pause()

    def begin_waiting(self, timeout: Seconds | None) -> Alarm | None:
        self.waits.append(timeout)
        return None if timeout is None else Alarm(asyncio.get_running_loop(), timeout, self.waits.clear)

    def check(self) -> None:
        if self.failure is not None:
            raise self.failure

    def check_patience(self) -> None:
        if self.timed_out:
            raise TimeoutError

    async def receive(self, timeout: Seconds | None = None) -> bytes | None:
        return await received(self, timeout)

    async def send(self, message: bytes) -> None: ...
    def tell(self, name: str, value: str) -> None: ...
    async def rest(self) -> None: ...
    def wake(self) -> None: ...
    def cut(self) -> None: ...

    def takes(self, message: bytes) -> bool:
        return False


def step(routine: Coroutine[Any, Any, Any]) -> object:
    """What it comes to in one step; "waits" where it does not."""
    try:
        routine.send(None)
    except StopIteration as end:
        return end.value
    return "waits"


def test_a_message_that_is_there_is_not_waited_for() -> None:
    call = ToldCall()
    call.is_told = True
    assert step(received(call, 1.0)) == b"message"
    assert (call.waits, call.is_waiting) == ([], False)


async def test_a_message_is_waited_for_and_the_wait_leaves_no_timer() -> None:
    call = ToldCall()
    waiting = received(call, 0.0)
    assert step(waiting) == "waits"
    assert step(waiting) == "waits"  # woken for something else
    assert call.is_waiting
    call.is_told = True
    assert step(waiting) == b"message"
    await asyncio.sleep(0.001)
    assert (call.waits, call.is_waiting) == ([0.0], False)


def test_patience_ends() -> None:
    call = ToldCall()
    waiting = received(call, None)
    assert step(waiting) == "waits"
    call.timed_out = True
    with pytest.raises(TimeoutError):
        step(waiting)
    assert not call.is_waiting


def test_what_comes_as_patience_ends_has_come() -> None:
    call = ToldCall()
    waiting = received(call, None)
    assert step(waiting) == "waits"
    call.timed_out = call.is_told = True
    assert step(waiting) == b"message"


@pytest.mark.parametrize("wait", [drained, rested])
def test_a_wait_ends_as_its_call_does(wait: Any) -> None:
    call = ToldCall()
    waiting = wait(call)
    assert step(waiting) == "waits"
    assert step(waiting) == "waits"
    call.drained = call.was_woken = True
    assert step(waiting) is None
    call.drained = call.was_woken = False
    waiting = wait(call)
    assert step(waiting) == "waits"
    call.failure = ClientGone("gone")
    with pytest.raises(ClientGone):
        step(waiting)


def test_who_rests_again_has_to_be_woken_again() -> None:
    call = ToldCall()
    call.was_woken = True
    assert step(rested(call)) is None
    assert step(rested(call)) == "waits"


def test_a_wait_that_is_cancelled_waits_no_more() -> None:
    call = ToldCall()
    waiting = rested(call)
    assert step(waiting) == "waits"
    with pytest.raises(asyncio.CancelledError):
        waiting.throw(asyncio.CancelledError())
    assert not call.is_waiting


@pytest.mark.parametrize("raised", [None, ValueError("broken"), asyncio.CancelledError()])
def test_how_a_handler_ended_is_told_once(raised: BaseException | None) -> None:
    call, ends = ToldCall(), list[BaseException | None]()

    async def handle(_call: object) -> None:
        if raised is not None:
            raise raised

    assert step(run(handle, call, lambda _call, error: ends.append(error))) is None
    assert ends == [raised]
