"""The rest of an answer, waited for chunk by chunk or poured."""

import asyncio

import pytest

from kinference.errors import UpstreamCut
from kinference.ports import UpstreamRequest
from kinference.wire.http1.asking import Asking, Http1Answer
from kinference.wire.http1.link import Link
from kinference.wire.http1.pool import Pool
from tests.unit.wire.http1.linked import opened

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"


class Sink:
    """Takes one chunk at a time."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []

    def take(self, chunk: bytes) -> bool:
        self.taken.append(chunk)
        return False

    async def ready(self) -> None:
        await asyncio.sleep(0)


def answered() -> tuple[Link, Http1Answer]:
    link, pool = opened()[0], Pool()
    told: list[object] = []
    pool.give(link)
    assert Asking(pool).ask(UpstreamRequest("GET", "http://a:1", "/", ()), told.append) is not None
    link.data_received(HEAD)
    (answer,) = told
    assert isinstance(answer, Http1Answer)
    return link, answer


async def test_chunks_come_as_they_come_and_end_with_the_answer() -> None:
    link, answer = answered()
    loop = asyncio.get_running_loop()
    loop.call_soon(link.data_received, b"ab")
    loop.call_later(0.01, link.data_received, b"cd")
    assert [chunk async for chunk in answer.chunks()] == [b"ab", b"cd"]
    answer.close()
    assert [chunk async for chunk in answer.chunks()] == []


async def test_it_is_poured_as_it_comes_and_the_sink_is_waited_for() -> None:
    link, answer = answered()
    link.data_received(b"a")
    sink, loop = Sink(), asyncio.get_running_loop()
    loop.call_later(0.01, link.data_received, b"bcd")
    await answer.pour(sink)
    assert sink.taken == [b"a", b"bcd"]


async def test_an_answer_that_breaks_off_says_so_after_what_came_of_it() -> None:
    link, answer = answered()
    link.data_received(b"ab")
    link.connection_lost(None)
    chunks = answer.chunks()
    assert await anext(chunks) == b"ab"
    with pytest.raises(UpstreamCut):
        await anext(chunks)
