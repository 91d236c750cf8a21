"""Takes connections that come together in one turn of the event loop, and knows of those that shake hands.

libuv, and so uvloop, accepts one in each turn (since 1.45): of a hundred that come at once to a busy server the last
would wait for a hundred turns. And over TLS no loop tells of a connection before its handshake is over, so that one
peer could begin as many as the process has descriptors.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from kinference.ids import Seconds
from kinference.wire.connections import EXHAUSTED, Connections, Tally
from kinference.wire.tls import ServerTls

AT_ONCE: Final = 64
"""Connections that are taken in one turn from one address; those left over are taken in the next ones."""
_REST: Final[Seconds] = 1.0
"""How long nothing is taken after the system had no room for one more: it stays there to be told of in each turn."""


@dataclass(frozen=True, slots=True)
class Handshakes:
    """How a port shakes hands: within what time, and how many at once, in all and with each peer."""

    tls: ServerTls
    patience: Seconds
    most: int
    most_per_peer: int
    tally: Tally


class Burst:
    """Makes the protocols of a server's connections, as its factory, and takes those that wait behind each. Over TLS it
    takes all of them, and the loop none.
    """

    def __init__(self, opened: Callable[[], asyncio.Protocol], handshakes: Handshakes | None = None) -> None:
        self._opened, self._loop, self._handshakes = opened, asyncio.get_running_loop(), handshakes
        self._ports: list[socket.socket] = []
        most, most_per_peer = (handshakes.most, handshakes.most_per_peer) if handshakes else (0, 0)
        self._shaking: Connections[socket.socket] = Connections(most, most_per_peer)
        self._opening: set[asyncio.Task[object]] = set()
        self._rest: asyncio.TimerHandle | None = None
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

    @property
    def lets_loop_accept(self) -> bool:
        """Whether the server is to be one that serves (`start_serving`)."""
        return self._handshakes is None

    def attend(self, listener: asyncio.Server, backlog: int) -> None:
        """Take what waits at the addresses of this server, too; or alone, if it does not serve."""
        for port in listener.sockets:
            own = socket.socket(fileno=os.dup(port.fileno()))
            own.setblocking(False)
            self._ports.append(own)
            if not self.lets_loop_accept:
                own.listen(backlog)
        self._watch()

    def close(self) -> None:
        """Take no more. Its addresses are free again only after this."""
        self._unwatch()
        for port in self._ports:
            port.close()
        self._ports.clear()

    def give_up(self) -> None:
        """End connections whose handshake is under way. To cancel the task would be to end them politely, and wait."""
        for connection in self._shaking:
            with suppress(OSError):  # its peer has ended it
                connection.shutdown(socket.SHUT_RDWR)

    def _watch(self) -> None:
        if not self.lets_loop_accept:
            for port in self._ports:
                self._loop.add_reader(port.fileno(), self._take)

    def _unwatch(self) -> None:
        if self._rest is not None:
            self._rest.cancel()
        if not self.lets_loop_accept:
            for port in self._ports:
                self._loop.remove_reader(port.fileno())

    def _turn(self) -> None:
        self._has_taken = False

    def _take(self) -> None:
        for port in self._ports:
            for _ in range(AT_ONCE):
                try:
                    connection, address = port.accept()
                except OSError as error:  # nobody waits, or no descriptor is left, with which a loop that accepts deals
                    if error.errno in EXHAUSTED and not self.lets_loop_accept:
                        self._unwatch()
                        self._rest = self._loop.call_later(_REST, self._watch)
                    break
                self._open(connection, address[0] if isinstance(address, tuple) else "")

    def _open(self, connection: socket.socket, peer: str) -> None:
        connection.setblocking(False)
        hands = self._handshakes
        if hands is None:
            self._follow(self._loop.connect_accepted_socket(self._opened, connection))
        elif self._shaking.admits(peer):
            self._shaking.add(connection, peer)
            self._follow(self._shake(connection, hands))
        else:
            hands.tally.refused += 1
            connection.close()

    def _follow(self, work: Coroutine[None, None, object]) -> None:
        opening = self._loop.create_task(work)
        self._opening.add(opening)
        opening.add_done_callback(self._opened_or_not)

    async def _shake(self, connection: socket.socket, hands: Handshakes) -> None:
        try:
            await self._loop.connect_accepted_socket(
                self._opened, connection, ssl=hands.tls.context, ssl_handshake_timeout=hands.patience
            )
        finally:
            self._shaking.discard(connection)

    def _opened_or_not(self, opening: asyncio.Task[object]) -> None:
        self._opening.discard(opening)
        if not opening.cancelled():
            opening.exception()  # a handshake that came to nothing concerns nobody
