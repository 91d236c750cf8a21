"""A request's body as it is held and counted. `ingress` waits for it."""

from kinference.errors import BudgetExceeded, RetryLater
from kinference.ids import Seconds
from kinference.ports import Picker
from kinference.structs import Frozen
from kinference.wire.exchange import Exchange


class BodyLimits(Frozen, frozen=True):
    """What one body may take."""

    bytes_max: int
    idle: Seconds
    """How long an upload may stand still."""


class HeldBody:
    """A request body. Held because only the picker's own copy is patched, and a retry must start from the original.

    The picker counts it from its first byte until it is placed, however slowly it comes in. Whatever takes of it in
    raises BudgetExceeded at our limit and RetryLater at the picker's.
    """

    whole = b""
    """All of it, once it has arrived."""
    _counted = 0

    def __init__(self, limits: BodyLimits, picker: Picker) -> None:
        self._bytes_max, self.idle = limits.bytes_max, limits.idle
        self._picker = picker
        self._pieces: list[bytes] = []

    def take_arrived(self, exchange: Exchange) -> bool:
        """Take it in at once, where all of it is here; else it is yet to be received."""
        whole = exchange.arrived()
        if whole is None:
            return False
        self._count(whole)
        self.whole = whole
        return True

    def expect(self, declared: int) -> None:
        """So much is to come."""
        if declared > self._bytes_max:
            raise self._too_long()
        try:
            self._picker.make_room(declared)
        except BudgetExceeded as error:
            raise _no_room() from error

    def add(self, chunk: bytes) -> None:
        """Some of it has come."""
        self._count(chunk)
        self._pieces.append(chunk)

    def end(self) -> None:
        """All of it has."""
        self.whole = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()

    def _count(self, chunk: bytes) -> None:
        size = len(chunk)
        counted = self._counted + size
        if counted > self._bytes_max:
            raise self._too_long()
        try:
            self._picker.hold(size)
        except BudgetExceeded as error:
            raise _no_room() from error
        self._counted = counted

    def _too_long(self) -> BudgetExceeded:
        return BudgetExceeded(f"request body over the limit of {self._bytes_max} bytes", "body_max_bytes")

    def placed(self) -> None:
        """Have it counted no longer; harmless when it is not."""
        counted, self._counted = self._counted, 0
        if counted:
            self._picker.let_go(counted)

    def release(self) -> None:
        """No further attempt will be made: a long answer need not hold on to a long question."""
        self.whole = b""


def _no_room() -> RetryLater:
    """All bodies together are too much, which is not this one's fault."""
    return RetryLater("too much is buffered at the moment", limit="buffer_max_bytes")
