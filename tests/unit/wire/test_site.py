"""The requests of one server: how each sets out, and that the server waits for the last."""

import asyncio
from collections.abc import AsyncIterator, Sequence

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
    is_gone = False
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
