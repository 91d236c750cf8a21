"""What the connections of one HTTP server share, and what becomes of each request, whichever version brought it."""

import asyncio
import logging
from collections.abc import Awaitable, Coroutine
from dataclasses import dataclass, field
from typing import Protocol

from kinference.errors import ClientGone
from kinference.ids import Seconds
from kinference.ports import Clock
from kinference.wire.connections import Connections
from kinference.wire.exchange import Course, Handler
from kinference.wire.http1 import answers
from kinference.wire.http1.deadlines import Deadlines
from kinference.wire.own_exchange import wake
from kinference.wire.server_options import HttpServerOptions
from kinference.wire.turn import Turn
from kinference.wire.work import Handling, OwnWork, Visit, finish

_log = logging.getLogger(__name__)


class Guest(Protocol):
    """One connection, to its server."""

    @property
    def may_ask_again(self) -> bool:
        """Whether it is kept for a request that its client may have sent before it could know of the end."""
        ...

    def end_if_idle(self) -> None:
        """Close, unless a request is under way: then with its answer."""
        ...

    def close(self) -> None:
        """Close when what was written has left, whatever is under way."""
        ...

    def abort(self) -> None:
        """Close at once."""
        ...


@dataclass(slots=True)
class Site:
    """One listening server."""

    handler: Handler
    clock: Clock
    options: HttpServerOptions
    loop: asyncio.AbstractEventLoop
    deadlines: Deadlines
    connections: Connections[Guest] = field(init=False)
    handlers: set[Handling] = field(default_factory=set)
    """Those of requests that are under way."""
    turn: Turn = field(default_factory=Turn)
    date: answers.DateLine = field(default_factory=answers.DateLine)
    is_draining: bool = False
    is_closed: bool = False
    """Whether every connection has been ended. One may still come that the system had accepted before."""
    _rest: asyncio.Future[None] | None = None
    """Comes to its end when no request is under way."""

    def __post_init__(self) -> None:
        options = self.options
        self.connections = Connections(options.connections_max, options.connections_per_peer_max, options.tally)

    def begin(self, exchange: Visit, handling: Awaitable[None] | None = None) -> asyncio.Task[None]:
        """Let the handler answer, in a task of its own."""
        task = self.loop.create_task(self._handle(exchange, handling))
        self.handlers.add(task)
        task.add_done_callback(self.leave)
        return task

    def set_out(self, exchange: Visit) -> Handling:
        """Let the handler answer: at once as far as it goes without waiting, and in a task from there on."""
        handling = self.handler(exchange)
        if not isinstance(handling, Course):
            task = self.begin(exchange, handling)
            if isinstance(handling, Coroutine):
                task.add_done_callback(lambda _: handling.close())  # the task may be cancelled before it begins
            return task
        work = OwnWork(self, exchange, handling)
        self.handlers.add(work)
        work.begin()
        return work

    def attend(self, work: OwnWork) -> asyncio.Task[None]:
        task = self.loop.create_task(self._go_on(work))
        task.add_done_callback(lambda _: work.end())
        return task

    def leave(self, handling: Handling) -> None:
        """It is over."""
        self.handlers.discard(handling)
        if self._rest is not None and not self.handlers:
            wake(self._rest)

    async def wait_idle(self, patience: Seconds) -> None:
        """Wait until no request is under way, for so long."""
        if self.handlers:
            if self._rest is None or self._rest.done():
                self._rest = self.loop.create_future()
            await asyncio.wait((self._rest,), timeout=patience)

    async def _go_on(self, work: OwnWork) -> None:
        work.run()
        await self._handle(work.exchange, work.course)

    async def _handle(self, exchange: Visit, handling: Awaitable[None] | None) -> None:
        try:
            await (handling or self.handler(exchange))
            finish(exchange)
        except ClientGone:
            exchange.give_up(400)
        except Exception:  # noqa: BLE001 - the root of the request's task: one bad request must not take the server down
            _log.exception("handler failed: %s %s", exchange.method, exchange.path)
            exchange.give_up(500)
        finally:
            if not exchange.is_over:  # cancelled
                exchange.break_off()
