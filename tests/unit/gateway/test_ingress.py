import asyncio
from collections.abc import AsyncIterator

import pytest

from kinference.errors import BudgetExceeded, IdleTimeout
from kinference.gateway.ingress import BodyLimits, HeldBody


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def body(declared: int | None = None) -> HeldBody:
    return HeldBody(BodyLimits(bytes_max=10, piece_bytes_max=4, idle=0.01), declared)


async def test_what_comes_in_is_passed_on_at_once_and_can_be_had_again() -> None:
    held = body()
    assert [piece async for piece in held.arriving(chunks(b"ab", b"c"))] == [b"ab", b"c"]
    assert b"".join([piece async for piece in held.again()]) == b"abc"
    assert b"".join([piece async for piece in held.again()]) == b"abc"
    assert len(held) == 3


async def test_a_chunk_over_the_push_limit_goes_on_in_pieces() -> None:
    assert [piece async for piece in body().arriving(chunks(b"0123456789"))] == [b"0123", b"4567", b"89"]


async def test_a_large_chunk_is_held_and_handed_on_as_one_object() -> None:
    held = HeldBody(BodyLimits(bytes_max=1 << 20, piece_bytes_max=1 << 20, idle=1.0), None)
    chunk = b"x" * 65_536
    (passed_on,) = [piece async for piece in held.arriving(chunks(chunk))]
    (once_more,) = [piece async for piece in held.again()]
    assert passed_on is once_more is chunk


async def test_the_limit_itself_is_allowed_and_one_more_is_not() -> None:
    held = body()
    with pytest.raises(BudgetExceeded, match="10 bytes"):
        assert [piece async for piece in held.arriving(chunks(b"01234", b"56789", b"!"))]
    assert held.is_over


async def test_a_declared_length_over_the_limit_is_refused_before_anything_is_read() -> None:
    held = body(declared=11)
    assert held.is_over
    with pytest.raises(BudgetExceeded):
        await anext(held.arriving(chunks(b"0")))
    assert len(held) == 0


async def test_an_upload_that_stands_still_is_given_up() -> None:
    async def stalling() -> AsyncIterator[bytes]:
        yield b"ab"
        await asyncio.Event().wait()

    arriving = body().arriving(stalling())
    assert await anext(arriving) == b"ab"
    with pytest.raises(IdleTimeout):
        await anext(arriving)


async def test_a_released_body_holds_nothing() -> None:
    held = body()
    assert [piece async for piece in held.arriving(chunks(b"ab"))]
    held.release()
    assert len(held) == 0
