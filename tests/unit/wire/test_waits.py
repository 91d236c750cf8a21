"""What a handler waits for, on a body and an answer that are told what to do."""

import asyncio
from collections import deque
from collections.abc import Sequence

import pytest

from kinference.errors import ClientGone
from kinference.wire.waits import body_of, caught_up


class ToldBody:
    def __init__(self) -> None:
        self.coming: deque[Sequence[bytes] | None] = deque()
        self.more = asyncio.Event()

    def came(self) -> Sequence[bytes] | None:
        return self.coming.popleft() if self.coming else ()

    async def arrival(self) -> None:
        self.more.clear()
        await self.more.wait()


class ToldAnswer:
    def __init__(self) -> None:
        self.is_there = True
        self.room = asyncio.Event()

    async def catching_up(self) -> None:
        await self.room.wait()

    def check_there(self) -> None:
        if not self.is_there:
            raise ClientGone("gone")


async def test_a_body_comes_piece_by_piece_and_is_waited_for() -> None:
    body = ToldBody()
    body.coming.append((b"a", b"b"))
    pieces = body_of(body)
    assert [await anext(pieces), await anext(pieces)] == [b"a", b"b"]
    waiting = asyncio.ensure_future(anext(pieces))
    await asyncio.sleep(0)
    assert not waiting.done()
    body.coming.extend([(b"c",), None])
    body.more.set()
    assert await waiting == b"c"
    assert [piece async for piece in pieces] == []


@pytest.mark.parametrize("is_there", [True, False])
async def test_who_waits_for_a_client_is_told_if_it_went(is_there: bool) -> None:
    answer = ToldAnswer()
    waiting = asyncio.ensure_future(caught_up(answer))
    await asyncio.sleep(0)
    assert not waiting.done()
    answer.is_there = is_there
    answer.room.set()
    if is_there:
        await waiting
    else:
        with pytest.raises(ClientGone):
            await waiting
