import asyncio

import pytest

from kinference.errors import Draining
from kinference.gateway.departure import Departure


async def work_for_ever(departure: Departure) -> None:
    with departure:
        await asyncio.Event().wait()


async def test_work_that_ends_in_time_is_left_alone_for_ever() -> None:
    departure = Departure()
    with departure:
        await asyncio.sleep(0)
    departure.end()
    await asyncio.sleep(0)


async def test_what_fails_meanwhile_fails_as_it_does() -> None:
    departure = Departure()
    with pytest.raises(LookupError), departure:
        raise LookupError


async def test_work_under_way_when_time_is_up_is_told_so_and_its_task_lives_on() -> None:
    departure = Departure()

    async def ask() -> str:
        with pytest.raises(Draining, match="shutting down"):
            await work_for_ever(departure)
        await asyncio.sleep(0)
        return "answered"

    asking = asyncio.ensure_future(ask())
    await asyncio.sleep(0)
    departure.end()
    assert await asking == "answered"


async def test_work_that_comes_afterwards_does_not_begin() -> None:
    departure = Departure()
    departure.end()
    with pytest.raises(Draining), departure:
        pytest.fail("it began")


@pytest.mark.parametrize("ends", [False, True])
async def test_a_client_that_leaves_cancels_it_as_ever(ends: bool) -> None:
    departure = Departure()
    asking = asyncio.ensure_future(work_for_ever(departure))
    await asyncio.sleep(0)
    asking.cancel()
    if ends:
        departure.end()
    with pytest.raises(asyncio.CancelledError):
        await asking


class Traveller:
    def __init__(self) -> None:
        self.told: list[Draining] = []

    def turn_back(self, why: Draining) -> None:
        self.told.append(why)


async def test_work_that_no_task_does_is_told_once_unless_it_has_left() -> None:
    departure, under_way, done = Departure(), Traveller(), Traveller()
    departure.join(under_way)
    departure.join(done)
    departure.leave(done)
    departure.leave(done)
    departure.end()
    assert ([str(why)[:9] for why in under_way.told], done.told) == (["the serve"], [])
    with pytest.raises(Draining):
        departure.join(done)
