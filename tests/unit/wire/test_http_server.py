"""Where the server listens, and how it stops."""

import asyncio
from pathlib import Path

from kinference.wire.exchange import Exchange, Handler
from kinference.wire.http_server import OwnHttpServer
from tests.unit.wire.http1.serving import GET, RealClock, answer, connected, echo


async def test_a_unix_socket_is_served(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    server = OwnHttpServer(echo, RealClock())
    await server.start_unix(path)
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(GET)
    assert await answer(reader) == b"/ "
    writer.close()
    await server.close()


async def test_ipv6_is_served_and_the_peer_told() -> None:
    peers: list[str] = []

    async def handler(exchange: Exchange) -> None:
        peers.append(exchange.peer)
        await echo(exchange)

    server = OwnHttpServer(handler, RealClock())
    port = await server.start("::1", 0)
    reader, writer = await asyncio.open_connection("::1", port)
    writer.write(GET)
    assert await answer(reader) == b"/ "
    writer.close()
    await server.close()
    assert peers == ["::1"]


async def test_a_handler_that_is_cut_short_after_its_head_leaves_no_whole_answer() -> None:
    started = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        await exchange.start(200, ())
        started.set()
        await asyncio.Event().wait()

    server = OwnHttpServer(handler, RealClock())
    port = await server.start("127.0.0.1", 0)
    async with connected(port) as (reader, writer):
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        await started.wait()
        await server.drain(0.01)
        try:
            raw = await reader.read()
        except ConnectionResetError:
            return
    raise AssertionError(f"taken for complete: {raw!r}")


def halfway(begun: asyncio.Event, goes_on: asyncio.Event) -> Handler:
    async def handler(exchange: Exchange) -> None:
        await exchange.start(200, ((b"content-length", b"2"),))
        begun.set()
        await goes_on.wait()
        await exchange.write(b"ok")
        await exchange.finish()

    return handler


async def test_a_client_that_its_last_answer_did_not_tell_of_the_end_may_ask_once_more() -> None:
    begun, goes_on = asyncio.Event(), asyncio.Event()
    server = OwnHttpServer(halfway(begun, goes_on), RealClock())
    port = await server.start("127.0.0.1", 0)
    async with connected(port) as (reader, writer), asyncio.TaskGroup() as group:
        writer.write(b"GET /first HTTP/1.1\r\nhost: h\r\n\r\n")
        await begun.wait()
        draining = group.create_task(server.drain(30))
        await asyncio.sleep(0)
        goes_on.set()
        assert b"connection: close" not in await reader.readuntil(b"\r\n\r\nok")
        writer.write(b"GET /second HTTP/1.1\r\nhost: h\r\n\r\n")
        answer = await reader.read()
        await draining
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"connection: close" in answer
    assert answer.endswith(b"\r\n\r\nok")


async def test_a_client_that_has_just_had_an_answer_may_ask_once_more() -> None:
    server = OwnHttpServer(echo, RealClock())
    port = await server.start("127.0.0.1", 0)
    async with connected(port) as (reader, writer), asyncio.TaskGroup() as group:
        for last in (False, True):
            writer.write(b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n\r\nhello")
            answer = await reader.readuntil(b"hello")
            assert (b"connection: close" in answer) is last
            if not last:
                group.create_task(server.drain(30))
                await asyncio.sleep(0)
        assert await reader.read() == b""


async def test_who_asks_no_more_holds_a_drain_up_for_the_last_call_alone() -> None:
    begun, goes_on = asyncio.Event(), asyncio.Event()
    server = OwnHttpServer(halfway(begun, goes_on), RealClock())
    port = await server.start("127.0.0.1", 0)
    async with connected(port) as (reader, writer), asyncio.TaskGroup() as group:
        writer.write(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n")
        await begun.wait()
        group.create_task(asyncio.wait_for(server.drain(3600), 60))
        await asyncio.sleep(0)
        goes_on.set()
        assert (await reader.read()).endswith(b"ok")


async def test_a_server_stops_twice_without_harm_and_before_it_starts() -> None:
    server = OwnHttpServer(echo, RealClock())
    await server.drain(1)
    await server.start("127.0.0.1", 0)
    await server.close()
    await server.close()


async def test_a_handler_that_loses_its_cancellation_is_cancelled_again() -> None:
    began, lost = asyncio.Event(), asyncio.Event()

    async def handler(_: Exchange) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            lost.set()
        await asyncio.Event().wait()

    server = OwnHttpServer(handler, RealClock())
    port = await server.start("127.0.0.1", 0)
    async with connected(port) as (_, writer):
        writer.write(GET)
        await began.wait()
        async with asyncio.timeout(10):
            await server.close()
    assert lost.is_set()
