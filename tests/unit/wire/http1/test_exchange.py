"""What a handler may do with an exchange, on a line that only notes what it is told."""

import asyncio

import pytest

from kinference.errors import ClientGone
from kinference.wire.exchange import respond
from kinference.wire.http1.exchange import BODY_HELD_MAX, Http1Exchange
from kinference.wire.http1.requests import RequestHead
from kinference.wire.untaken import Untaken


class NotedLine:
    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.peer, self.peer_names = "peer", ("agent.local",)
        self.account = Untaken()
        self.is_draining = self.is_congested = False
        self.is_held = self.is_turned_over = self.is_reset = self.is_closed = False
        self.may_go_on = asyncio.Event()

    def send_head(self, head: bytes) -> None:
        self.sent.append(head)

    def send(self, piece: bytes) -> None:
        self.sent.append(piece)

    async def drained(self) -> None:
        await self.may_go_on.wait()

    def date(self) -> bytes:
        return b"date: now\r\n"

    def hold_reading(self) -> None:
        self.is_held = True

    def go_on_reading(self) -> None:
        self.is_held = False

    def turn_over(self) -> None:
        self.is_turned_over = True

    def reset(self) -> None:
        self.is_reset = True

    def close(self) -> None:
        self.is_closed = True


def exchange_on(
    line: NotedLine, method: str = "GET", *, is_received: bool = True, is_http_1_1: bool = True
) -> Http1Exchange:
    head = RequestHead(method, "/p?q=1", [(b"host", b"h")], is_http_1_1, True, not is_received)
    made = Http1Exchange(line, head, 5.0)
    made.is_received = is_received
    return made


async def test_the_request_is_told_as_it_came() -> None:
    exchange = exchange_on(NotedLine())
    assert (exchange.method, exchange.path, exchange.query) == ("GET", "/p", "q=1")
    assert (exchange.peer, exchange.accepted_at, exchange.headers) == ("peer", 5.0, [(b"host", b"h")])
    assert exchange.peer_names == ("agent.local",)


async def test_a_whole_answer_is_head_and_body_and_the_next_ones_turn() -> None:
    line = NotedLine()
    await respond(exchange_on(line), 200, b"hello", b"text/plain")
    assert b"".join(line.sent) == (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n"
        b"date: now\r\nserver: kinference\r\n\r\nhello"
    )
    assert line.is_turned_over


async def test_an_answer_without_a_length_is_chunked() -> None:
    line = NotedLine()
    exchange = exchange_on(line)
    await exchange.start(200, ())
    await exchange.write(b"a")
    await exchange.write(b"")
    await exchange.finish()
    assert line.sent[1:] == [b"1\r\na\r\n", b"0\r\n\r\n"]


@pytest.mark.parametrize(("draining", "received"), [(True, True), (False, False)])
async def test_a_connection_that_cannot_go_on_says_so(draining: bool, received: bool) -> None:
    line = NotedLine()
    line.is_draining = draining
    exchange = exchange_on(line, is_received=received)
    await exchange.start(200, ((b"content-length", b"0"),))
    assert b"connection: close\r\n" in line.sent[0]
    assert exchange.must_close


@pytest.mark.parametrize("chunks", [(b"12345", b"6"), (b"1",)])
async def test_a_promised_length_is_kept(chunks: tuple[bytes, ...]) -> None:
    exchange = exchange_on(NotedLine())
    await exchange.start(200, ((b"content-length", b"5"),))

    async def answer() -> None:
        for chunk in chunks:
            await exchange.write(chunk)
        await exchange.finish()

    with pytest.raises(AssertionError, match="content-length promised"):
        await answer()


async def test_a_writer_waits_for_a_slow_client() -> None:
    line = NotedLine()
    exchange = exchange_on(line)
    await exchange.start(200, ())
    line.is_congested = True
    writing = asyncio.ensure_future(exchange.write(b"x"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not writing.done()
    line.may_go_on.set()
    await writing


async def test_a_lost_client_is_gone_for_every_step() -> None:
    exchange = exchange_on(NotedLine())
    exchange.lose()
    with pytest.raises(ClientGone):
        await exchange.start(200, ())
    exchange = exchange_on(NotedLine())
    await exchange.start(200, ())
    exchange.lose()
    with pytest.raises(ClientGone):
        await exchange.write(b"x")
    with pytest.raises(ClientGone):
        await exchange.finish()


async def test_a_body_comes_as_it_is_received_and_ends() -> None:
    line = NotedLine()
    exchange = exchange_on(line, is_received=False)
    taken: list[bytes] = []

    async def take() -> None:
        async for piece in exchange.body():
            taken.append(piece)  # noqa: PERF401 - what has been taken so far matters

    async with asyncio.TaskGroup() as group:
        group.create_task(take())
        for piece in (b"a", b"b"):
            exchange.receive(piece)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert taken == [b"a", b"b"]
        exchange.end_body()


async def test_a_body_held_over_the_limit_makes_the_client_wait_until_it_is_read() -> None:
    line = NotedLine()
    exchange = exchange_on(line, is_received=False)
    held = []
    for size in (BODY_HELD_MAX, 1):
        exchange.receive(b"x" * size)
        held.append(line.is_held)
    await anext(exchange.body())
    held.append(line.is_held)
    assert held == [False, True, False]


async def test_while_room_is_short_the_client_waits_with_every_byte_until_it_is_read() -> None:
    line = NotedLine()
    line.account = Untaken(16)
    exchange = exchange_on(line, is_received=False)
    held = []
    for piece in (b"four", b"!"):
        exchange.receive(piece)
        held.append((line.is_held, line.account.held))
    await anext(exchange.body())
    held.append((line.is_held, line.account.held))
    assert held == [(False, 4), (True, 5), (False, 0)]


def test_bytes_that_nobody_will_take_are_given_back_once() -> None:
    line = NotedLine()
    exchange = exchange_on(line, is_received=False)
    exchange.receive(b"four")
    exchange.release()
    exchange.release()
    assert line.account.held == 0


async def test_a_body_that_breaks_off_is_a_client_gone_after_what_came() -> None:
    exchange = exchange_on(NotedLine(), is_received=False)
    exchange.receive(b"a")
    exchange.break_body()
    body = exchange.body()
    assert await anext(body) == b"a"
    with pytest.raises(ClientGone):
        await anext(body)


async def test_breaking_off_resets_once() -> None:
    line = NotedLine()
    exchange = exchange_on(line)
    await exchange.start(200, ())
    exchange.abort()
    assert line.is_reset
    line.is_reset = False
    exchange.abort()
    assert not line.is_reset
    with pytest.raises(ClientGone):
        await exchange.write(b"x")


async def test_a_probe_is_nothing_to_one_that_reads() -> None:
    exchange = exchange_on(NotedLine())
    assert exchange.probe() == b"HTTP/1.1 100 Continue\r\n\r\n"
    await exchange.start(200, ())
    assert exchange.probe() == b"0"
    framed = exchange_on(NotedLine())
    await framed.start(200, ((b"content-length", b"5"),))
    assert framed.probe() == b""
    assert exchange_on(NotedLine(), is_http_1_1=False).probe() == b""


async def test_given_up_on_before_its_head_an_answer_is_a_bare_status_on_a_connection_that_ends() -> None:
    line = NotedLine()
    exchange_on(line).give_up(500)
    assert b"".join(line.sent).startswith(b"HTTP/1.1 500 ")
    assert b"connection: close" in b"".join(line.sent)
    assert line.is_turned_over


async def test_given_up_on_after_its_head_an_answer_is_broken_off() -> None:
    line = NotedLine()
    exchange = exchange_on(line)
    await exchange.start(200, ())
    exchange.give_up(500)
    assert line.is_reset


@pytest.mark.parametrize("starts", [False, True])
async def test_a_cancelled_answer_is_broken_off_where_it_has_begun(starts: bool) -> None:
    line = NotedLine()
    exchange = exchange_on(line)
    if starts:
        await exchange.start(200, ())
    exchange.break_off()
    assert (line.is_reset, line.is_closed) == (starts, not starts)


async def test_a_handler_may_end_the_connection_with_its_answer() -> None:
    line = NotedLine()
    exchange = exchange_on(line)
    await respond(exchange, 403, b"no", b"text/plain", (b"connection", b"close"))
    assert exchange.must_close
    assert b"".join(line.sent).count(b"connection: close\r\n") == 1
