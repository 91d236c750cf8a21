"""Receiving: the windows that we grant, and what arrived and was not taken yet (RFC 9113, section 5.2).

A stream's window opens again as its handler takes bytes. The connection's opens with every byte that arrives, taken or
not: were it to wait for the handlers, streams with half a message each could fill it, and none of them would ever be
complete. What a connection may hold is bounded by a count of its own instead, and what all of them may by an account
that they share: while that is short, the connection's window stays as it is until the shell opens it.
"""

from collections.abc import Callable

from kinference.wire.http2.frames import ConnectionFault, ErrorCode, StreamFault, window_update
from kinference.wire.http2.guard import Http2Limits
from kinference.wire.http2.streams import HALF_CLOSED_REMOTE, Stream


class Intake:
    """Bytes of DATA on their way to the handlers."""

    def __init__(self, limits: Http2Limits, write: Callable[[bytes], None]) -> None:
        self._limits, self._write = limits, write
        self._window_max, self._open_from = limits.connection_window, -(-limits.connection_window // 2)
        self._stream_window, self._untaken_max = limits.stream_window, limits.untaken_bytes_max
        self.room = 0
        """Bytes that may still arrive in this read and need no look: they break no limit, and open no window."""
        self.owed = 0
        """Bytes that arrived and for which the connection's window has not been opened again."""
        self.untaken = 0
        self._account = limits.account
        self._account.connections += 1
        self._is_closed = False
        self.is_withholding = False
        """Whether the connection's window would have been opened, and was not for want of room."""

    @property
    def window(self) -> int:
        """What the peer may still send on the connection."""
        return self._window_max - self.owed

    def measure(self) -> None:
        """A read begins."""
        account = self._account
        self.room = min(
            self._open_from - self.owed - 1,
            self._stream_window,
            self._untaken_max - self.untaken,
            account.refuse_above - account.held,
        )

    def passes(self, size: int) -> bool:
        """So much arrived for a new stream, and is nobody's to take yet. False, and not counted, where there is more to
        be done about it than to count it.
        """
        account, owed = self._account, self.owed + size
        if (
            owed >= self._open_from  # less is within the connection's window, which is owed the rest
            or size > self._stream_window
            or self.untaken + size > self._untaken_max
            or account.held + size > account.refuse_above
        ):
            return False
        self.room -= size
        self.owed = owed
        return True

    def hold(self, size: int, stream: Stream) -> None:
        """What has passed is a stream's, whose handler will take it."""
        self.untaken += size
        self._account.held += size
        stream.untaken = size

    def arrived(self, size: int, stream: Stream | None = None) -> None:
        """DATA arrived; for a stream that takes it, or for none."""
        self.owed += size
        self.room -= size
        if self.owed > self._window_max:
            raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "more DATA than the connection's window")
        if self.owed >= self._open_from:
            if self._account.is_short:
                self.is_withholding = True
            else:
                self.open_window()
        if stream is None:
            return
        stream.receive_window -= size
        stream.untaken += size
        self.untaken += size
        account = self._account
        account.held += size
        if stream.receive_window < 0:
            raise StreamFault(ErrorCode.FLOW_CONTROL_ERROR, "more DATA than the stream's window")
        if self.untaken > self._untaken_max:
            raise StreamFault(ErrorCode.ENHANCE_YOUR_CALM, "more DATA than all handlers of the connection take")
        if account.held > account.refuse_above and account.refuses(self.untaken):
            raise StreamFault(ErrorCode.ENHANCE_YOUR_CALM, "more DATA than all handlers of all connections take")

    def open_window(self) -> None:
        """Let the peer send as much again on the connection."""
        self.is_withholding = False
        self._write(window_update(0, self.owed))
        self.owed = 0

    def taken(self, stream: Stream, size: int) -> None:
        """Its handler took so much: the peer may send as much again."""
        stream.untaken -= size
        if not self._is_closed:
            self.untaken -= size
            self._account.give_back(size)
        stream.owed += size
        if stream.owed >= self._limits.credit_bytes and stream.state is not HALF_CLOSED_REMOTE:
            self._write(window_update(stream.id, stream.owed))
            stream.receive_window += stream.owed
            stream.owed = 0

    def forget(self, stream: Stream) -> None:
        """A stream has ended; nobody will take what it brought."""
        size = stream.untaken
        if size and not self._is_closed:
            self.untaken -= size
            self._account.give_back(size)

    def close(self) -> None:
        """The connection is lost, and with it what it brought."""
        if not self._is_closed:
            self._account.connections -= 1
            self._account.give_back(self.untaken)
            self.untaken = 0
            self._is_closed = True
