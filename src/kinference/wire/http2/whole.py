"""Requests that are all here when they are read: HEADERS in one frame, and all DATA behind it up to the stream's end.

Nearly all are. They are read one behind the other, in a loop that asks nobody: whether a stream may be opened, what its
head means and whether its bytes may come is mostly looked up in place. Anything else is left to be read frame by frame,
which comes to the same.
"""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from kinference.wire.http2 import frames
from kinference.wire.http2.answers import Answers
from kinference.wire.http2.events import Event, RequestReceived
from kinference.wire.http2.frames import END_HEADERS, END_STREAM, HEADER_BYTES, FrameType, StreamFault
from kinference.wire.http2.guard import Http2Limits
from kinference.wire.http2.heads import Heads
from kinference.wire.http2.intake import Intake
from kinference.wire.http2.reader import all_data
from kinference.wire.http2.streams import Streams

Head = TypeVar("Head")

_HEADERS: Final = int(FrameType.HEADERS)
_UNPACK: Final = frames.HEADER.unpack_from
NUMBER_BITS: Final = 0x8000_0001
"""Of a stream's number: the reserved one, and that which tells it for a client's."""


class WholeRequests(Generic[Head]):
    """Those of one connection, whose parts all of these are. `blame` is told of a stream whose head breaks a rule."""

    def __init__(
        self, limits: Http2Limits, streams: Streams, heads: Heads[Head], intake: Intake, answers: Answers
    ) -> None:
        self._mark_max, self._streams_max = limits.frame_bytes_max << 8 | 0xFF, limits.streams_max
        self._streams, self._live, self._heads, self._known = streams, streams.live, heads, heads.known
        self._intake, self._answers, self._unopened = intake, answers, answers.unopened
        self.events: list[Event[Head]] = []
        """Where they are told."""
        self.blame: Callable[[int, StreamFault], None] = _raise

    def read(self, buffer: bytes, at: int) -> int:
        """Read those that stand here. Returns where something else begins: `at`, if that is at once."""
        known, unopened, events, mark_max, end = self._known, self._unopened, self.events, self._mark_max, len(buffer)
        streams, intake = self._streams, self._intake
        room, last_id, left = intake.room, streams.last_id, self._streams_max - len(self._live) - len(unopened)
        while (start := at + HEADER_BYTES) <= end and left > 0:
            mark, flags, stream_id = _UNPACK(buffer, at)
            stop = start + (mark >> 8)
            begin = stop + HEADER_BYTES
            if flags != END_HEADERS or mark & 0xFF != _HEADERS or begin > end or stream_id <= last_id:
                break
            if stream_id & NUMBER_BITS != 1:
                break
            mark, flags, whose = _UNPACK(buffer, stop)
            after = begin + (mark >> 8)
            if flags > END_STREAM or whose != stream_id or mark & 0xFF or mark > mark_max or after > end:
                break
            if flags:
                data = buffer[begin:after]
            else:
                rest = all_data(buffer, stop, stream_id, mark_max)
                if rest is None:
                    break
                data, after = rest
            head = known.get(buffer[start:stop])
            if head is None:
                if stop - start > mark_max >> 8:
                    break
                head = self._meaning(stream_id, buffer[start:stop])
            size, last_id, left = len(data), stream_id, left - 1
            if head is not None and size <= room:  # the hot path
                room -= size
            else:
                self._count(room)
                if head is None or not self._passes(stream_id, head, size):
                    at = stop
                    break
                room = intake.room
            unopened[stream_id] = size
            events.append(RequestReceived(stream_id, head, True, data))
            at = after
        self._count(room)
        streams.last_id = last_id
        return at

    def _count(self, room: int) -> None:
        """So much of the room is left, and the rest is owed."""
        intake = self._intake
        intake.owed += intake.room - room
        intake.room = room

    def _meaning(self, stream_id: int, block: bytes) -> Head | None:
        """What a block means that is not known. None where its DATA is to be read by itself."""
        self._streams.last_id = stream_id
        try:
            head, body_left = self._heads.request(block)
        except StreamFault as fault:
            self.blame(stream_id, fault)
            return None
        if body_left is None:
            return head
        self._begin(stream_id, head, body_left)
        return None

    def _passes(self, stream_id: int, head: Head, size: int) -> bool:
        """Whether so much DATA needs no look after all. It is to be read by itself otherwise."""
        if self._intake.passes(size):
            return True
        self._begin(stream_id, head, None)
        return False

    def _begin(self, stream_id: int, head: Head, body_left: int | None) -> None:
        self._answers.begin(stream_id).body_left = body_left
        self.events.append(RequestReceived(stream_id, head, False))


def _raise(_stream_id: int, fault: StreamFault) -> None:
    raise fault
