"""One client's connection: bytes to requests, one handler for each in turn, and its answers back.

Requests that were sent ahead wait until the answers before theirs are complete. A client that closes only its sending
side is served; whether it did that or vanished shows when something is written to it, so that is done on purpose.
"""

import asyncio
import logging
import struct
from collections import deque
from collections.abc import Sequence
from socket import SO_LINGER, SOL_SOCKET
from typing import Final, cast

from kinference.ids import Seconds
from kinference.wire.connections import peer_of
from kinference.wire.http1 import answers
from kinference.wire.http1.deadlines import NEVER
from kinference.wire.http1.exchange import Http1Exchange
from kinference.wire.http1.requests import Event, Malformed, RequestHead, RequestReader
from kinference.wire.site import Site
from kinference.wire.tls import peer_names
from kinference.wire.work import Handling

_log: Final = logging.getLogger(__name__)

_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)
_LINGER: Final[Seconds] = 2.0
"""How long a client may go on sending after an answer that ends the connection: closing on unread bytes would reset it,
and the answer might be lost."""
_LAST_CALL: Final[Seconds] = 1.0
"""How long a draining server waits for one more request of a client that was not told of the end by its last answer."""
_FIRST_PROBE: Final[Seconds] = 0.02
_PROBES_MAX: Final = 8
_AHEAD_MAX: Final = 64 * 1024
"""Bytes of requests sent ahead from which on a client waits. Below it is read, or its end would not show."""
_JOINED_MAX: Final = 16 * 1024
"""A piece up to here is copied behind the head that it follows: a system call costs more than a copy."""
_BUSY: Final = Malformed(503, "too many connections")


class Connection(asyncio.Protocol):
    """One connection, from accept to close."""

    def __init__(self, site: Site) -> None:
        self._site, self.account = site, site.options.account
        self._reader = RequestReader(site.options)
        self._transport: asyncio.Transport | None = None
        self._exchange: Http1Exchange | None = None
        self._handler: Handling | None = None
        self._is_new = False
        """Whether the request came with what is being read, and its handler has yet to begin."""
        self._ahead: deque[Event] = deque()
        """Of requests sent before the answer to an earlier one was complete."""
        self._ahead_bytes = 0
        self._first_byte_at: Seconds | None = None
        self._head = b""
        """Of an answer, waiting for what follows it."""
        self._drains: list[asyncio.Future[None]] = []
        self._is_half_closed = False
        self._is_ending = False
        """Whether what still comes in is thrown away."""
        self._is_holding = False
        self.is_congested = False
        self.is_lost = False
        self.may_ask_again = False
        self.peer = ""
        self.deadline = NEVER

    # --- the transport's calls -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        site = self._site
        self._transport = transport = cast("asyncio.Transport", transport)  # uvloop's has no such base class
        self.peer = peer_of(transport)
        has_room = site.connections.admits(self.peer)
        site.connections.add(self, self.peer)
        site.deadlines.watch(self)
        site.deadlines.give(self, site.options.keepalive)
        if not has_room:
            self._refuse(_BUSY)

    def data_received(self, data: bytes) -> None:
        if self._is_ending:
            return
        if self._first_byte_at is None:
            self._first_byte_at = self._site.clock.now()
        for event in self._reader.feed(data):
            exchange = self._exchange
            if self._ahead or (exchange is not None and exchange.is_received):
                self._put_ahead(event)
            else:
                self._act(event)
        if self._is_new:
            self._set_out()
        if self._ahead:
            self._limit_ahead(len(data))
        if self._exchange is None and self._reader.is_within_head:
            self._limit_head()

    def _set_out(self) -> None:
        """All that came of a request is here: what came in one read is whole when its handler sees it."""
        self._is_new, exchange = False, self._exchange
        if exchange is not None:
            self._handler = self._site.set_out(exchange)

    def _limit_head(self) -> None:
        if self.deadline > self._site.loop.time() + self._site.options.head_timeout:
            self._site.deadlines.give(self, self._site.options.head_timeout)

    def _limit_ahead(self, size: int) -> None:
        self._ahead_bytes += size
        if self._ahead_bytes > _AHEAD_MAX or self.account.is_short:
            self.hold_reading()

    def eof_received(self) -> bool:
        """Whether the connection stays open for writing. Where not, it is closed behind what was written."""
        if self._is_ending or self._exchange is None or not self._exchange.is_received or not self._can_half_close:
            self._write_all()
            return False
        self._is_half_closed = True
        self._probe(_FIRST_PROBE, _PROBES_MAX)
        return True

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - how it was lost changes nothing
        self.is_lost = True
        self._site.connections.discard(self)
        self._site.deadlines.forget(self)
        self.resume_writing()
        self._drop_ahead()
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.release()
        if exchange is not None and not exchange.is_over:
            exchange.lose()
            if self._handler is not None:
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

    @property
    def peer_names(self) -> Sequence[str]:
        """The names in the client's certificate."""
        return () if self._transport is None else peer_names(self._transport)

    @property
    def _can_half_close(self) -> bool:
        """Over TLS neither side can."""
        return self._transport is not None and self._transport.can_write_eof()

    def hand_over(self) -> bool:
        """Let another protocol have the transport before anything was read. False when it is ending already."""
        if self._is_ending:
            return False
        self._site.connections.discard(self)
        self._site.deadlines.forget(self)
        return True

    # --- requests --------------------------------------------------------------------------------

    def _put_ahead(self, event: Event) -> None:
        self._ahead.append(event)
        if isinstance(event, bytes):
            self.account.held += len(event)

    def _next_ahead(self) -> Event:
        event = self._ahead.popleft()
        if isinstance(event, bytes):
            self.account.give_back(len(event))
        return event

    def _take_from_ahead(self) -> None:
        """The next request, as far as it came."""
        while self._ahead and (self._exchange is None or not self._exchange.is_received):
            self._act(self._next_ahead())
        if self._is_new and self._exchange is not None:  # in a task: those sent ahead would descend into each other
            self._is_new, self._handler = False, self._site.begin(self._exchange)
        if not self._ahead:
            self._ahead_bytes = 0

    def _drop_ahead(self) -> None:
        while self._ahead:
            self._next_ahead()

    def _act(self, event: Event) -> None:
        exchange = self._exchange
        if isinstance(event, RequestHead):
            self._begin(event)
        elif isinstance(event, Malformed):
            self._refuse(event)
        elif exchange is None:
            return
        elif isinstance(event, bytes):
            exchange.receive(event)
        else:
            exchange.end_body()

    def _begin(self, head: RequestHead) -> None:
        site, began = self._site, self._first_byte_at
        self.deadline, self.may_ask_again = NEVER, False
        self._exchange = Http1Exchange(self, head, site.clock.now() if began is None else began)
        self._is_new = True

    def _refuse(self, refusal: Malformed) -> None:
        """Answer what could not be parsed; inside a body that is for the handler to do."""
        if refusal is not _BUSY:  # which is counted as a connection that is refused
            self._site.options.tally.faults[str(refusal.status)] += 1
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

    def send_head(self, head: bytes) -> None:
        """Write with what follows in this round of the event loop, if something does."""
        self._head = head
        self._site.turn.at_end(self.flush)

    def send(self, piece: bytes) -> None:
        """Write in this turn of the event loop."""
        if self._head and len(piece) <= _JOINED_MAX:
            piece, self._head = self._head + piece, b""
        elif self._head:
            self.flush()
        if self._transport is not None:
            self._site.turn.write(self._transport, piece)

    def flush(self) -> None:
        """Let the head go that waits for what follows it, if one does."""
        if head := self._head:
            self._head = b""
            self.send(head)

    def _write_all(self) -> None:
        """Nothing is left to be written before the transport ends."""
        self.flush()
        self._site.turn.flush()

    def drained(self) -> asyncio.Future[None]:
        """Wait until the client has taken most of what was written, or is gone."""
        drain = self._site.loop.create_future()
        self._drains.append(drain)
        return drain

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
        exchange.release()
        if exchange.must_close:
            self._end()
        elif self._ahead:
            self._take_from_ahead()
            self.go_on_reading()
        else:
            self.go_on_reading()
            self._rest()

    def _rest(self) -> None:
        """No request is under way."""
        if self._is_half_closed:
            self._end()
        elif self._site.is_draining:  # the head of this answer was sent before, so that it could not tell of the end
            self._give_last_call()
        else:
            self._site.deadlines.give(self, self._site.options.keepalive)

    def _give_last_call(self) -> None:
        self.may_ask_again = True
        self._site.deadlines.give(self, _LAST_CALL)

    def reset(self) -> None:
        """Break the connection off. Where its end is the end of the answer, only a reset tells the two apart."""
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.release()
        transport = self._transport
        if transport is None or self.is_lost:
            return
        self._write_all()
        connection = transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(SOL_SOCKET, SO_LINGER, _RESET_ON_CLOSE)
        transport.abort()

    # --- the end ---------------------------------------------------------------------------------

    def end_if_idle(self) -> None:
        """Close, unless a request is under way, or may be: who has asked before may just have asked again."""
        if self._exchange is not None or self._first_byte_at is not None:
            return
        if self._handler is None:
            self._end()
        else:
            self._give_last_call()

    def close(self) -> None:
        """Close when what was written has left, whatever is under way."""
        if self._transport is not None:
            self._write_all()
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
        self._drop_ahead()
        if self._is_half_closed or transport.is_closing() or not transport.can_write_eof():
            self.close()
            return
        self.go_on_reading()
        self._write_all()
        transport.write_eof()
        self._site.deadlines.give(self, _LINGER)

    def _probe(self, pause: Seconds, left: int) -> None:
        """Write something that matters to nobody, now and again: a client that has vanished answers with a reset."""
        if self._exchange is None or self.is_lost or not left:
            return
        self.send(self._exchange.probe())
        self._site.loop.call_later(pause, self._probe, pause * 2, left - 1)
