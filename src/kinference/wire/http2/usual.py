"""Requests as nearly all of them come: HEADERS whose block is known, and all DATA behind it, mostly in one frame.

They are read one behind the other, in a loop that asks nobody: whether a stream may be opened, what its head means and
whether its bytes may come is looked up in place. It takes only what would be told of in the same way if it were read
frame by frame; the first that is anything else is left to be.
"""

from typing import Final, Generic, TypeVar

from kinference.wire.http2 import frames
from kinference.wire.http2.events import Event, RequestReceived
from kinference.wire.http2.frames import END_HEADERS, END_STREAM, HEADER_BYTES, FrameType
from kinference.wire.http2.guard import Http2Limits
from kinference.wire.http2.intake import Intake
from kinference.wire.http2.reader import all_data
from kinference.wire.http2.streams import Streams

Head = TypeVar("Head")

_HEADERS: Final = int(FrameType.HEADERS)
_UNPACK: Final = frames.HEADER.unpack_from
NUMBER_BITS: Final = 0x8000_0001
"""Of a stream's number: the reserved one, and that which tells it for a client's."""


class UsualRequests(Generic[Head]):
    """Those of one connection. `known` and `unopened` are the connection's own, and so are the events."""

    def __init__(
        self, limits: Http2Limits, streams: Streams, intake: Intake, known: dict[bytes, Head], unopened: dict[int, int]
    ) -> None:
        self._mark_max, self._streams_max = limits.frame_bytes_max << 8 | 0xFF, limits.streams_max
        self._streams, self._live, self._intake = streams, streams.live, intake
        self._known, self._unopened = known, unopened
        self.events: list[Event[Head]] = []
        self.come = True
        """Whether the next request may be one: where each block is new, none is."""

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
            mark, flags, whose = _UNPACK(buffer, stop)
            after = begin + (mark >> 8)
            if flags > END_STREAM or whose != stream_id or mark & 0xFF or mark > mark_max or after > end:
                break
            head = known.get(buffer[start:stop])
            if head is None or stream_id & NUMBER_BITS != 1:
                self.come = head is not None
                break
            if flags:
                data = buffer[begin:after]
            else:
                rest = all_data(buffer, stop, stream_id, mark_max)
                if rest is None:
                    break
                data, after = rest
            size = len(data)
            if size > room:
                break
            room, last_id, left, at = room - size, stream_id, left - 1, after
            unopened[stream_id] = size
            events.append(RequestReceived(stream_id, head, True, data))
        intake.owed += intake.room - room
        intake.room, streams.last_id = room, last_id
        return at
