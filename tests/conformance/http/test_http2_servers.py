"""Our HTTP server over HTTP/2: what its handlers and clients see is what they see over HTTP/1.1."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kinference.errors import ClientGone
from kinference.wire.exchange import Exchange, Handler, respond
from kinference.wire.http_server import OwnHttpServer
from kinference.wire.server_options import HttpServerOptions
from tests.conformance.http.carriers import RealClock
from tests.unit.wire.http2.client import Client, connected


@asynccontextmanager
async def serving(handler: Handler, options: HttpServerOptions | None = None) -> AsyncIterator[int]:
    server = OwnHttpServer(handler, RealClock(), options)
    port = await server.start("127.0.0.1", 0)
    try:
        yield port
    finally:
        await server.close()


@asynccontextmanager
async def talking(
    handler: Handler, options: HttpServerOptions | None = None, *, checks: bool = True
) -> AsyncIterator[Client]:
    async with serving(handler, options) as port, connected(port, checks=checks) as client:
        yield client


async def hello(exchange: Exchange) -> None:
    await respond(exchange, 200, b"hello", b"text/plain")


async def echo(exchange: Exchange) -> None:
    await respond(exchange, 200, b"".join([chunk async for chunk in exchange.body()]), b"text/plain")


async def test_a_whole_answer_has_its_length_date_and_our_name() -> None:
    async with talking(hello) as client:
        answer = await client.ask()
    assert (answer.status, answer.body, answer.ended) == ("200", b"hello", True)
    assert answer.head["content-length"] == "5"
    assert answer.head["server"] == "kinference"
    assert answer.head["date"].endswith(" GMT")
    assert "transfer-encoding" not in answer.head


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [("/v1/chat%2Fx?a=b/c%20d", "/v1/chat%2Fx", "a=b/c%20d"), ("/", "/", ""), ("//double?", "//double", "")],
)
async def test_the_target_reaches_the_handler_as_sent(target: str, path: str, query: str) -> None:
    seen: list[object] = []

    async def handler(exchange: Exchange) -> None:
        seen.append((exchange.method, exchange.path, exchange.query))
        await hello(exchange)

    async with talking(handler) as client:
        await client.ask("POST", target)
    assert seen == [("POST", path, query)]


async def test_fields_keep_their_order_and_repeats_and_the_authority_is_the_host() -> None:
    seen: list[object] = []

    async def handler(exchange: Exchange) -> None:
        seen.extend(exchange.headers)
        await hello(exchange)

    more = (("x-b", "1"), ("cookie", "a=1"), ("x-a", "two"), ("x-b", "é"), ("cookie", "b=2"))
    async with talking(handler) as client:
        await client.ask("GET", "/", *more)
    assert seen == [
        (b"host", b"h"),
        (b"x-b", b"1"),
        (b"x-a", b"two"),
        (b"x-b", "é".encode()),
        (b"cookie", b"a=1; b=2"),
    ]


async def test_the_peer_and_the_time_of_each_request_are_told() -> None:
    seen: list[tuple[str, float]] = []

    async def handler(exchange: Exchange) -> None:
        seen.append((exchange.peer, exchange.accepted_at))
        await hello(exchange)

    async with talking(handler) as client:
        await client.ask()
        between = time.monotonic()
        await client.ask()
    assert [peer for peer, _ in seen] == ["127.0.0.1"] * 2
    assert seen[0][1] <= between <= seen[1][1]


async def test_a_chunk_leaves_before_the_next_one_is_made() -> None:
    confirmed = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        await exchange.start(200, ((b"content-type", b"text/event-stream"),))
        await exchange.write(b"one")
        await confirmed.wait()
        await exchange.write(b"two")
        await exchange.finish()

    async with talking(handler) as client:
        stream_id = client.send()
        assert await client.bytes_of(stream_id, 3) == b"one"
        confirmed.set()
        assert (await client.answer(stream_id)).body == b"onetwo"


async def test_streams_are_served_beside_each_other() -> None:
    release = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        if exchange.path == "/slow":
            await release.wait()
        await respond(exchange, 200, exchange.path.encode(), b"text/plain")

    async with talking(handler) as client:
        slow = client.send("GET", "/slow")
        assert (await client.ask("GET", "/fast")).body == b"/fast"
        release.set()
        assert (await client.answer(slow)).body == b"/slow"


@pytest.mark.parametrize("size", [0, 1, 40_000])
async def test_a_body_arrives_whole(size: int) -> None:
    async with talking(echo) as client:
        assert (await client.ask("POST", body=b"x" * size)).body == b"x" * size


async def test_a_large_body_arrives_as_fast_as_its_handler_takes_it_and_no_faster() -> None:
    entered, release, taken = asyncio.Event(), asyncio.Event(), 0

    async def handler(exchange: Exchange) -> None:
        nonlocal taken
        entered.set()
        await release.wait()
        async for chunk in exchange.body():
            taken += len(chunk)
        await hello(exchange)

    total = 3_000_000
    async with talking(handler) as client:
        stream_id = client.send("POST", "/", end=False)
        await client.read()
        sent = 0
        while window := min(client.h2.local_flow_control_window(stream_id), total - sent):
            client.send_body(stream_id, b"x" * window)
            sent += window
        await entered.wait()
        assert sent < 300_000
        release.set()
        while sent < total:
            if window := min(client.h2.local_flow_control_window(stream_id), total - sent):
                client.send_body(stream_id, b"x" * window, end=sent + window == total)
                sent += window
            else:
                await client.read()
        assert (await client.answer(stream_id)).status == "200"
    assert taken == total


async def test_trailers_end_a_body_and_are_ignored() -> None:
    async with talking(echo) as client:
        stream_id = client.send("POST", "/", end=False)
        client.send_body(stream_id, b"abc")
        client.h2.send_headers(stream_id, [("x-sum", "1")], end_stream=True)
        client.flush()
        assert (await client.answer(stream_id)).body == b"abc"


async def test_a_client_that_expects_100_continue_is_told_to_go_on_when_the_body_is_wanted() -> None:
    async with talking(echo) as client:
        stream_id = client.send("POST", "/", ("expect", "100-continue"), end=False)
        while not client.answers[stream_id].interim:
            await client.read()
        client.send_body(stream_id, b"abc", end=True)
        assert (await client.answer(stream_id)).body == b"abc"


async def test_head_gets_the_fields_and_no_body() -> None:
    async with talking(hello) as client:
        answer = await client.ask("HEAD")
    assert (answer.head["content-length"], answer.body) == ("5", b"")


async def test_bytes_written_to_a_head_request_go_nowhere() -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.start(200, ())
        await exchange.write(b"unwanted")
        await exchange.finish()

    async with talking(handler) as client:
        answer = await client.ask("HEAD")
    assert (answer.status, answer.body, answer.ended) == ("200", b"", True)


async def test_fields_larger_than_a_frame_arrive_whole() -> None:
    async def handler(exchange: Exchange) -> None:
        await respond(exchange, 200, b"", b"text/plain", (b"x-long", b"a" * 40_000))

    async with talking(handler) as client:
        assert (await client.ask()).head["x-long"] == "a" * 40_000


@pytest.mark.parametrize("way", ["reset", "leave"])
async def test_a_client_that_vanishes_cancels_the_handler_which_cleans_up(way: str) -> None:
    started, cleaned = asyncio.Event(), asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        if exchange.path == "/other":
            await hello(exchange)
            return
        try:
            await exchange.start(200, ())
            await exchange.write(b"x")
            started.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.set()

    async with serving(handler) as port:
        async with connected(port) as client:
            stream_id = client.send()
            await started.wait()
            if way == "reset":
                client.reset(stream_id)
                assert (await client.ask("GET", "/other")).body == b"hello"
                await cleaned.wait()
        await cleaned.wait()


async def test_a_handler_that_aborts_resets_its_stream_goes_on_to_its_end_and_harms_no_other() -> None:
    reported = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        if exchange.path == "/other":
            await hello(exchange)
            return
        await exchange.start(200, ((b"content-length", b"9"),))
        await exchange.write(b"half")
        exchange.abort()
        with pytest.raises(ClientGone):
            await exchange.write(b"late")
        reported.set()

    async with talking(handler) as client:
        answer = await client.ask()
        assert not answer.ended
        assert answer.reset == 2
        await reported.wait()
        assert (await client.ask("GET", "/other")).body == b"hello"


async def test_a_body_that_breaks_off_is_a_client_gone() -> None:
    seen: asyncio.Future[type[BaseException]] = asyncio.get_running_loop().create_future()

    async def handler(exchange: Exchange) -> None:
        try:
            async for _ in exchange.body():
                pass
        except (ClientGone, asyncio.CancelledError) as error:
            seen.set_result(type(error))
            raise

    async with serving(handler) as port:
        async with connected(port) as client:
            stream_id = client.send("POST", "/", ("content-length", "10"), end=False)
            client.send_body(stream_id, b"abc")
            await client.read()
        assert await seen in (ClientGone, asyncio.CancelledError)


MALFORMED = (
    ((":method", "GET"), (":scheme", "http"), (":path", "/")),
    ((":method", "G ET"), (":scheme", "http"), (":authority", "h"), (":path", "/")),
    ((":method", "GET"), (":scheme", "http"), (":authority", "h"), (":path", "/a b")),
    ((":method", "GET"), (":scheme", "http"), (":authority", "h"), (":path", "/a#b")),
    ((":method", "GET"), (":scheme", "http"), (":authority", "h"), (":path", "nowhere")),
    ((":method", "GET"), (":scheme", "http"), (":authority", "h"), (":path", "/"), ("host", "other")),
    ((":method", "GET"), (":scheme", "http"), (":authority", "h"), (":path", "/"), ("x", "a\x01b")),
    ((":method", "GET"), (":scheme", "http"), (":authority", "h"), (":path", "/"), ("transfer-encoding", "chunked")),
    ((":method", "GET"), (":scheme", "http"), (":authority", "h"), (":path", "/"), ("connection", "close")),
)


@pytest.mark.parametrize("fields", MALFORMED)
async def test_a_malformed_request_is_reset_and_seen_by_no_handler(
    fields: tuple[tuple[str, str], ...], caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []
    caplog.set_level(logging.DEBUG)

    async def handler(exchange: Exchange) -> None:
        seen.append(exchange.path)
        await hello(exchange)

    async with talking(handler, checks=False) as client:
        assert (await client.answer(client.send_fields(fields))).reset == 1
        assert seen == []
        assert (await client.ask()).body == b"hello"
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (((":method", "CONNECT"), (":authority", "h")), "400"),
        (((":method", "GET"), (":scheme", "http"), (":authority", "h"), (":path", "*")), "400"),
        (
            (
                *((":method", "GET"), (":scheme", "http"), (":authority", "h"), (":path", "/")),
                *((f"x-{number}", "") for number in range(200)),
            ),
            "431",
        ),
    ],
)
async def test_a_request_that_we_do_not_take_is_refused(fields: tuple[tuple[str, str], ...], status: str) -> None:
    async with talking(hello, checks=False) as client:
        answer = await client.answer(client.send_fields(fields))
        assert (answer.status, answer.body, answer.ended) == (status, b"", True)


async def test_a_handler_that_fails_gives_500_one_log_line_and_the_connection_lives(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def handler(exchange: Exchange) -> None:
        if exchange.path == "/bad":
            raise KeyError("secret detail")
        await hello(exchange)

    async with talking(handler) as client:
        assert (await client.ask("GET", "/bad")).status == "500"
        assert (await client.ask()).body == b"hello"
    assert [record.message for record in caplog.records] == ["handler failed: GET /bad"]


async def test_a_handler_that_fails_mid_answer_resets_its_stream() -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.start(200, ())
        await exchange.write(b"half")
        raise KeyError

    async with talking(handler) as client:
        answer = await client.ask()
    assert (answer.ended, answer.reset) == (False, 2)


async def test_a_handler_that_answers_nothing_gives_500() -> None:
    async def handler(exchange: Exchange) -> None:
        pass

    async with talking(handler) as client:
        assert (await client.ask()).status == "500"


async def test_a_slow_reader_holds_its_own_writer_back_and_no_other() -> None:
    written = 0
    blocked = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        nonlocal written
        if exchange.path == "/other":
            await respond(exchange, 204, b"", b"text/plain")
            return
        await exchange.start(200, ())
        for _ in range(1000):
            asyncio.get_running_loop().call_later(0.2, blocked.set)
            await exchange.write(b"x" * 100_000)
            written += 1
        await exchange.finish()

    async with talking(handler) as client:
        client.takes = False
        stream_id = client.send()
        await client.bytes_of(stream_id, 65_535)
        await blocked.wait()
        assert written < 10
        assert (await client.ask("GET", "/other")).status == "204"


async def test_draining_finishes_what_is_in_flight_and_closes_the_idle() -> None:
    entered, release = asyncio.Event(), asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        entered.set()
        body = b"".join([chunk async for chunk in exchange.body()])
        await release.wait()
        await respond(exchange, 200, body, b"text/plain")

    server = OwnHttpServer(handler, RealClock())
    port = await server.start("127.0.0.1", 0)
    async with connected(port) as idle, connected(port) as client, asyncio.TaskGroup() as group:
        await idle.read()
        stream_id = client.send("POST", "/", end=False)
        await entered.wait()
        draining = group.create_task(server.drain(30))
        await idle.end()
        assert idle.goaways == [0]
        while not client.goaways:
            await client.read()
        client.send_body(stream_id, b"body", end=True)
        release.set()
        await draining
        await client.end()
        assert client.answers[stream_id].body == b"body"


async def test_draining_cancels_what_outlives_its_time() -> None:
    entered, cancelled = asyncio.Event(), asyncio.Event()

    async def handler(_exchange: Exchange) -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    server = OwnHttpServer(handler, RealClock())
    port = await server.start("127.0.0.1", 0)
    async with connected(port) as client:
        client.send()
        await entered.wait()
        await server.drain(0.05)
        assert cancelled.is_set()
        await client.end()
