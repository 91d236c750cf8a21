"""Bytes that came in and that no handler has taken yet, counted over all connections that share the account.

From a quarter of the bound on, who brings bytes for a handler that is busy has to wait: HTTP/1.1 is not read, and in
HTTP/2 the connection's window is not opened again. Where a handler waits for bytes its connection goes on in any case,
or a process full of half messages could never complete one. So there is a second line: from half of the bound on, a
connection that holds more than an even share has the stream reset that brings more. Those within an even share hold no
more than the other half, and all together never more than the bound and what one read of each brings.
"""

from collections.abc import Callable
from typing import Final

BYTES_MAX: Final = 2**30
WAIT_FROM: Final = 4
REFUSE_FROM: Final = 2
"""Of the bound, the one in so many."""


class Untaken:
    """The account. `held` is counted by those who hold, once up and once down for each byte."""

    __slots__ = ("_waiting", "connections", "held", "refuse_above", "wait_above")

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self.wait_above, self.refuse_above = bytes_max // WAIT_FROM, bytes_max // REFUSE_FROM
        self.held = 0
        self.connections = 0
        self._waiting: dict[Callable[[], None], None] = {}

    @property
    def is_short(self) -> bool:
        """Whether those who can wait have to."""
        return self.held > self.wait_above

    def refuses(self, own: int) -> bool:
        """Whether a connection that holds so much is to bring no more."""
        return self.held > self.refuse_above and own * self.connections > self.refuse_above

    def give_back(self, size: int) -> None:
        """So many bytes were taken, or nobody will take them."""
        self.held -= size
        if self._waiting:
            self._let_on()

    def wait(self, go_on: Callable[[], None]) -> None:
        """Call back once there is room, in the order of asking; asked twice is asked once."""
        self._waiting.setdefault(go_on)
        self._let_on()

    def leave(self, go_on: Callable[[], None]) -> None:
        """Wait no more; harmless for who does not."""
        self._waiting.pop(go_on, None)

    def _let_on(self) -> None:
        while self._waiting and not self.is_short:
            go_on = next(iter(self._waiting))
            del self._waiting[go_on]
            go_on()
