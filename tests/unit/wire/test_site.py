"""What becomes of a request when its handler ends, however it ends."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence

import pytest

from kinference.errors import ClientGone
from kinference.ports import Headers
from kinference.runtime.clock import SystemClock
from kinference.wire.exchange import Exchange, Handler
from kinference.wire.http1.deadlines import Deadlines
from kinference.wire.server_options import HttpServerOptions
from kinference.wire.site import Site


class NotedExchange:
    """An exchange that notes how it ended."""

    method, path, query, peer, accepted_at = "GET", "/p", "", "peer", 0.0
    headers: Headers = ()
    peer_names: Sequence[str] = ()

    def __init__(self) -> None:
        self.is_over = self.is_started = False
        self.ends: list[str] = []

    def arrived(self) -> bytes | None:
        return None

    async def body(self) -> AsyncIterator[bytes]:
        yield b""

    async def start(self, status: int, headers: Headers) -> None: ...
    def send(self, chunk: bytes) -> bool:
        return True

    async def drained(self) -> None: ...
    async def write(self, chunk: bytes) -> None: ...
    async def finish(self) -> None:
        self.is_over = True

    def abort(self) -> None:
        self.is_over = True

    def give_up(self, status: int) -> None:
        self.is_over = True
        self.ends.append(str(status))

    def break_off(self) -> None:
        self.ends.append("broken off")


class Guest:
    may_ask_again = False

    def end_if_idle(self) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...


def site_for(handler: Handler, options: HttpServerOptions | None = None) -> Site:
    loop = asyncio.get_running_loop()
    return Site(handler, SystemClock(), options or HttpServerOptions(), loop, Deadlines(loop))


async def answering(exchange: Exchange) -> None:
    await exchange.finish()


async def leaving(_exchange: Exchange) -> None:
    return


async def losing(_exchange: Exchange) -> None:
    raise ClientGone("the request's body broke off")


async def failing(_exchange: Exchange) -> None:
    raise KeyError("detail")


@pytest.mark.parametrize(
    ("handler", "ends", "logged"),
    [
        (answering, [], []),
        (leaving, ["500"], ["handler left its answer unfinished: GET /p"]),
        (losing, ["400"], []),
        (failing, ["500"], ["handler failed: GET /p"]),
    ],
)
async def test_every_end_of_a_handler_is_an_end_of_its_answer(
    handler: Handler, ends: list[str], logged: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    exchange, site = NotedExchange(), site_for(handler)
    with caplog.at_level(logging.ERROR):
        await site.begin(exchange)
    assert exchange.ends == ends
    assert [record.message for record in caplog.records] == logged
    assert not site.handlers


async def test_an_answer_whose_handler_was_cancelled_is_broken_off() -> None:
    async def waiting(_exchange: Exchange) -> None:
        await asyncio.Event().wait()

    exchange = NotedExchange()
    task = site_for(waiting).begin(exchange)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert exchange.ends == ["broken off"]


async def test_a_coroutine_whose_task_is_cancelled_before_it_begins_is_closed() -> None:
    site = site_for(answering)
    site.set_out(NotedExchange()).cancel()
    await asyncio.wait_for(site.wait_idle(10), 10)
    assert not site.handlers


async def test_a_server_waits_for_its_last_request_and_no_longer() -> None:
    may_end = asyncio.Event()

    async def waiting(exchange: Exchange) -> None:
        await may_end.wait()
        await exchange.finish()

    site = site_for(waiting)
    site.begin(NotedExchange())
    site.begin(NotedExchange())
    await site.wait_idle(0.01)
    assert len(site.handlers) == 2
    may_end.set()
    await asyncio.wait_for(site.wait_idle(10), 10)
    assert not site.handlers
    await site.wait_idle(10)
