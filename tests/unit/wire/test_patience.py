import asyncio
import socket
import time
from collections.abc import Iterator

import pytest

from kinference.wire.patience import Patience


@pytest.fixture
def line() -> Iterator[tuple[socket.socket, socket.socket]]:
    here, there = socket.socketpair()
    with here, there:
        here.setblocking(False)
        yield here, there


async def test_what_takes_too_long_ends_in_a_timeout() -> None:
    with pytest.raises(TimeoutError):
        async with Patience(0.01):
            await asyncio.Event().wait()


async def test_what_is_in_time_is_left_alone_and_its_own_errors_are_its_own() -> None:
    async with Patience(60):
        pass
    with pytest.raises(KeyError):
        async with Patience(60):
            raise KeyError
    task = asyncio.ensure_future(_wait_for_ever())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def _wait_for_ever() -> None:
    async with Patience(60):
        await asyncio.Event().wait()


async def test_it_begins_anew_when_it_is_told_to() -> None:
    async with Patience(0.3) as patience:
        time.sleep(0.4)  # noqa: ASYNC251 - the loop must not look before it begins anew
        patience.renew()
        for _ in range(3):
            await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        await _begin_anew_and_wait_for_ever()


async def _begin_anew_and_wait_for_ever() -> None:
    async with Patience(0.01) as patience:
        patience.renew()
        await asyncio.Event().wait()


async def test_what_came_while_the_process_stood_still_came_in_time(line: tuple[socket.socket, socket.socket]) -> None:
    here, there = line
    loop = asyncio.get_running_loop()

    def stand_still() -> None:
        there.send(b"in time")
        time.sleep(0.3)

    loop.call_soon(stand_still)
    async with Patience(0.1):
        assert await loop.sock_recv(here, 100) == b"in time"
