"""One client's HTTP/2 connection: its limits and its end; what handlers and clients see is for the conformance tests."""

import asyncio

import pytest

from kinference.wire.exchange import Exchange, respond
from kinference.wire.http2.ingress import session_limits
from kinference.wire.server_options import HttpServerOptions
from tests.unit.wire.http1.serving import echo, serving
from tests.unit.wire.http2.client import connected


def test_the_port_decides_how_much_a_head_may_hold() -> None:
    limits = session_limits(options := HttpServerOptions(field_bytes_max=1000, head_timeout=3))
    assert limits.http2.tally is options.tally
    assert (limits.http2.header_list_bytes_max, limits.http2.header_block_bytes_max) == (1000, 1000)
    assert limits.handshake_timeout == 3


async def test_a_head_over_the_limit_breaks_its_stream_alone() -> None:
    async with serving(echo, HttpServerOptions(field_bytes_max=2000)) as port, connected(port) as client:
        assert (await client.ask("GET", "/", ("x-long", "a" * 1990))).reset == 11
        assert (await client.ask("GET", "/a")).body == b"/a "


async def test_a_connection_without_requests_is_closed_with_a_goodbye() -> None:
    options = HttpServerOptions(keepalive=0.02, head_timeout=0.02)
    async with serving(echo, options) as port, connected(port) as client:
        await client.end()
        assert client.goaways == [0]


async def test_an_unread_body_is_no_reason_to_break_the_answer_off() -> None:
    async def handler(exchange: Exchange) -> None:
        await respond(exchange, 413, b"no", b"text/plain")

    async with serving(handler) as port, connected(port) as client:
        stream_id = client.send("POST", "/", end=False)
        client.send_body(stream_id, b"x" * 10_000)
        answer = await client.answer(stream_id)
        assert (answer.status, answer.body, answer.ended) == ("413", b"no", True)
        while answer.reset is None:
            await client.read()
        assert answer.reset == 0


async def test_a_body_of_another_length_than_declared_cancels_the_handler() -> None:
    cancelled = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with serving(handler) as port, connected(port) as client:
        stream_id = client.send("POST", "/", ("content-length", "3"), end=False)
        await client.read()
        client.send_body(stream_id, b"four", end=True)
        assert (await client.answer(stream_id)).reset == 1
        await cancelled.wait()


async def test_connections_beyond_the_limit_are_broken_off() -> None:
    async with serving(echo, HttpServerOptions(connections_max=1)) as port, connected(port) as first:
        assert (await first.ask("GET", "/1")).body == b"/1 "
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert (await reader.read()).startswith(b"HTTP/1.1 503 ")
        writer.close()


@pytest.mark.parametrize("path", ["*", "/"])
async def test_a_request_taken_back_in_the_read_that_brought_it_harms_no_other(path: str) -> None:
    async with serving(echo) as port, connected(port) as client:
        fields = ((":method", "GET"), (":scheme", "http"), (":authority", "h"), (":path", path))
        stream_id = client.h2.get_next_available_stream_id()
        client.h2.send_headers(stream_id, list(fields), end_stream=True)
        client.h2.reset_stream(stream_id, 8)
        client.flush()
        assert (await client.ask("GET", "/a")).body == b"/a "
