"""Between a transport and an HTTP/2 connection, whatever its streams mean: back-pressure, whether the peer is still
there, and writing, which happens in one piece at the end of a read or of a turn of the loop.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, cast

from kinference.ids import Seconds
from kinference.wire.alarm import Alarm
from kinference.wire.http2.connection import Http2Connection
from kinference.wire.http2.events import ConnectionEnded, PingAcknowledged
from kinference.wire.http2.fields import Fields
from kinference.wire.http2.frames import ErrorCode
from kinference.wire.http2.guard import Http2Limits
from kinference.wire.http2.requests import Request
from kinference.wire.tls import peer_names
from kinference.wire.turn import Turn

Head = TypeVar("Head")

logger: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """How patient a session is, and what its connection may hold."""

    handshake_timeout: Seconds = 10.0
    keepalive: Seconds = 30.0
    """A connection silent for so long is pinged; one that is silent for as long again is closed."""
    http2: Http2Limits = Http2Limits()


class Http2Session(asyncio.Protocol, ABC, Generic[Head]):
    """One connection. A subclass says what its events come to, and ends what runs on it."""

    def __init__(
        self,
        read_head: Callable[[Request], Head],
        limits: SessionLimits,
        turn: Turn,
        read_on: Callable[[Head, Fields], Head | None] | None = None,
    ) -> None:
        self._limits, self._turn = limits, turn
        self._loop = asyncio.get_running_loop()
        self._now = self._loop.time
        self._connection: Http2Connection[Head] = Http2Connection(read_head, limits.http2, self._now(), read_on)
        self._answers = self._connection.answers
        self._transport: asyncio.Transport | None = None
        self._is_collecting = self._is_paused = self._is_asked = self._was_heard = False
        self._is_closing = False
        self._alarm: Alarm | None = None
        self._actions: dict[type, Callable[[Any], None]] = {
            PingAcknowledged: self._on_ping_acknowledged,
            ConnectionEnded: self._on_connection_ended,
        }

    # --- for a subclass to say -------------------------------------------------------------------

    @abstractmethod
    def _admits(self, transport: asyncio.Transport) -> bool:
        """Whether the connection is taken, and noted as one of the server's."""

    @abstractmethod
    def _begin_streams(self) -> None:
        """All frames of a read are known."""

    @abstractmethod
    def _is_awaited(self) -> bool:
        """Whether a handler waits for bytes."""

    @abstractmethod
    def _end_streams(self) -> None:
        """The connection is lost."""

    @abstractmethod
    def close(self) -> None:
        """Cancel what runs and close the connection."""

    @property
    def peer_names(self) -> Sequence[str]:
        """The names in the peer's certificate."""
        return () if self._transport is None else peer_names(self._transport)

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    # --- the transport's side --------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)  # uvloop's is none by its class
        if not self._admits(transport):
            transport.abort()
            return
        transport.set_write_buffer_limits(self._limits.http2.output_bytes_max)
        self._alarm = Alarm(self._loop, self._limits.handshake_timeout, self._check_alive)
        self._flush()

    def data_received(self, data: bytes) -> None:
        self._was_heard = self._is_collecting = True
        actions = self._actions
        for event in self._connection.feed(data, self._now()):
            actions[type(event)](event)
        self._begin_streams()
        if self._connection.is_withholding:
            self._wait_for_room()
        self._is_collecting = False
        self._flush()

    def eof_received(self) -> None:
        """The transport closes behind this, and is to have all that it can take by then."""
        self._flush()
        self._turn.flush()

    def pause_writing(self) -> None:
        self._is_paused = True
        self._connection.pause()

    def resume_writing(self) -> None:
        self._is_paused = False
        self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - however it was lost, it is
        self._transport = None
        if self._alarm is not None:
            self._alarm.cancel()
        self._end_streams()
        self._limits.http2.account.leave(self._open_window)
        self._connection.lose()

    def _wait_for_room(self) -> None:
        """Let the peer wait until handlers have taken more, unless one of its own waits for what it sends."""
        if self._is_awaited():
            self._open_window()
        else:
            self._limits.http2.account.wait(self._open_window)

    def _open_window(self) -> None:
        self._limits.http2.account.leave(self._open_window)
        self._connection.open_window()
        self._flush_soon()

    def needs_bytes(self) -> None:
        """A handler begins to wait for bytes: the peer must be free to send them."""
        if self._connection.is_withholding:
            self._open_window()

    def _go_on(self) -> None:
        """Let streams that wait send on."""
        for event in self._connection.resume():
            self._actions[type(event)](event)
        self._flush()

    def _flush(self) -> None:
        """Write what has been collected. One that does not read is not written to; the connection bounds the rest."""
        self._is_collecting = False
        transport, connection = self._transport, self._connection
        if transport is None or self._is_paused or self._is_closing:
            return
        output = connection.take_output()
        if output:
            self._turn.write(transport, output)
        if connection.has_turns:
            self._loop.call_soon(self._go_on)

    def _makes_room(self) -> bool:
        """Write amid a read what has been collected, where that is as much as is kept: answers that would go at once
        need not wait for their turns then. True if it was, and the transport takes more.
        """
        transport = self._transport
        if transport is None or self._is_paused or self._is_closing or not self._connection.is_full:
            return False
        self._turn.flush()
        transport.write(self._connection.take_output())
        return not self._is_paused

    def _flush_soon(self) -> None:
        if not self._is_collecting:
            self._is_collecting = True
            self._loop.call_soon(self._flush)

    def _check_alive(self) -> None:
        if self._transport is None:
            return
        is_late = not self._was_heard and (self._is_asked or not self._connection.is_settled)
        if is_late or self._connection.is_closed:  # a peer that takes no goodbye must not hold the connection
            self._transport.abort()
            return
        self._is_asked = not self._was_heard
        if self._is_asked:
            self._connection.ping()
            self._flush_soon()
        self._was_heard = False
        self._alarm = Alarm(self._loop, self._limits.keepalive, self._check_alive)

    # --- events ----------------------------------------------------------------------------------

    def _on_ping_acknowledged(self, _event: PingAcknowledged) -> None:
        """That the peer was heard is noted for whatever it sends."""

    def _on_connection_ended(self, event: ConnectionEnded) -> None:
        logger.info("closing a connection: %s", event.message, extra={"code": event.code})
        self._limits.http2.tally.faults[ErrorCode(event.code).name.lower()] += 1
        self.close()

    # --- the server's side -----------------------------------------------------------------------

    def announce_end(self) -> None:
        """Ask the peer to open no more streams."""
        self._connection.announce_end()
        self._flush_soon()

    def _close(self) -> None:
        """Say goodbye, and close when that has left."""
        if self._is_closing or self._transport is None:
            return
        self._is_closing = True
        self._connection.close()
        self._turn.flush()
        self._transport.write(self._connection.take_output())  # full or not: there will be no other time
        self._transport.close()
