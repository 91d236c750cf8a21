"""What the handlers of one HTTP/2 connection do with its streams: keep them, take what arrived, answer, give up.

All of it is done at once, as far as the peer's windows let it; the rest of an answer waits in the outbox for its turn.
"""

from typing import Final

from kinference.wire.http2 import frames
from kinference.wire.http2.frames import END_STREAM, ErrorCode, FrameType, WholeAnswer
from kinference.wire.http2.guard import Guard, Http2Limits
from kinference.wire.http2.headers import TABLE_BYTES_MAX
from kinference.wire.http2.intake import Intake
from kinference.wire.http2.outbox import Outbox
from kinference.wire.http2.settings import PeerSettings, merged
from kinference.wire.http2.streams import ENDED, HALF_CLOSED_REMOTE, SENDING, WE_END, Stream, Streams
from kinference.wire.http2.streams import Event as Step

NO_TABLE: Final = b"\x20"
"""Begins a header block: the dynamic table is empty from here on. A peer that allows less than the default asks it."""


class Answers:
    """The streams of one connection from our side: told of them by the connection, and asked by their handlers."""

    def __init__(self, limits: Http2Limits, guard: Guard, streams: Streams, intake: Intake, outbox: Outbox) -> None:
        self._stream_window = limits.stream_window
        self._guard, self._streams, self._intake, self._outbox = guard, streams, intake, outbox
        self._peer = PeerSettings()
        self._peer_window = self._peer.window
        self._block_prefix = b""
        self.unopened: dict[int, int] = {}
        """Requests that came whole in this read, and their sizes. Whoever is told of one either answers it at once and
        whole, which takes no stream, or opens it."""

    def heed(self, payload: bytes) -> int:
        """SETTINGS of the peer. Returns by how much the window of each stream grows, less than 0 where it shrinks."""
        before, self._peer = self._peer, merged(self._peer, payload)
        self._outbox.frame_bytes, self._peer_window = self._peer.frame_bytes, self._peer.window
        if self._peer.header_table_bytes < TABLE_BYTES_MAX:
            self._block_prefix = NO_TABLE
        return self._peer.window - before.window

    # --- streams ---------------------------------------------------------------------------------

    def begin(self, stream_id: int) -> Stream:
        """A stream that the peer has opened."""
        stream = Stream(stream_id, self._peer_window, self._stream_window)
        self._streams.open(stream)
        return stream

    def open(self, stream_id: int) -> None:
        """Keep a request that came whole, if it is not kept yet: it goes on, and its bytes are held until it ends."""
        size = self.unopened.pop(stream_id, None)
        if size is not None:
            stream = self.begin(stream_id)
            stream.state = HALF_CLOSED_REMOTE
            self._intake.hold(size, stream)

    def consume(self, stream_id: int, size: int) -> None:
        """Bytes of a stream were taken: the peer may send as many again on it."""
        stream = self._streams.live.get(stream_id)
        if stream is not None:
            self._intake.taken(stream, size)

    def reset(self, stream_id: int, code: ErrorCode) -> None:
        """End a stream at once; what waits to be sent on it is dropped."""
        stream = self._streams.live.get(stream_id)
        if stream is not None:
            self._outbox.write(frames.rst_stream(stream_id, code))
            self.drop(stream, Step.WE_RESET)

    def drop(self, stream: Stream, step: Step) -> None:
        """A stream ends before its time; what waits to be sent on it is dropped."""
        self._outbox.forget(stream)
        self._streams.advance(stream, step)
        self._intake.forget(stream)

    # --- answers ---------------------------------------------------------------------------------

    def is_sendable(self, stream_id: int) -> bool:
        """Whether we may still send on a stream."""
        stream = self._streams.live.get(stream_id)
        return stream is not None and stream.state in SENDING

    def send_headers(self, stream_id: int, block: bytes) -> None:
        """Begin an answer. The block is made by `headers.literal`."""
        self._outbox.write(self._headers_frame(0, stream_id, block))

    def send_data(self, stream_id: int, data: bytes, prefix: bytes = b"") -> bool:
        """Send bytes of a body. False when some have to wait: StreamDrained tells when they have gone."""
        return self._outbox.send(self._streams.live[stream_id], data, prefix)

    def send_trailers(self, stream_id: int, block: bytes) -> None:
        """End an answer whose bytes have all gone. What the peer still sends on the stream is of no interest then."""
        self._end(stream_id, self._headers_frame(END_STREAM, stream_id, block))

    def takes(self, stream_id: int, size: int) -> bool:
        """Whether so many bytes of an answer can go at once, and its end with them."""
        if self._block_prefix:
            return False
        if stream_id in self.unopened:
            return self._outbox.takes(size, self._peer_window)
        stream = self._streams.live.get(stream_id)
        return stream is not None and _has_heard_all(stream) and self._outbox.takes(size, stream.send_window)

    def send_answer(self, stream_id: int, answer: WholeAnswer, data: bytes) -> bool:
        """Send an answer whole, where the peer has sent all and nothing is in the way. False: nothing was sent."""
        if self._block_prefix:
            return False
        if stream_id in self.unopened:
            if not self._outbox.send_whole(stream_id, self._peer_window, answer, data):
                return False
            del self.unopened[stream_id]
            self._streams.remember(stream_id, ENDED)
            self._guard.requests_done += 1
            return True
        stream = self._streams.live.get(stream_id)
        if stream is None or not _has_heard_all(stream):
            return False
        if not self._outbox.send_whole(stream_id, stream.send_window, answer, data):
            return False
        self._finish(stream)
        return True

    def send_end(self, stream_id: int) -> None:
        """The same without trailers."""
        self._end(stream_id, frames.frame(FrameType.DATA, END_STREAM, stream_id))

    def _end(self, stream_id: int, last: bytes) -> None:
        stream = self._streams.live[stream_id]
        assert stream.queue is None, "an answer ends after its last byte"
        self._outbox.write(last)
        self._finish(stream)

    def _finish(self, stream: Stream) -> None:
        """We have sent all."""
        self._streams.advance(stream, WE_END)
        if stream.state is ENDED:
            if stream.untaken:
                self._intake.forget(stream)
            self._guard.requests_done += 1
        else:
            self._outbox.write(frames.rst_stream(stream.id, ErrorCode.NO_ERROR))
            self.drop(stream, Step.WE_RESET)

    def _headers_frame(self, flags: int, stream_id: int, block: bytes) -> bytes:
        if self._block_prefix:
            block, self._block_prefix = self._block_prefix + block, b""
        return frames.headers(flags, stream_id, block, self._peer.frame_bytes)


def _has_heard_all(stream: Stream) -> bool:
    """Whether the peer has sent all, and nothing waits to be sent to it."""
    return stream.state is HALF_CLOSED_REMOTE and stream.queue is None
