import asyncio
from collections.abc import AsyncIterator

import pytest

from kinference.errors import BudgetExceeded, IdleTimeout, RetryLater
from kinference.gateway.held_body import BodyLimits, HeldBody
from kinference.gateway.ingress import receive
from tests.unit.gateway.fakes import FakeExchange, FakePicker

PATH = "/v1/chat/completions"


class Arrived(FakeExchange):
    """A request that came in as one."""

    def arrived(self) -> bytes:
        return b"".join(self._body)

    def body(self) -> AsyncIterator[bytes]:
        raise AssertionError("asked for what it has given")


def body(picker: FakePicker) -> HeldBody:
    return HeldBody(BodyLimits(bytes_max=10, idle=0.01), picker)


async def take_in(held: HeldBody, exchange: FakeExchange) -> None:
    """As whoever serves the exchange does."""
    if not held.take_arrived(exchange):
        await receive(held, exchange)


@pytest.mark.parametrize("kind", [FakeExchange, Arrived])
@pytest.mark.parametrize("parts", [(), (b"abc",), (b"ab", b"", b"c")])
async def test_what_comes_in_is_held_as_one_and_counted_until_it_is_placed(
    kind: type[FakeExchange], parts: tuple[bytes, ...]
) -> None:
    picker = FakePicker()
    held = body(picker)
    await take_in(held, kind(PATH, parts))
    assert held.whole == b"".join(parts)
    assert picker.held == len(held.whole)
    for _ in range(2):
        held.placed()
        assert picker.held == 0


@pytest.mark.parametrize("kind", [FakeExchange, Arrived])
async def test_a_body_that_came_in_one_piece_is_not_copied(kind: type[FakeExchange]) -> None:
    whole = b"x" * 10
    held = body(FakePicker())
    await take_in(held, kind(PATH, (whole,)))
    assert held.whole is whole


@pytest.mark.parametrize("kind", [FakeExchange, Arrived])
async def test_the_limit_itself_is_allowed_and_one_more_is_not(kind: type[FakeExchange]) -> None:
    await take_in(body(FakePicker()), kind(PATH, (b"01234", b"56789")))
    with pytest.raises(BudgetExceeded, match="10 bytes"):
        await take_in(body(FakePicker()), kind(PATH, (b"01234", b"56789", b"!")))


async def test_a_declared_length_over_the_limit_is_refused_before_anything_is_read() -> None:
    exchange = FakeExchange(PATH, (b"0",), headers=((b"content-length", b"11"),))
    with pytest.raises(BudgetExceeded):
        await take_in(body(FakePicker()), exchange)
    assert exchange.body_read == 0


async def test_a_declared_length_that_the_picker_has_no_room_for_is_put_off_before_anything_is_read() -> None:
    picker, exchange = FakePicker(), FakeExchange(PATH, (b"0",), headers=((b"content-length", b"5"),))
    picker.room = 4
    with pytest.raises(RetryLater):
        await take_in(body(picker), exchange)
    assert exchange.body_read == 0


@pytest.mark.parametrize("kind", [FakeExchange, Arrived])
async def test_a_picker_that_runs_out_of_room_puts_the_body_off_and_counts_what_came_until_told(
    kind: type[FakeExchange],
) -> None:
    picker = FakePicker()
    picker.room = 4
    held = body(picker)
    with pytest.raises(RetryLater):
        await take_in(held, kind(PATH, (b"012", b"345")))
    held.placed()
    assert picker.held == 0


async def test_an_upload_that_stands_still_is_given_up() -> None:
    class Stalling(FakeExchange):
        async def body(self) -> AsyncIterator[bytes]:
            yield b"ab"
            await asyncio.Event().wait()

    picker = FakePicker()
    held = body(picker)
    with pytest.raises(IdleTimeout):
        await take_in(held, Stalling(PATH))
    held.placed()
    assert picker.held == 0


async def test_an_upload_that_goes_on_may_take_longer_than_it_may_stand_still() -> None:
    class Slow(FakeExchange):
        async def body(self) -> AsyncIterator[bytes]:
            loop = asyncio.get_running_loop()
            until = loop.time() + 0.6
            while loop.time() < until:
                yield b""
                await asyncio.sleep(0)
            yield b"a"

    held = HeldBody(BodyLimits(bytes_max=10, idle=0.5), FakePicker())
    await take_in(held, Slow(PATH))
    assert held.whole == b"a"


async def test_a_released_body_holds_nothing() -> None:
    held = body(FakePicker())
    await take_in(held, FakeExchange(PATH, (b"ab",)))
    held.release()
    assert held.whole == b""
