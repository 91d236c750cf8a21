"""Sending: the two levels of flow control, and the turns of the streams that wait for them (RFC 9113, section 5.2).

What cannot be sent yet is kept as views of its sender's own bytes. Streams that wait for the connection or for the
shell take turns, a frame each, so that a large answer holds up no small one.
"""

from collections import deque
from collections.abc import Iterator

from kinference.wire.http2.frames import (
    FRAME_BYTES_DEFAULT,
    HEADER,
    HEADER_BYTES,
    WINDOW_DEFAULT,
    WholeAnswer,
)
from kinference.wire.http2.streams import Stream


class Outbox:
    """Bytes on their way to the peer."""

    def __init__(self, output_bytes_max: int) -> None:
        self.window = WINDOW_DEFAULT
        self.frame_bytes = FRAME_BYTES_DEFAULT
        self.paused = False
        """Set while the shell can take no more."""
        self._output_bytes_max = output_bytes_max
        self._output: list[bytes | memoryview] = []
        self._size = 0
        self._waiting: dict[int, Stream] = {}
        """Streams with bytes and a window of their own for them, in the order of their turns."""

    @property
    def size(self) -> int:
        """Bytes that the shell has not taken yet."""
        return self._size

    @property
    def is_full(self) -> bool:
        """Whether the shell has to take some before more goes."""
        return self._size >= self._output_bytes_max

    @property
    def has_turns(self) -> bool:
        """Whether some stream would send if it were asked now."""
        return bool(self._waiting) and self.window > 0 and not self.paused and self._size < self._output_bytes_max

    def take(self) -> bytes:
        """What is to be written now."""
        output = b"".join(self._output)
        self._output.clear()
        self._size = 0
        return output

    def write(self, frames: bytes) -> None:
        """Frames that no window holds back."""
        self._output.append(frames)
        self._size += len(frames)

    def send(self, stream: Stream, data: bytes, prefix: bytes = b"") -> bool:
        """Send DATA as far as it goes, the prefix in front; the rest waits. True when nothing waits."""
        size = len(prefix) + len(data)
        if stream.queue is None and size <= self.frame_bytes and self.takes(size, stream.send_window):
            self.window -= size
            stream.send_window -= size
            self._output += (HEADER.pack(size << 8, 0, stream.id), prefix, data)
            self._size += size + HEADER_BYTES
            return True
        if stream.queue is None:
            stream.queue = deque()
        stream.queue += (memoryview(prefix), memoryview(data)) if prefix else (memoryview(data),)
        while self._may_send(stream):
            self._send_frame(stream)
        return not self._keeps_waiting(stream)

    def send_whole(self, stream_id: int, window: int, answer: WholeAnswer, data: bytes) -> bool:
        """Send an answer from its head to its end, or nothing of it: False where the DATA would have to wait."""
        size = answer.prefix_bytes + len(data)
        if size > self.window or size > window or self.paused or self._size >= self._output_bytes_max:
            return False
        if size <= self.frame_bytes:
            number = stream_id.to_bytes(4)
            begin, before, behind, end, trailers, total = answer.known.get(size) or answer.measured(size)
            self._output += (begin, number, before, number, behind, data, end, number, trailers)
            self._size += total
        elif size <= self._output_bytes_max and not self._waiting:
            self._output += answer.cut(stream_id, data, self.frame_bytes)
            self._size += answer.framing_bytes + size + (size - 1) // self.frame_bytes * HEADER_BYTES
        else:
            return False
        self.window -= size
        return True

    def turn(self) -> Iterator[Stream]:
        """Let the waiting streams send until the windows or the output are full. Yields those that have sent all."""
        while self.has_turns:
            stream = next(iter(self._waiting.values()))
            del self._waiting[stream.id]
            if stream.send_window > 0:  # the peer's settings may have taken it back
                self._send_frame(stream)
            if not self._keeps_waiting(stream):
                yield stream

    def window_grew(self, stream: Stream) -> None:
        """A stream may send again."""
        if stream.queue is not None:
            self._keeps_waiting(stream)

    def forget(self, stream: Stream) -> None:
        """Drop what a stream has not sent."""
        stream.queue = None
        self._waiting.pop(stream.id, None)

    def takes(self, size: int, window: int) -> bool:
        """Whether so many bytes can go at once on a stream with such a window on which nothing waits.

        In more than a frame they go ahead of nobody's turn, and are no more than the output holds.
        """
        return (
            size <= self.window
            and size <= window
            and not self.paused
            and self._size < self._output_bytes_max
            and (size <= self.frame_bytes or (size <= self._output_bytes_max and not self._waiting))
        )

    def _may_send(self, stream: Stream) -> bool:
        return (
            bool(stream.queue)
            and stream.send_window > 0
            and self.window > 0
            and not self.paused
            and self._size < self._output_bytes_max
            and not self._waiting
        )

    def _keeps_waiting(self, stream: Stream) -> bool:
        """Line a stream up if it has bytes left; if it has none, it waits no more."""
        if not stream.queue:
            stream.queue = None
            return False
        if stream.send_window > 0:
            self._waiting[stream.id] = stream
        return True

    def _send_frame(self, stream: Stream) -> None:
        assert stream.queue, "a stream has its turn without bytes"
        data = stream.queue.popleft()
        size = min(len(data), self.frame_bytes, stream.send_window, self.window)
        if size < len(data):
            stream.queue.appendleft(data[size:])
        self.window -= size
        stream.send_window -= size
        self._output += (HEADER.pack(size << 8, 0, stream.id), data[:size])
        self._size += size + HEADER_BYTES
