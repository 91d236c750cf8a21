"""An answer on its way from the destination to the client, as far as it goes without waiting: `pump` waits."""

from collections.abc import Callable, Coroutine
from typing import Any, Final

from kinference.errors import ClientGone
from kinference.gateway.access_log import End
from kinference.gateway.flow import Flow
from kinference.gateway.pump import Pump
from kinference.ids import Seconds
from kinference.ports import UpstreamAnswer

_CLIENT_CLOSED: Final = End.CLIENT_CLOSED
_OK: Final = End.OK
_UPSTREAM_ERROR: Final = End.UPSTREAM_ERROR
"""Read once: Python 3.11 finds a member of an enum by a hook of its metaclass, at ten times the price of a constant."""


class Relay:
    """One answer's relay, from after its head to its end. `end` is true at any moment, also after a cancellation."""

    end: End = _CLIENT_CLOSED
    rest: bytes | None = None
    """What the passage still held at the end of the answer."""
    has_poured = False
    """Whether all of the answer went its way."""

    def __init__(
        self,
        answer: UpstreamAnswer,
        flow: Flow,
        keep_alive: Seconds,
        over: Callable[[Flow, End], None] | None = None,
    ) -> None:
        """`over` is told the end."""
        self.answer, self.flow, self.keep_alive, self._over = answer, flow, keep_alive, over

    def at_once(self, taken: bytes | None = None) -> bool:
        """Relay an answer that is all here, and may have been taken, to a client that takes it all. False where `run`
        is to go on.
        """
        whole = self.answer.arrived() if taken is None else taken
        if whole is None:
            return False
        if not self.flow.take(whole):
            self.has_poured = True
            return False
        return self.finish()

    def finish(self) -> bool:
        """All of the answer went its way. False where `run` is to go on."""
        self.has_poured = True
        passage = self.flow.passage
        self.rest = rest = passage.close()
        if rest or not passage.is_whole(cut=False):
            return False
        try:
            self.flow.exchange.finish()
        except ClientGone:
            pass  # its end is the default one
        else:
            self.end = self.good_end()
        self.stop()
        return True

    def stop(self) -> None:
        """Nobody is there for the rest."""
        if self.flow.has_all and self.end is _CLIENT_CLOSED:
            self.end = self.good_end()
        if self._over is not None:
            self._over(self.flow, self.end)

    def run(self) -> Coroutine[Any, Any, None]:
        """Relay to the end from where it is, whatever the end is. Raises nothing but its own cancellation."""
        return Pump(self).run()

    def good_end(self) -> End:
        """What its end is where all of it went its way."""
        return _UPSTREAM_ERROR if self.flow.passage.has_failed() else _OK
