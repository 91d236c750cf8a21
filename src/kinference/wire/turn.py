"""What is written within one turn of the event loop, over all connections of a server or a client.

Writing to a socket whose reader sleeps wakes that reader, which costs more than all else of a small write, and each
reader sleeps again before the next of a busy server's answers has been made. So the first piece of a turn is written at
once, and what follows is written together when everything that came has been dealt with: it wakes the readers once. A
server that has one thing to do at a time delays nothing.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

HELD_MAX: Final = 32
"""Pieces of a turn from which on they are written, so that the first of them does not wait for all of a crowd."""
SMALL: Final = 16 * 1024
"""A piece up to here is held: what a larger one costs is its bytes."""


class Outlet(Protocol):
    """A transport, as far as it is written to."""

    def is_closing(self) -> bool: ...
    def write(self, data: bytes) -> None: ...


class Turn:
    """Holds what is to be written until the end of the turn, at the most. The pieces of a connection keep their order
    as long as all of them go through here, and `flush` comes before a transport is closed.
    """

    def __init__(self) -> None:
        self._is_under_way = False
        self._has_written = False
        self._held: deque[tuple[Outlet, bytes]] = deque()
        self._last: deque[Callable[[], object]] = deque()
        self.flushes = 0
        """How often what is held has been written: what was held at another number is held no more."""

    def write(self, outlet: Outlet, piece: bytes) -> bool:
        """Write to a transport, now or at the end of the turn. To one that is closing by then nothing is written.

        Returns whether it is held.
        """
        if not self._is_under_way:
            self._begin()
        if not self._has_written:
            self._has_written = True
            if self._held:
                self.flush()  # what a turn that failed has left
            if not outlet.is_closing():
                outlet.write(piece)
        elif len(piece) <= SMALL:
            self._held.append((outlet, piece))
            if len(self._held) < HELD_MAX:
                return True
            self.flush()
        else:
            self.flush()
            if not outlet.is_closing():
                outlet.write(piece)
        return False

    def at_end(self, last: Callable[[], object]) -> None:
        """Call when all that came in this turn has been dealt with."""
        if not self._is_under_way:
            self._begin()
        self._last.append(last)

    def flush(self) -> None:
        """Write what is held."""
        self.flushes += 1
        held = self._held
        while held:
            outlet, piece = held.popleft()  # what fails to be written must not keep the others
            if not outlet.is_closing():
                outlet.write(piece)

    def _begin(self) -> None:
        self._is_under_way = True
        asyncio.get_running_loop().call_soon(self._end)

    def _end(self) -> None:
        try:
            while self._last:
                self._last.popleft()()
            self.flush()
        finally:  # what one of them raises is for the loop to tell, and no reason to hold all later pieces
            self._is_under_way = self._has_written = False
