"""What the connections of one HTTP server share, and what becomes of each request, whichever version brought it."""

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Protocol

from kinference.errors import ClientGone
from kinference.ports import Clock
from kinference.wire.connections import Connections
from kinference.wire.exchange import Exchange, Handler
from kinference.wire.http1 import answers
from kinference.wire.http1.deadlines import Deadlines
from kinference.wire.server_options import HttpServerOptions

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


class Visit(Exchange, Protocol):
    """An exchange of one of the server's connections."""

    is_over: bool
    """Whether the answer was finished or broken off, after which nobody cancels the handler."""
    is_started: bool

    def give_up(self, status: int) -> None:
        """Answer with a bare status where the head has not gone and somebody listens, else break off."""
        ...

    def break_off(self) -> None:
        """End it for a handler that was cancelled."""
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
    handlers: set[asyncio.Task[None]] = field(default_factory=set)
    date: answers.DateLine = field(default_factory=answers.DateLine)
    is_draining: bool = False
    is_closed: bool = False
    """Whether every connection has been ended. One may still come that the system had accepted before."""

    def __post_init__(self) -> None:
        options = self.options
        self.connections = Connections(options.connections_max, options.connections_per_peer_max, options.tally)

    def begin(self, exchange: Visit) -> asyncio.Task[None]:
        """Let the handler answer, in a task of its own."""
        task = self.loop.create_task(self._handle(exchange))
        self.handlers.add(task)
        task.add_done_callback(self.handlers.discard)
        return task

    async def _handle(self, exchange: Visit) -> None:
        try:
            await self.handler(exchange)
            if not exchange.is_over:
                _log.error("handler left its answer unfinished: %s %s", exchange.method, exchange.path)
                exchange.give_up(500)
        except ClientGone:
            exchange.give_up(400)
        except Exception:  # noqa: BLE001 - the root of the request's task: one bad request must not take the server down
            _log.exception("handler failed: %s %s", exchange.method, exchange.path)
            exchange.give_up(500)
        finally:
            if not exchange.is_over:  # cancelled
                exchange.break_off()
