"""Coroutines that are run as far as they go before anything is spent on waiting for them."""

import asyncio

import pytest

from kinference.gateway.patience import Begun


async def at_once(value: int) -> int:
    return value


async def after(event: asyncio.Event, value: int) -> int:
    await event.wait()
    await asyncio.sleep(0)
    return value


async def test_what_waits_for_nothing_is_done_when_it_is_begun() -> None:
    begun = Begun(at_once(1))
    assert begun.is_done
    assert await begun.wait() == 1
    assert await begun.within(0) == 1


async def test_what_waits_goes_on_where_it_waited() -> None:
    event = asyncio.Event()
    begun = Begun(after(event, 2))
    assert not begun.is_done
    event.set()
    assert await begun.wait() == 2


async def test_another_task_may_go_on_with_it() -> None:
    event = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(Begun(after(event, 3)).wait())
        event.set()
    assert waiting.result() == 3


async def test_an_error_of_the_first_step_comes_at_once_and_a_later_one_when_it_is_awaited() -> None:
    async def fail(event: asyncio.Event | None) -> None:
        if event is not None:
            await event.wait()
        raise KeyError

    with pytest.raises(KeyError):
        Begun(fail(None))
    event = asyncio.Event()
    begun = Begun(fail(event))
    event.set()
    with pytest.raises(KeyError):
        await begun.wait()


async def test_an_error_that_is_waited_for_reaches_the_coroutine() -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def careful() -> str:
        try:
            await future
        except ValueError:
            await asyncio.sleep(0)
            return "caught"
        return "missed"

    begun = Begun(careful())
    future.set_exception(ValueError())
    assert await begun.wait() == "caught"


async def test_patience_ends_and_what_was_waited_for_is_cancelled() -> None:
    cancelled = False

    async def endless() -> None:
        nonlocal cancelled
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled = True
            raise

    with pytest.raises(TimeoutError):
        await Begun(endless()).within(0.001)
    assert cancelled
