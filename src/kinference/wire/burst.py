"""Takes connections that come together in one turn of the event loop.

libuv, and so uvloop, accepts one in each turn (since 1.45): of a hundred that come at once to a busy server the last
would wait for a hundred turns.
"""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from kinference.ids import Seconds
from kinference.wire.tls import ServerTls

AT_ONCE: Final = 64
"""Connections that are taken in one turn from one address; those left over are taken in the next ones."""


class Burst:
    """Makes the protocols of a server's connections, as its factory, and takes those that wait behind each."""

    def __init__(
        self, opened: Callable[[], asyncio.Protocol], tls: ServerTls | None = None, handshake_timeout: Seconds = 0.0
    ) -> None:
        self._opened, self._loop = opened, asyncio.get_running_loop()
        self.ssl = tls.context if tls else None
        self.ssl_handshake_timeout = handshake_timeout if tls else None
        self._ports: list[socket.socket] = []
        self._opening: dict[asyncio.Task[object], socket.socket] = {}
        self._has_taken = False
        """In this turn of the loop."""

    def __call__(self) -> asyncio.Protocol:
        """A protocol for a connection that the loop has accepted.

        Those behind it are taken at once: a turn later they would be heard after the next one that the loop accepts.
        """
        if not self._has_taken:
            self._has_taken = True
            self._loop.call_soon(self._turn)
            self._take()
        return self._opened()

    def attend(self, listener: asyncio.Server) -> None:
        """Take what waits at the addresses of this server, too."""
        for port in listener.sockets:
            own = socket.socket(fileno=os.dup(port.fileno()))
            own.setblocking(False)
            self._ports.append(own)

    def close(self) -> None:
        """Take no more. Its addresses are free again only after this."""
        for port in self._ports:
            port.close()
        self._ports.clear()

    def give_up(self) -> None:
        """End connections whose handshake is under way. To cancel the task would be to end them politely, and wait."""
        for connection in self._opening.values():
            with suppress(OSError):  # its peer has ended it
                connection.shutdown(socket.SHUT_RDWR)

    def _turn(self) -> None:
        self._has_taken = False

    def _take(self) -> None:
        for port in self._ports:
            for _ in range(AT_ONCE):
                try:
                    connection, _ = port.accept()
                except OSError:  # nobody waits, or no descriptor is left: the loop's own accepting deals with that
                    break
                self._open(connection)

    def _open(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        opening = self._loop.create_task(
            self._loop.connect_accepted_socket(
                self._opened, connection, ssl=self.ssl, ssl_handshake_timeout=self.ssl_handshake_timeout
            )
        )
        self._opening[opening] = connection
        opening.add_done_callback(self._opened_or_not)

    def _opened_or_not(self, opening: asyncio.Task[object]) -> None:
        del self._opening[opening]
        if not opening.cancelled():
            opening.exception()  # a handshake that came to nothing concerns nobody
