"""What the handler of a call waits for on our own carrier, and what runs one that has a task of its own."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from types import coroutine
from typing import Protocol, TypeVar

from kinference.ids import Seconds
from kinference.wire.alarm import Alarm
from kinference.wire.rpc import Call, RpcHandler

Served = TypeVar("Served", bound=Call)


class Waiting(Protocol):
    """A call whose handler waits."""

    is_waiting: bool
    was_woken: bool
    drained: bool

    @property
    def is_told(self) -> bool:
        """Whether `take_message` has something to say."""
        ...

    def take_message(self) -> bytes | None:
        """What comes next. Raises how the call failed."""
        ...

    def turn(self) -> Awaitable[None]:
        """Something has happened to the call."""
        ...

    def begin_waiting(self, timeout: Seconds | None) -> Alarm | None:
        """A message is waited for, mostly for so long."""
        ...

    def check(self) -> None:
        """Raise how the call failed, if it did."""
        ...

    def check_patience(self) -> None:
        """Raise TimeoutError if a message was waited for too long."""
        ...


async def received(call: Waiting, timeout: Seconds | None) -> bytes | None:
    """The next message; None at the end."""
    if not call.is_told:
        timer = call.begin_waiting(timeout)
        try:
            while not call.is_told:
                await _turn(call)
                if not call.is_told:
                    call.check_patience()
        finally:
            if timer is not None:
                timer.cancel()
    return call.take_message()


async def drained(call: Waiting) -> None:
    """Until all that was sent has gone to the peer."""
    while not call.drained:
        await _turn(call)
        call.check()


async def rested(call: Waiting) -> None:
    """Until it is woken."""
    while not call.was_woken:
        await _turn(call)
        call.check()
    call.was_woken = False


async def run(handler: RpcHandler, call: Served, ended: Callable[[Served, BaseException | None], None]) -> None:
    """Run a handler that has a task of its own, and tell how it ended."""
    try:
        await handler(call)
    except (asyncio.CancelledError, Exception) as error:  # noqa: BLE001 - task root: one broken call must not touch the others
        ended(call, error)
    else:
        ended(call, None)


async def _turn(call: Waiting) -> None:
    try:
        await call.turn()
    finally:
        call.is_waiting = False


@coroutine
def pause() -> Generator[None, None, None]:
    """Hand control back to whoever steps the handler."""
    yield
