"""One client's HTTP/2 connection at an HTTP port: a handler for each stream, and their answers back."""

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Final

from kinference.ids import Seconds
from kinference.wire.connections import peer_of
from kinference.wire.http2.events import DataReceived, RequestReceived, StreamDrained, StreamReset
from kinference.wire.http2.exchange import SERVER, Http2Exchange, answer_head
from kinference.wire.http2.frames import ErrorCode
from kinference.wire.http2.guard import Http2Limits
from kinference.wire.http2.headers import literal
from kinference.wire.http2.http_head import HttpHead, read_head
from kinference.wire.http2.session import Http2Session, SessionLimits
from kinference.wire.server_options import HttpServerOptions
from kinference.wire.site import Site

BODY_HELD_MAX: Final = 256 * 1024
"""Body bytes of one stream that may wait for the handler before the client is made to wait."""
UNTAKEN_BYTES_MAX: Final = 64 * 2**20
"""Of all streams of one connection."""
DATE_BEGINS: Final = len(b"date: ")


@dataclass(slots=True)
class _Open:
    """A stream whose answer is not complete."""

    exchange: Http2Exchange
    handler: asyncio.Task[None]


class Http2Ingress(Http2Session[HttpHead]):
    """One connection, from its preface to its close."""

    def __init__(self, site: Site) -> None:
        fields_max = site.options.fields_max
        super().__init__(partial(read_head, fields_max=fields_max), session_limits(site.options), site.turn)
        self._site = site
        self._open: dict[int, _Open] = {}
        self._idle_since: Seconds = self._now()
        self._is_last = False
        """Whether the end was announced."""
        self.peer = ""
        self._actions |= {
            RequestReceived: self._on_request,
            DataReceived: self._on_data,
            StreamReset: self._on_reset,
            StreamDrained: self._on_drained,
        }

    # --- the connection's life (Http2Session) ----------------------------------------------------

    def _admits(self, transport: asyncio.Transport) -> bool:
        self.peer = peer_of(transport)
        if not self._site.connections.admits(self.peer):
            return False
        self._site.connections.add(self, self.peer)
        return True

    def _begin_streams(self) -> None:
        """They have begun: a handler is a task, which waits for its turn anyway."""

    def _is_awaited(self) -> bool:
        return any(found.exchange.is_waiting for found in self._open.values())

    def _end_streams(self) -> None:
        self._cancel_all()
        self._site.connections.discard(self)

    def _check_alive(self) -> None:
        if self._open or self._now() - self._idle_since < self._site.options.keepalive:
            super()._check_alive()
        else:
            self.close()

    # --- events ----------------------------------------------------------------------------------

    def _on_request(self, event: RequestReceived[HttpHead]) -> None:
        head, stream_id = event.head, event.stream_id
        self._answers.open(stream_id)
        if head.refusal:
            self._site.options.tally.faults[str(head.refusal)] += 1
            self._refuse(stream_id, head.refusal)
            return
        exchange = Http2Exchange(self, stream_id, head, self._site.clock.now())
        if event.data:
            exchange.receive(event.data)
        if event.ended:
            exchange.end_body()
        self._open[stream_id] = _Open(exchange, self._site.begin(exchange))

    def _refuse(self, stream_id: int, status: int) -> None:
        block = answer_head(status, ((b"content-length", b"0"),)) + self.date() + SERVER
        if self._answers.is_sendable(stream_id):  # not taken back in the very read that brought it
            self._answers.send_trailers(stream_id, block)

    def _on_data(self, event: DataReceived) -> None:
        found = self._open.get(event.stream_id)
        if found is None:
            return
        if event.data:
            found.exchange.receive(event.data)
        if event.ended:
            found.exchange.end_body()

    def _on_reset(self, event: StreamReset) -> None:
        found = self._open.get(event.stream_id)
        if found is not None:
            self._lose(found)
            self._ended(event.stream_id)

    def _on_drained(self, event: StreamDrained) -> None:
        found = self._open.get(event.stream_id)
        if found is not None:
            found.exchange.go_on()

    def _lose(self, found: _Open) -> None:
        found.exchange.lose()
        found.handler.cancel()

    def _cancel_all(self) -> None:
        streams, self._open = self._open, {}
        for found in streams.values():
            self._lose(found)

    def _ended(self, stream_id: int) -> None:
        """A stream is over, and with the last one the connection where that was announced."""
        self._open.pop(stream_id, None)
        if not self._open:
            self._idle_since = self._now()
            if self._is_last and self._transport is not None:
                self.close()

    # --- what an exchange asks for ---------------------------------------------------------------

    def date(self) -> bytes:
        """The `date` field."""
        line = self._site.date.at(self._site.clock.wall())
        return literal(b"date", line[DATE_BEGINS:].rstrip())

    def taken(self, stream_id: int, size: int) -> None:
        self._answers.consume(stream_id, size)
        self._flush_soon()

    def send_head(self, stream_id: int, block: bytes) -> None:
        self._answers.send_headers(stream_id, block)
        self._flush_soon()

    def send_body(self, stream_id: int, chunk: bytes) -> bool:
        self._flush_soon()
        return self._answers.send_data(stream_id, chunk)

    def finish(self, stream_id: int) -> None:
        self._answers.send_end(stream_id)
        self._flush_soon()
        self._ended(stream_id)

    def reset(self, stream_id: int) -> None:
        if not self._connection.is_closed:
            self._answers.reset(stream_id, ErrorCode.INTERNAL_ERROR)
            self._flush_soon()
        self._ended(stream_id)

    # --- the end (Guest) -------------------------------------------------------------------------

    @property
    def may_ask_again(self) -> bool:
        """HTTP/2 tells of the end at any time."""
        return False

    def end_if_idle(self) -> None:
        """Announce the end; close when the last answer is complete."""
        self._is_last = True
        if self._open:
            self.announce_end()
        else:
            self.close()

    def close(self) -> None:
        self._cancel_all()
        self._close()


def session_limits(options: HttpServerOptions) -> SessionLimits:
    """The limits of a connection on a port with these options."""
    return SessionLimits(
        handshake_timeout=options.head_timeout,
        http2=Http2Limits(
            streams_max=options.streams_max,
            stream_window=BODY_HELD_MAX,
            untaken_bytes_max=UNTAKEN_BYTES_MAX,
            account=options.account,
            tally=options.tally,
            header_block_bytes_max=options.field_bytes_max,
            header_list_bytes_max=options.field_bytes_max,
            rates=options.rates,
        ),
    )
