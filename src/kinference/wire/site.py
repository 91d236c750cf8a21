"""What the connections of one HTTP server share, and what becomes of each request, whichever version brought it."""

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Protocol

from kinference.ids import Seconds
from kinference.ports import Clock
from kinference.wire.connections import Connections
from kinference.wire.exchange import Course, Handler
from kinference.wire.handling import gone_on, handled
from kinference.wire.http1 import answers
from kinference.wire.http1.deadlines import Deadlines
from kinference.wire.over import OVER
from kinference.wire.own_exchange import wake
from kinference.wire.server_options import HttpServerOptions
from kinference.wire.turn import Turn
from kinference.wire.work import Handling, OwnWork, Visit


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


class Site:
    """One listening server."""

    is_draining = False
    is_closed = False
    """Whether every connection has been ended. One may still come that the system had accepted before."""
    _rest: asyncio.Future[None] | None = None
    """Comes to its end when no request is under way."""

    def __init__(
        self,
        handler: Handler,
        clock: Clock,
        options: HttpServerOptions,
        loop: asyncio.AbstractEventLoop,
        deadlines: Deadlines,
    ) -> None:
        self.handler, self.clock, self.options, self.loop, self.deadlines = handler, clock, options, loop, deadlines
        self.connections: Connections[Guest] = Connections(
            options.connections_max, options.connections_per_peer_max, options.tally
        )
        self.handlers: set[Handling] = set()
        """Those of requests that are under way."""
        self.turn, self.date = Turn(), answers.DateLine()

    def begin(self, exchange: Visit, handling: Awaitable[None] | None = None) -> asyncio.Task[None]:
        """Let the handler answer, in a task of its own."""
        task = self.loop.create_task(handled(exchange, self.handler, handling))
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
        task = self.loop.create_task(gone_on(work, self.handler))
        task.add_done_callback(lambda _: work.end())
        return task

    def leave(self, handling: Handling) -> None:
        """It is over."""
        self.handlers.discard(handling)
        if self._rest is not None and not self.handlers:
            wake(self._rest)

    def wait_idle(self, patience: Seconds) -> Awaitable[object]:
        """Wait until no request is under way, for so long."""
        if not self.handlers:
            return OVER
        if self._rest is None or self._rest.done():
            self._rest = self.loop.create_future()
        return asyncio.wait((self._rest,), timeout=patience)
