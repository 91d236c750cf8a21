"""The HTTP server carriers, seen from raw sockets: one behaviour, whichever serves."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from kinference.errors import ClientGone
from kinference.wire.exchange import Exchange, Handler, respond
from kinference.wire.server_options import HttpServerOptions
from tests.conformance.http.carriers import HttpServer, Serving


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def ask(port: int, request: bytes) -> bytes:
    """Everything that comes back on one connection for one request that ends it."""
    async with connected(port) as (reader, writer):
        writer.write(request)
        return await reader.read()


async def head(reader: asyncio.StreamReader) -> bytes:
    return await reader.readuntil(b"\r\n\r\n")


def close_request(method: str = "GET", target: str = "/", extra: str = "", body: bytes = b"") -> bytes:
    length = f"content-length: {len(body)}\r\n" if body else ""
    return f"{method} {target} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n{length}{extra}\r\n".encode() + body


async def hello(exchange: Exchange) -> None:
    await respond(exchange, 200, b"hello", b"text/plain")


def echo_into(seen: list[object], take: Callable[[Exchange], object]) -> Handler:
    async def handler(exchange: Exchange) -> None:
        seen.append(take(exchange))
        await hello(exchange)

    return handler


async def test_a_whole_answer_has_its_length_date_and_no_trace_of_the_library(serving: Serving) -> None:
    async with serving(hello) as port:
        answer = await ask(port, close_request())
    lines = answer.lower()
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\nhello")
    assert b"content-length: 5" in lines
    assert b"\r\ndate: " in lines
    assert b"aiohttp" not in lines
    assert b"python" not in lines


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/v1/chat%2Fx?a=b/c%20d", "/v1/chat%2Fx", "a=b/c%20d"),
        ("/", "/", ""),
        ("//double?", "//double", ""),
        ("http://elsewhere:80/v1?q", "/v1", "q"),
        ("http://elsewhere", "/", ""),
    ],
)
async def test_the_target_reaches_the_handler_as_sent(serving: Serving, target: str, path: str, query: str) -> None:
    seen: list[object] = []
    async with serving(echo_into(seen, lambda e: (e.method, e.path, e.query))) as port:
        await ask(port, close_request("POST", target))
    assert seen == [("POST", path, query)]


async def test_fields_keep_their_order_and_repeats_and_lose_only_their_case(serving: Serving) -> None:
    seen: list[object] = []
    async with serving(echo_into(seen, lambda e: [h for h in e.headers if h[0].startswith(b"x-")])) as port:
        await ask(port, close_request(extra="X-B: 1\r\nx-a:  two \r\nX-B: \xe9\r\n"))
    assert seen == [[(b"x-b", b"1"), (b"x-a", b"two"), (b"x-b", "\xe9".encode())]]


async def test_the_peer_and_the_time_of_the_first_byte_are_told(serving: Serving) -> None:
    seen: list[object] = []
    before = time.monotonic()
    async with serving(echo_into(seen, lambda e: (e.peer, before <= e.accepted_at <= time.monotonic()))) as port:
        await ask(port, close_request())
    assert seen == [("127.0.0.1", True)]


async def test_a_request_counts_from_its_own_first_byte_not_from_the_one_before_on_the_connection(
    serving: Serving,
) -> None:
    times: list[float] = []

    async def handler(exchange: Exchange) -> None:
        times.append(exchange.accepted_at)
        await hello(exchange)

    async with serving(handler) as port, connected(port) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n")
        await reader.readuntil(b"hello")
        between = time.monotonic()
        writer.write(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n")
        await reader.readuntil(b"hello")
    assert times[0] <= between <= times[1]


async def test_a_chunk_leaves_before_the_next_one_is_made(serving: Serving) -> None:
    confirmed = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        await exchange.start(200, ((b"content-type", b"text/event-stream"),))
        await exchange.write(b"one")
        await confirmed.wait()
        await exchange.write(b"two")
        await exchange.finish()

    async with serving(handler) as port, connected(port) as (reader, writer):
        writer.write(close_request())
        assert b"transfer-encoding: chunked" in (await head(reader)).lower()
        assert await reader.readexactly(8) == b"3\r\none\r\n"
        confirmed.set()
        assert await reader.read() == b"3\r\ntwo\r\n0\r\n\r\n"


async def test_a_body_arrives_whole_and_without_its_chunked_framing(serving: Serving) -> None:
    async def echo(exchange: Exchange) -> None:
        body = b"".join([chunk async for chunk in exchange.body()])
        await respond(exchange, 200, body, b"text/plain")

    async with serving(echo) as port:
        raw = await ask(
            port, close_request("POST", extra="transfer-encoding: chunked\r\n") + b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
        )
        large = bytes(range(256)) * 20_000
        plain = await ask(port, close_request("POST", body=large))
    assert raw.endswith(b"\r\n\r\nabc")
    assert plain.partition(b"\r\n\r\n")[2] == large


async def test_a_content_coding_is_left_alone(serving: Serving) -> None:
    async def echo(exchange: Exchange) -> None:
        await respond(exchange, 200, b"".join([c async for c in exchange.body()]), b"text/plain")

    async with serving(echo) as port:
        answer = await ask(port, close_request("POST", extra="content-encoding: gzip\r\n", body=b"not gzip"))
    assert answer.endswith(b"not gzip")


async def test_a_client_that_expects_100_continue_is_told_to_go_on_when_the_body_is_wanted(serving: Serving) -> None:
    async def echo(exchange: Exchange) -> None:
        await respond(exchange, 200, b"".join([c async for c in exchange.body()]), b"text/plain")

    async with serving(echo) as port, connected(port) as (reader, writer):
        writer.write(close_request("POST", extra="content-length: 3\r\nexpect: 100-continue\r\n"))
        assert await head(reader) == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"abc")
        assert (await reader.read()).endswith(b"abc")


async def test_head_gets_the_fields_and_no_body(serving: Serving) -> None:
    async with serving(hello) as port:
        answer = await ask(port, close_request("HEAD"))
    assert b"content-length: 5" in answer.lower()
    assert answer.endswith(b"\r\n\r\n")


async def test_bytes_written_to_a_head_request_go_nowhere(serving: Serving) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.start(200, ())
        await exchange.write(b"unwanted")
        await exchange.finish()

    async with serving(handler) as port:
        assert (await ask(port, close_request("HEAD"))).endswith(b"\r\n\r\n")


async def test_one_connection_serves_request_after_request(serving: Serving) -> None:
    async with serving(hello) as port, connected(port) as (reader, writer):
        for _ in range(3):
            writer.write(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n")
            assert (await reader.readuntil(b"hello")).startswith(b"HTTP/1.1 200")


async def test_an_http_1_0_answer_without_a_length_ends_with_its_connection(serving: Serving) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.start(200, ())
        await exchange.write(b"old")
        await exchange.finish()

    async with serving(handler) as port:
        answer = await ask(port, b"GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n")
    assert answer.endswith(b"\r\n\r\nold")
    assert b"chunked" not in answer


async def test_a_client_that_vanishes_cancels_the_handler_which_cleans_up(serving: Serving) -> None:
    started, cleaned = asyncio.Event(), asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        try:
            await exchange.start(200, ())
            await exchange.write(b"x")
            started.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.set()

    async with serving(handler) as port:
        async with connected(port) as (_, writer):
            writer.write(close_request())
            await started.wait()
        await cleaned.wait()


async def test_a_client_that_leaves_after_the_answer_cuts_nothing_short(serving: Serving) -> None:
    gone, reported = asyncio.Event(), asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        await hello(exchange)
        await gone.wait()
        await asyncio.sleep(0)
        reported.set()

    async with serving(handler) as port:
        async with connected(port) as (reader, writer):
            writer.write(close_request())
            await reader.readuntil(b"hello")
        async with connected(port):
            gone.set()
        await reported.wait()


async def test_a_handler_that_aborts_goes_on_to_its_end(serving: Serving) -> None:
    reported = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        await exchange.start(200, ())
        exchange.abort()
        with pytest.raises(ClientGone):
            await exchange.write(b"late")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        reported.set()

    async with serving(handler) as port:
        async with connected(port) as (reader, writer):
            writer.write(close_request())
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await reader.readuntil(b"0\r\n\r\n")
        await reported.wait()


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("fields", [(), ((b"content-length", b"9"),)])
async def test_an_aborted_answer_cannot_be_taken_for_a_complete_one(
    serving: Serving, version: str, fields: tuple[tuple[bytes, bytes], ...]
) -> None:
    taken = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        await exchange.start(200, fields)
        await exchange.write(b"half")
        await taken.wait()
        exchange.abort()

    async with serving(handler) as port, connected(port) as (reader, writer):
        writer.write(f"GET / HTTP/{version}\r\nhost: h\r\n\r\n".encode())
        await reader.readuntil(b"half")
        taken.set()
        with pytest.raises(ConnectionResetError):
            await reader.read()


async def test_a_body_that_breaks_off_is_a_client_gone(serving: Serving) -> None:
    seen: asyncio.Future[type[BaseException]] = asyncio.get_running_loop().create_future()

    async def handler(exchange: Exchange) -> None:
        try:
            async for _ in exchange.body():
                pass
        except (ClientGone, asyncio.CancelledError) as error:
            seen.set_result(type(error))
            raise

    async with serving(handler) as port:
        async with connected(port) as (_, writer):
            writer.write(close_request("POST", extra="content-length: 10\r\n") + b"abc")
            await writer.drain()
        assert await seen in (ClientGone, asyncio.CancelledError)


async def test_a_malformed_chunk_in_a_body_gets_400(serving: Serving) -> None:
    async def handler(exchange: Exchange) -> None:
        async for _ in exchange.body():
            pass

    async with serving(handler) as port:
        answer = await ask(port, close_request("POST", extra="transfer-encoding: chunked\r\n") + b"zz\r\nabc\r\n")
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 "))


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"NOT HTTP\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost h\r\n\r\n",
        close_request("POST", extra="content-length: 1\r\ntransfer-encoding: chunked\r\n") + b"0\r\n\r\n",
        close_request("POST", extra="content-length: 1\r\ncontent-length: 2\r\n") + b"ab",
        close_request("POST", extra="transfer-encoding: xchunked\r\n") + b"0\r\n\r\n",
    ],
)
async def test_a_malformed_request_gets_400_and_no_stack_trace(
    serving: Serving, request_bytes: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[object] = []
    caplog.set_level(logging.DEBUG)
    async with serving(echo_into(seen, lambda e: e.path)) as port:
        answer = await ask(port, request_bytes)
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 "))
    assert answer.endswith(b"malformed request")
    assert seen == []
    assert "Traceback" not in caplog.text


async def test_a_head_over_the_limit_gets_431(serving: Serving) -> None:
    async with serving(hello, HttpServerOptions(field_bytes_max=1000)) as port:
        answer = await ask(port, close_request(extra=f"x-long: {'a' * 2000}\r\n"))
    assert b" 431 " in answer.partition(b"\r\n")[0]


async def test_a_handler_that_fails_gives_500_one_log_line_and_the_server_lives(
    serving: Serving,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def handler(exchange: Exchange) -> None:
        if exchange.path == "/bad":
            raise KeyError("secret detail")
        await hello(exchange)

    async with serving(handler) as port:
        answer = await ask(port, close_request(target="/bad"))
        assert (await ask(port, close_request())).endswith(b"hello")
    assert answer.startswith(b"HTTP/1.1 500 ")
    assert b"secret" not in answer
    assert [record.message for record in caplog.records] == ["handler failed: GET /bad"]


async def test_a_handler_that_fails_mid_answer_breaks_the_connection(serving: Serving) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.start(200, ())
        await exchange.write(b"half")
        raise KeyError

    async with serving(handler) as port, connected(port) as (reader, writer):
        writer.write(close_request())
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readuntil(b"0\r\n\r\n")


async def test_a_handler_that_answers_nothing_gives_500(serving: Serving) -> None:
    async def handler(exchange: Exchange) -> None:
        pass

    async with serving(handler) as port:
        assert (await ask(port, close_request())).startswith(b"HTTP/1.1 500 ")


async def test_a_slow_reader_holds_the_writer_back(serving: Serving) -> None:
    written = 0
    blocked = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        nonlocal written
        await exchange.start(200, ())
        for _ in range(1000):
            asyncio.get_running_loop().call_later(0.2, blocked.set)
            await exchange.write(b"x" * 100_000)
            written += 1
        await exchange.finish()

    async with serving(handler) as port, connected(port) as (_, writer):
        writer.write(close_request())
        await blocked.wait()
        assert written < 1000


async def test_a_port_in_use_is_an_os_error(serving: Serving, make_server: Callable[[Handler], HttpServer]) -> None:
    async with serving(hello) as port:
        second = make_server(hello)
        with pytest.raises(OSError, match="address already in use"):
            await second.start("127.0.0.1", port)


async def test_draining_finishes_what_is_in_flight_refuses_the_new_and_closes_the_idle(
    make_server: Callable[[Handler], HttpServer],
) -> None:
    entered, release = asyncio.Event(), asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        entered.set()
        body = b"".join([chunk async for chunk in exchange.body()])
        await release.wait()
        await respond(exchange, 200, body, b"text/plain")

    server = make_server(handler)
    port = await server.start("127.0.0.1", 0)
    async with connected(port) as (idle, _), connected(port) as (reader, writer), asyncio.TaskGroup() as group:
        writer.write(b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 4\r\n\r\nab")
        await entered.wait()
        draining = group.create_task(server.drain(30))
        assert await idle.read() == b""
        with pytest.raises(OSError, match=r".*"):
            await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"cd")
        release.set()
        answer = await reader.read()
        await draining
    assert answer.endswith(b"\r\n\r\nabcd")
    assert b"connection: close" in answer.lower()


async def test_draining_cancels_what_outlives_its_time(make_server: Callable[[Handler], HttpServer]) -> None:
    entered, cancelled = asyncio.Event(), asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    server = make_server(handler)
    port = await server.start("127.0.0.1", 0)
    async with connected(port) as (reader, writer):
        writer.write(close_request())
        await entered.wait()
        await server.drain(0.01)
        assert cancelled.is_set()
        assert await reader.read() == b""


async def test_closing_a_server_that_never_started_is_harmless(make_server: Callable[[Handler], HttpServer]) -> None:
    server = make_server(hello)
    await server.drain(1)
    await server.close()
