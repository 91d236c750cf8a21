"""One connection's life, seen from the other end of it."""

import asyncio
import time

import pytest

from kinference.runtime.clock import SystemClock
from kinference.wire.exchange import Exchange, respond
from kinference.wire.http1.connection import Connection
from kinference.wire.http1.deadlines import Deadlines
from kinference.wire.server_options import HttpServerOptions
from kinference.wire.site import Site
from kinference.wire.untaken import Untaken
from tests.unit.wire.http1.serving import GET, answer, connected, echo, serving


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nhost: h\r\n\r\n".encode()


async def test_requests_sent_ahead_are_answered_in_order_one_at_a_time() -> None:
    running, most = 0, 0

    async def handler(exchange: Exchange) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01 if exchange.path == "/1" else 0)
        running -= 1
        await echo(exchange)

    ahead = get("/1") + b"POST /2 HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\nabc" + get("/3")
    async with serving(handler) as port, connected(port) as (reader, writer):
        writer.write(ahead)
        assert [await answer(reader) for _ in range(3)] == [b"/1 ", b"/2 abc", b"/3 "]
    assert most == 1


async def test_a_client_that_vanishes_after_requests_sent_ahead_is_noticed() -> None:
    is_called, is_cancelled = asyncio.Event(), asyncio.Event()

    async def handler(_: Exchange) -> None:
        is_called.set()
        try:
            await asyncio.Event().wait()
        finally:
            is_cancelled.set()

    async with serving(handler) as port, connected(port) as (_, writer):
        writer.write(get("/1") + get("/2"))
        await is_called.wait()
        writer.transport.abort()
        async with asyncio.timeout(10):
            await is_cancelled.wait()


async def test_requests_sent_ahead_are_not_taken_without_end() -> None:
    is_called, may_go_on, options = asyncio.Event(), asyncio.Event(), HttpServerOptions()

    async def handler(exchange: Exchange) -> None:
        is_called.set()
        await may_go_on.wait()
        await echo(exchange)

    body = b"x" * 100_000
    post = b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    async with serving(handler, options) as port, connected(port) as (reader, writer):
        writer.write(post * 200)
        await is_called.wait()
        await asyncio.sleep(0.2)  # in which all of it could be taken
        assert options.account.held < 2_000_000
        may_go_on.set()
        assert [await answer(reader) for _ in range(200)] == [b"/ " + body] * 200
        assert options.account.held == 0


async def test_a_malformed_request_sent_ahead_is_refused_in_its_turn() -> None:
    async with serving() as port, connected(port) as (reader, writer):
        writer.write(get("/1") + b"NONSENSE\r\n\r\n" + get("/never"))
        raw = await reader.read()
    assert raw.count(b"HTTP/1.1 ") == 2
    assert raw.index(b"/1 ") < raw.index(b"HTTP/1.1 400 ")


async def test_a_client_that_has_said_all_and_only_listens_is_served() -> None:
    """It is probed for whether it is still there, before the head and within the body, with what changes nothing."""
    is_probed = [asyncio.Event(), asyncio.Event()]

    async def handler(exchange: Exchange) -> None:
        await is_probed[0].wait()
        await exchange.start(200, ())
        await exchange.write(b"all the same")
        await is_probed[1].wait()
        await exchange.write(b"!")
        await exchange.finish()

    async with serving(handler) as port, connected(port) as (reader, writer):
        writer.write(GET)
        writer.write_eof()
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        is_probed[0].set()
        head = await reader.readuntil(b"all the same\r\n")
        assert head.startswith(b"HTTP/1.1 ")
        assert head.endswith(b"\r\n\r\nc\r\nall the same\r\n")
        assert await reader.readexactly(1) == b"0"
        is_probed[1].set()
        rest = await reader.read()
    assert rest.lstrip(b"0") == b"1\r\n!\r\n0\r\n\r\n"


@pytest.mark.parametrize("starts", [False, True])
async def test_a_client_that_vanishes_without_a_word_cancels_the_handler(starts: bool) -> None:
    entered, cancelled = asyncio.Event(), asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        if starts:
            await exchange.start(200, ())
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with serving(handler) as port:
        async with connected(port) as (_, writer):
            writer.write(GET)
            await entered.wait()
        await cancelled.wait()


async def test_a_client_that_ends_inside_its_body_cancels_the_handler_that_does_not_read_it() -> None:
    entered, cancelled = asyncio.Event(), asyncio.Event()

    async def handler(_exchange: Exchange) -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with serving(handler) as port, connected(port) as (_, writer):
        writer.write(b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 10\r\n\r\nabc")
        await entered.wait()
        writer.write_eof()
        await cancelled.wait()


async def test_a_body_that_nobody_reads_is_not_taken_in_without_end() -> None:
    entered = asyncio.Event()

    async def handler(_exchange: Exchange) -> None:
        entered.set()
        await asyncio.Event().wait()

    async with serving(handler) as port, connected(port) as (_, writer):
        writer.write(b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 100000000\r\n\r\n")
        await entered.wait()
        writer.write(b"x" * 50_000_000)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await writer.drain()


async def test_a_body_that_waited_goes_on_when_it_is_read() -> None:
    go_on = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        await go_on.wait()
        size = sum([len(chunk) async for chunk in exchange.body()])
        await respond(exchange, 200, str(size).encode(), b"text/plain")

    async with serving(handler) as port, connected(port) as (reader, writer):
        writer.write(b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 3000000\r\n\r\n" + b"x" * 3_000_000)
        await asyncio.sleep(0.05)  # until the server has taken in what it may
        go_on.set()
        assert await answer(reader) == b"3000000"


async def test_an_answer_before_the_end_of_the_body_arrives_and_ends_the_connection() -> None:
    async def handler(exchange: Exchange) -> None:
        await respond(exchange, 413, b"too much", b"text/plain")

    async with serving(handler) as port, connected(port) as (reader, writer):
        writer.write(b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 100000000\r\n\r\n" + b"x" * 5_000_000)
        raw = await reader.read()
    assert raw.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close\r\n" in raw
    assert raw.endswith(b"too much")


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nho"])
async def test_a_connection_without_a_whole_head_is_closed_in_time(sent: bytes) -> None:
    async with serving(options=HttpServerOptions(keepalive=0.02)) as port, connected(port) as (reader, writer):
        writer.write(sent)
        assert await reader.read() == b""


async def test_a_head_that_trickles_in_has_less_time_than_a_connection_at_rest() -> None:
    options = HttpServerOptions(keepalive=60, head_timeout=0.05)
    async with serving(options=options) as port, connected(port) as (reader, writer):
        began = time.monotonic()

        async def trickle() -> None:
            for byte in b"GET / HTTP/1.1\r\nhost: h\r\nx: " + b"a" * 10_000:
                writer.write(bytes([byte]))
                await asyncio.sleep(0.005)

        async with asyncio.TaskGroup() as group:
            trickling = group.create_task(trickle())
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)
            trickling.cancel()
        assert time.monotonic() - began < 10


async def test_a_request_under_way_may_take_as_long_as_it_likes() -> None:
    async def handler(exchange: Exchange) -> None:
        await asyncio.sleep(0.1)
        await echo(exchange)

    options = HttpServerOptions(keepalive=0.02, head_timeout=0.01)
    async with serving(handler, options) as port, connected(port) as (reader, writer):
        writer.write(GET)
        assert await answer(reader) == b"/ "


async def test_connections_over_the_limit_are_told_so() -> None:
    async with serving(options=HttpServerOptions(connections_max=1)) as port, connected(port) as (reader, writer):
        writer.write(GET)
        await answer(reader)
        async with connected(port) as (refused, _):
            assert (await refused.read()).startswith(b"HTTP/1.1 503 ")
        writer.write(GET)
        assert await answer(reader) == b"/ "


async def test_an_old_client_that_wants_to_keep_its_connection_may() -> None:
    async with serving() as port, connected(port) as (reader, writer):
        for _ in range(2):
            writer.write(b"GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            assert b"connection: keep-alive\r\n" in head
            assert await reader.readexactly(2) == b"/ "


async def test_an_offer_to_upgrade_is_served_as_if_it_were_not_there() -> None:
    async with serving() as port, connected(port) as (reader, writer):
        writer.write(
            b"POST / HTTP/1.1\r\nhost: h\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\n"
            b"http2-settings: AAMAAABkAAQAAP__\r\ncontent-length: 3\r\n\r\nabc"
        )
        assert await answer(reader) == b"/ abc"
        writer.write(get("/next"))
        assert await answer(reader) == b"/next "


async def test_a_process_short_of_room_serves_those_whose_handlers_take_what_comes() -> None:
    account = Untaken(0)
    body = b"x" * 1_000_000
    post = b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    async with serving(options=HttpServerOptions(account=account)) as port, connected(port) as (reader, writer):
        writer.write(post + post)
        assert [await answer(reader) for _ in range(2)] == [b"/ " + body] * 2
    assert account.held == 0


async def test_what_was_sent_ahead_of_an_answer_is_counted_until_it_is_taken() -> None:
    account, is_called, may_go_on = Untaken(), asyncio.Event(), asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        is_called.set()
        await may_go_on.wait()
        await echo(exchange)

    ahead = b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\nabc" * 2
    async with serving(handler, HttpServerOptions(account=account)) as port, connected(port) as (reader, writer):
        writer.write(ahead)
        await is_called.wait()
        assert account.held == 6
        may_go_on.set()
        assert [await answer(reader) for _ in range(2)] == [b"/ abc"] * 2
        assert account.held == 0


async def test_a_body_that_its_handler_never_reads_is_given_back_with_the_answer() -> None:
    account, is_answered = Untaken(), asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        await respond(exchange, 413, b"no", b"text/plain")
        is_answered.set()

    async with serving(handler, HttpServerOptions(account=account)) as port, connected(port) as (_, writer):
        writer.write(b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 9\r\n\r\nabc")
        await is_answered.wait()
        assert account.held == 0


class Kept(asyncio.Transport):
    """Keeps what is written."""

    written = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def is_closing(self) -> bool:
        return False

    def can_write_eof(self) -> bool:
        return True


async def test_an_answer_of_the_turn_in_which_its_client_stops_talking_is_written() -> None:
    """The transport closes by itself then, and takes nothing any more."""
    asked: list[Exchange] = []

    async def handler(exchange: Exchange) -> None:
        asked.append(exchange)
        await asyncio.Event().wait()

    loop = asyncio.get_running_loop()
    site = Site(handler, SystemClock(), HttpServerOptions(), loop, Deadlines(loop))
    connection, transport, other = Connection(site), Kept(), Kept()
    connection.connection_made(transport)
    connection.data_received(GET)
    await asyncio.sleep(0.01)
    site.turn.write(other, b"the first of the turn, which goes at once")
    await respond(asked[0], 200, b"ok", b"text/plain")
    assert not connection.eof_received()
    assert transport.written.endswith(b"\r\n\r\nok")
    for handling in tuple(site.handlers):
        handling.cancel()
    site.deadlines.close()
    await asyncio.sleep(0.01)
