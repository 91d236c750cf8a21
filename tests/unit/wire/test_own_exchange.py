"""What holds for a request and its answer on any connection of ours."""

import asyncio
from collections.abc import Awaitable, Sequence

import pytest

from kinference.errors import ClientGone
from kinference.ports import Headers
from kinference.wire.fields import table
from kinference.wire.http2.http_head import HttpHead
from kinference.wire.over import OVER
from kinference.wire.own_exchange import OwnExchange, wake


class NotedExchange(OwnExchange):
    """Notes what it would send."""

    peer_names = ()

    def __init__(self, headers: Headers = ()) -> None:
        super().__init__(HttpHead("POST", "/p", "q", headers), "/p", "q", "peer", 5.0)
        self.sent: list[str] = []

    def _take(self) -> Sequence[bytes]:
        pieces, self._pieces = self._pieces, []
        return pieces

    def _send_continue(self) -> None:
        self.sent.append("continue")

    def start(self, status: int, headers: Headers) -> Awaitable[None]:
        self._promise(status, table(headers))
        self.is_started = True
        self.sent.append(str(status))
        return OVER

    def send(self, chunk: bytes) -> bool:
        if self._counts(chunk):
            self.sent.append(chunk.decode())
        return True

    def catching_up(self) -> Awaitable[None]:
        return OVER

    def _send_end(self) -> None:
        self.sent.append("end")

    def _send_reset(self) -> None:
        self.sent.append("reset")


async def test_the_request_is_told_as_it_came() -> None:
    exchange = NotedExchange(((b"a", b"b"),))
    assert (exchange.method, exchange.path, exchange.query) == ("POST", "/p", "q")
    assert (exchange.headers, exchange.peer, exchange.accepted_at) == (((b"a", b"b"),), "peer", 5.0)


async def test_who_reads_the_body_waits_for_it_and_asks_for_it_where_that_is_expected() -> None:
    exchange = NotedExchange(((b"expect", b"100-Continue"),))
    body = exchange.body()
    reading = asyncio.ensure_future(anext(body))
    await asyncio.sleep(0)
    assert (reading.done(), exchange.sent) == (False, ["continue"])
    exchange.receive(b"piece")
    assert await reading == b"piece"
    exchange.end_body()
    assert [piece async for piece in body] == []


async def test_a_body_that_came_by_itself_is_not_asked_for() -> None:
    exchange = NotedExchange(((b"expect", b"100-continue"),))
    exchange.receive(b"piece")
    assert await anext(exchange.body()) == b"piece"
    assert exchange.sent == []


@pytest.mark.parametrize("how", ["cut", "over"])
async def test_a_body_of_which_nothing_more_can_come_is_a_client_gone(how: str) -> None:
    exchange = NotedExchange()
    exchange._is_cut, exchange.is_over = how == "cut", how == "over"
    with pytest.raises(ClientGone):
        await anext(exchange.body())


async def test_an_answer_is_sent_in_order_and_ends_once() -> None:
    exchange = NotedExchange()
    await exchange.start(200, ((b"content-length", b"2"),))
    for chunk in (b"a", b"", b"b"):
        await exchange.write(chunk)
    await exchange.finish()
    await exchange.finish()
    exchange.abort()
    assert exchange.sent == ["200", "a", "b", "end"]


async def test_no_body_follows_a_status_that_has_none() -> None:
    exchange = NotedExchange()
    await exchange.start(204, ((b"content-length", b"2"),))
    await exchange.write(b"ab")
    await exchange.finish()
    assert exchange.sent == ["204", "end"]


@pytest.mark.parametrize("chunk", [b"123", b"1"])
async def test_a_promised_length_is_kept(chunk: bytes) -> None:
    exchange = NotedExchange()
    await exchange.start(200, ((b"content-length", b"2"),))

    async def answer() -> None:
        await exchange.write(chunk)
        await exchange.finish()

    with pytest.raises(AssertionError, match="content-length promised"):
        await answer()


async def test_nothing_is_written_to_an_answer_that_was_broken_off() -> None:
    exchange = NotedExchange()
    await exchange.start(200, ())
    exchange.abort()
    with pytest.raises(ClientGone):
        await exchange.write(b"x")
    exchange.give_up(500)
    assert exchange.sent == ["200", "reset"]


async def test_nothing_is_sent_to_who_has_gone() -> None:
    exchange = NotedExchange()
    exchange._is_lost = True
    with pytest.raises(ClientGone):
        await exchange.start(200, ())
    exchange.give_up(500)
    assert exchange.sent == []


@pytest.mark.parametrize(("starts", "sent"), [(False, ["500", "end"]), (True, ["200", "reset"])])
async def test_given_up_on_it_is_a_bare_status_or_broken_off(starts: bool, sent: list[str]) -> None:
    exchange = NotedExchange()
    if starts:
        await exchange.start(200, ())
    exchange.give_up(500)
    assert exchange.sent == sent


async def test_waking_is_for_who_waits() -> None:
    wake(None)
    waiting = asyncio.get_running_loop().create_future()
    wake(waiting)
    wake(waiting)
    assert waiting.done()
