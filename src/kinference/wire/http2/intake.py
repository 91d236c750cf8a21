"""Receiving: the windows that we grant, and what arrived and was not taken yet (RFC 9113, section 5.2).

A stream's window opens again as its handler takes bytes. The connection's opens with every byte that arrives, taken or
not: were it to wait for the handlers, streams with half a message each could fill it, and none of them would ever be
complete. What a connection may hold is bounded by a count of its own instead.
"""

from collections.abc import Callable

from kinference.wire.http2.frames import ConnectionFault, ErrorCode, StreamFault, window_update
from kinference.wire.http2.guard import Http2Limits
from kinference.wire.http2.streams import HALF_CLOSED_REMOTE, Stream


class Intake:
    """Bytes of DATA on their way to the handlers."""

    def __init__(self, limits: Http2Limits, write: Callable[[bytes], None]) -> None:
        self._limits, self._write = limits, write
        self.window = limits.connection_window
        self.owed = 0
        """Bytes that arrived and for which the connection's window has not been opened again."""
        self.untaken = 0

    def arrived(self, size: int) -> None:
        """DATA arrived, for whatever stream."""
        self.window -= size
        if self.window < 0:
            raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "more DATA than the connection's window")
        self.owed += size
        if self.owed * 2 >= self._limits.connection_window:
            self._write(window_update(0, self.owed))
            self.window += self.owed
            self.owed = 0

    def hold(self, stream: Stream, size: int) -> None:
        """It is for this stream."""
        stream.receive_window -= size
        stream.untaken += size
        self.untaken += size
        if stream.receive_window < 0:
            raise StreamFault(ErrorCode.FLOW_CONTROL_ERROR, "more DATA than the stream's window")
        if self.untaken > self._limits.untaken_bytes_max:
            raise StreamFault(ErrorCode.ENHANCE_YOUR_CALM, "more DATA than all handlers of the connection take")

    def taken(self, stream: Stream, size: int) -> None:
        """Its handler took so much: the peer may send as much again."""
        stream.untaken -= size
        self.untaken -= size
        stream.owed += size
        if stream.owed >= self._limits.credit_bytes and stream.state is not HALF_CLOSED_REMOTE:
            self._write(window_update(stream.id, stream.owed))
            stream.receive_window += stream.owed
            stream.owed = 0

    def forget(self, stream: Stream) -> None:
        """A stream has ended; nobody will take what it brought."""
        self.untaken -= stream.untaken
