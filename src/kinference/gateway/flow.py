"""An answer's bytes on their way to the client, as far as they go without waiting: `relay` waits."""

from collections.abc import Callable
from contextlib import suppress

from kinference.errors import ClientGone, UpstreamCut
from kinference.gateway.passage import Passage
from kinference.ids import Seconds
from kinference.ports import Clock
from kinference.wire.exchange import Exchange


class Flow:
    """One answer's way out. A chunk goes through in the very call that brings it."""

    is_behind = False
    """Whether the client has yet to take what was sent."""
    has_all = False
    """Whether what it was sent ends the stream, after which SDKs leave without a word."""
    failure: ClientGone | UpstreamCut | None = None
    """What came to nothing in `take`: whoever brings the chunk is not who waits for the end."""
    first_byte_at: Seconds | None = None

    def __init__(
        self, exchange: Exchange, passage: Passage, clock: Clock, on_first_byte: Callable[[Seconds], None]
    ) -> None:
        self.exchange, self.passage = exchange, passage
        self._clock, self._on_first_byte = clock, on_first_byte
        self._quiet_since = clock.now()

    def take(self, chunk: bytes) -> bool:
        """Send on what has come. Returns whether more is welcome."""
        now = self._quiet_since = self._clock.now()
        try:
            out = self.passage.feed(chunk, now)
            if out:
                self.is_behind = not self.exchange.send(out)
        except (ClientGone, UpstreamCut) as failure:
            self.failure = failure
        if self.first_byte_at is None:
            self.first_byte_at = now
            self._on_first_byte(now)  # only now: the client need not wait for what is learned from it
        if self.is_behind or self.failure is not None:
            return False
        self.has_all = self.passage.is_whole(cut=True)
        return True

    def send(self, out: bytes) -> None:
        """Send something. Raises ClientGone."""
        self.is_behind = not self.exchange.send(out)

    def catch_up(self) -> None:
        """The client has taken all that it was sent."""
        self.is_behind = False
        self.has_all = self.passage.is_whole(cut=True)

    def speak_up(self, pause: Seconds) -> Seconds:
        """Say something where the stream has been silent for so long, so that no proxy in between gives it up. Returns
        after how long to look again.
        """
        now = self._clock.now()
        left = self._quiet_since + pause - now
        if left > 0:
            return left
        self._quiet_since = now
        # A client that takes nothing would not get this either.
        if not self.is_behind and (words := self.passage.keep_alive()):
            with suppress(ClientGone):  # the pump learns of it by itself
                self.send(words)
        return pause
