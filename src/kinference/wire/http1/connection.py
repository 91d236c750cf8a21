"""One client's connection: bytes to requests, one handler for each in turn, and its answers back.

Requests that were sent ahead wait until the answers before theirs are complete. A client that closes only its sending
side is served; whether it did that or vanished shows when something is written to it, so that is done on purpose.
"""

import asyncio
import logging
import struct
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from socket import SO_LINGER, SOL_SOCKET
from typing import cast

from kinference.errors import ClientGone
from kinference.ids import Seconds
from kinference.ports import Clock
from kinference.wire.exchange import Handler
from kinference.wire.http1 import answers
from kinference.wire.http1.deadlines import NEVER, Deadlines
from kinference.wire.http1.exchange import Http1Exchange
from kinference.wire.http1.requests import End, Event, Malformed, RequestHead, RequestReader
from kinference.wire.server_options import HttpServerOptions

_log = logging.getLogger(__name__)

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_LINGER: Seconds = 2.0
"""How long a client may go on sending after an answer that ends the connection: closing on unread bytes would reset it,
and the answer might be lost."""
_FIRST_PROBE: Seconds = 0.02
_PROBES_MAX = 8
_GATHERED_MAX = 64 * 1024
"""Bytes to write that may wait for the end of the event loop's round."""
_BUSY = Malformed(503, "too many connections")


@dataclass(slots=True)
class Site:
    """What the connections of one server share."""

    handler: Handler
    clock: Clock
    options: HttpServerOptions
    loop: asyncio.AbstractEventLoop
    deadlines: Deadlines
    connections: "set[Connection]" = field(default_factory=set)
    handlers: set[asyncio.Task[None]] = field(default_factory=set)
    date: answers.DateLine = field(default_factory=answers.DateLine)
    is_draining: bool = False
    emptied: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the last connection has gone while draining."""

    async def wait_empty(self, patience: Seconds) -> None:
        """Wait until no connection is left, for so long."""
        if self.connections:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self.emptied.wait()

    def forget(self, connection: "Connection") -> None:
        """A connection is gone."""
        self.connections.discard(connection)
        self.deadlines.forget(connection)
        if self.is_draining and not self.connections:
            self.emptied.set()


class Connection(asyncio.Protocol):
    """One connection, from accept to close."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._reader = RequestReader(site.options)
        self._transport: asyncio.Transport | None = None
        self._exchange: Http1Exchange | None = None
        self._handler: asyncio.Task[None] | None = None
        self._ahead: deque[Event] = deque()
        """Of requests sent before the answer to an earlier one was complete."""
        self._first_byte_at: Seconds | None = None
        self._outgoing: list[bytes] = []
        self._outgoing_bytes = 0
        self._drains: list[asyncio.Future[None]] = []
        self._is_half_closed = False
        self._is_ending = False
        """Whether what still comes in is thrown away."""
        self._is_holding = False
        self.is_congested = False
        self.is_lost = False
        self.peer = ""
        self.deadline = NEVER

    # --- the transport's calls -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        site = self._site
        self._transport = transport = cast("asyncio.Transport", transport)  # uvloop's has no such base class
        name = transport.get_extra_info("peername")
        self.peer = name[0] if isinstance(name, tuple) else ""
        site.connections.add(self)
        site.deadlines.watch(self)
        site.deadlines.give(self, site.options.keepalive)
        if len(site.connections) > site.options.connections_max:
            self._refuse(_BUSY)

    def data_received(self, data: bytes) -> None:
        if self._is_ending:
            return
        if self._first_byte_at is None:
            self._first_byte_at = self._site.clock.now()
        for event in self._reader.feed(data):
            self._take(event)
        if self._exchange is None and self._reader.is_within_head:
            self._limit_head()

    def _limit_head(self) -> None:
        if self.deadline > self._site.loop.time() + self._site.options.head_timeout:
            self._site.deadlines.give(self, self._site.options.head_timeout)

    def eof_received(self) -> bool:
        """Whether the connection stays open for writing."""
        if self._is_ending or self._exchange is None or not self._exchange.is_received:
            return False
        self._is_half_closed = True
        self._probe(_FIRST_PROBE, _PROBES_MAX)
        return True

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - how it was lost changes nothing
        self.is_lost = True
        self._site.forget(self)
        self.resume_writing()
        self._ahead.clear()
        exchange, self._exchange = self._exchange, None
        if exchange is not None and not exchange.is_over:
            exchange.break_body()
            assert self._handler is not None, "each exchange has a handler"
            self._handler.cancel()

    def pause_writing(self) -> None:
        self.is_congested = True

    def resume_writing(self) -> None:
        self.is_congested = False
        drains, self._drains = self._drains, []
        for drain in drains:
            if not drain.done():
                drain.set_result(None)

    def expire(self) -> None:
        """No head came in time, or a client that was told of the end goes on."""
        self.close()

    # --- requests --------------------------------------------------------------------------------

    def _take(self, event: Event) -> None:
        if self._ahead or self._has_whole_request():
            self._ahead.append(event)
            self.hold_reading()
        else:
            self._act(event)

    def _has_whole_request(self) -> bool:
        return self._exchange is not None and self._exchange.is_received

    def _is_idle(self) -> bool:
        return self._exchange is None

    def _act(self, event: Event) -> None:
        exchange = self._exchange
        if isinstance(event, RequestHead):
            self._begin(event)
        elif isinstance(event, Malformed):
            self._refuse(event)
        elif exchange is not None and isinstance(event, bytes):
            exchange.receive(event)
        elif exchange is not None and event is End.OF_REQUEST:
            exchange.end_body()

    def _begin(self, head: RequestHead) -> None:
        site, began = self._site, self._first_byte_at
        self.deadline = NEVER
        self._exchange = exchange = Http1Exchange(self, head, site.clock.now() if began is None else began)
        self._handler = task = site.loop.create_task(self._handle(exchange))
        site.handlers.add(task)
        task.add_done_callback(site.handlers.discard)

    async def _handle(self, exchange: Http1Exchange) -> None:
        try:
            await self._site.handler(exchange)
            if not exchange.is_over:
                _log.error("handler left its answer unfinished: %s %s", exchange.method, exchange.path)
                await self._give_up(exchange, 500)
        except ClientGone:
            await self._give_up(exchange, 400)
        except Exception:  # noqa: BLE001 - the root of the request's task: one bad request must not take the server down
            _log.exception("handler failed: %s %s", exchange.method, exchange.path)
            await self._give_up(exchange, 500)
        finally:
            if not exchange.is_over:  # cancelled
                self._break_off(exchange)

    def _break_off(self, exchange: Http1Exchange) -> None:
        if exchange.is_started:
            exchange.abort()
        else:
            self.close()

    async def _give_up(self, exchange: Http1Exchange, status: int) -> None:
        """Answer with a bare status where the head has not gone and somebody listens, else break off."""
        if exchange.is_over or self.is_lost:
            return
        if exchange.is_started:
            exchange.abort()
            return
        exchange.must_close = True
        await exchange.start(status, ((b"content-length", b"0"),))
        await exchange.finish()

    def _refuse(self, refusal: Malformed) -> None:
        """Answer what could not be parsed; inside a body that is for the handler to do."""
        if self._exchange is not None:
            self._exchange.break_body()
            return
        _log.info("refused with %d: %s", refusal.status, refusal.text)
        text = refusal.text.encode()
        fields = ((b"content-type", b"text/plain"), (b"content-length", str(len(text)).encode()))
        own = self.date() + b"server: kinference\r\nconnection: close\r\n"
        self.send(answers.head(refusal.status, fields, own) + text)
        self._end()

    # --- what an exchange asks for ---------------------------------------------------------------

    @property
    def is_draining(self) -> bool:
        return self._site.is_draining

    def date(self) -> bytes:
        """The `date` line."""
        return self._site.date.at(self._site.clock.wall())

    def send(self, piece: bytes) -> None:
        """Write with whatever else is written in this round of the event loop: a system call costs more than a copy."""
        if not self._outgoing:
            self._site.loop.call_soon(self.flush)
        self._outgoing.append(piece)
        self._outgoing_bytes += len(piece)
        if self._outgoing_bytes > _GATHERED_MAX:
            self.flush()

    def flush(self) -> None:
        """Write what has gathered now."""
        if self._outgoing and self._transport is not None and not self._transport.is_closing():
            pieces, self._outgoing, self._outgoing_bytes = self._outgoing, [], 0
            if len(pieces) == 1:
                self._transport.write(pieces[0])
            else:
                self._transport.writelines(pieces)

    async def drained(self) -> None:
        """Wait until the client has taken most of what was written, or is gone."""
        drain = self._site.loop.create_future()
        self._drains.append(drain)
        await drain

    def hold_reading(self) -> None:
        """Let the client wait."""
        if not self._is_holding and self._transport is not None and not self._is_half_closed:
            self._is_holding = True
            self._transport.pause_reading()

    def go_on_reading(self) -> None:
        """Take more from the client, unless it has sent requests ahead."""
        if self._is_holding and not self._ahead and self._transport is not None and not self.is_lost:
            self._is_holding = False
            self._transport.resume_reading()

    def turn_over(self) -> None:
        """An answer is complete: the next request's turn, or the end."""
        self.flush()
        exchange, self._exchange, self._first_byte_at = self._exchange, None, None
        assert exchange is not None, "only the exchange whose turn it is ends it"
        if exchange.must_close:
            self._end()
            return
        while self._ahead and not self._has_whole_request():
            self._act(self._ahead.popleft())
        self.go_on_reading()
        if not self._is_idle():
            return
        if self._is_half_closed or self._site.is_draining:
            self._end()
        else:
            self._site.deadlines.give(self, self._site.options.keepalive)

    def reset(self) -> None:
        """Break the connection off. Where its end is the end of the answer, only a reset tells the two apart."""
        self._exchange = None
        transport = self._transport
        if transport is None or self.is_lost:
            return
        self.flush()
        connection = transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(SOL_SOCKET, SO_LINGER, _RESET_ON_CLOSE)
        transport.abort()

    # --- the end ---------------------------------------------------------------------------------

    def end_if_idle(self) -> None:
        """Close, unless a request is under way."""
        if self._exchange is None and self._first_byte_at is None:
            self._end()

    def close(self) -> None:
        """Close when what was written has left, whatever is under way."""
        if self._transport is not None:
            self.flush()
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def _end(self) -> None:
        """Close once the client has what was written; it may still be sending."""
        transport = self._transport
        assert transport is not None, "ended after it began"
        self._is_ending = True
        self._ahead.clear()
        if self._is_half_closed or transport.is_closing() or not transport.can_write_eof():
            self.close()
            return
        self.go_on_reading()
        self.flush()
        transport.write_eof()
        self._site.deadlines.give(self, _LINGER)

    def _probe(self, pause: Seconds, left: int) -> None:
        """Write something that matters to nobody, now and again: a client that has vanished answers with a reset."""
        if self._exchange is None or self.is_lost or not left:
            return
        self.send(self._exchange.probe())
        self._site.loop.call_later(pause, self._probe, pause * 2, left - 1)
