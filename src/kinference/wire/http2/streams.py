"""The streams of one connection and the table of their lives (RFC 9113, section 5.1).

A server that pushes nothing knows four states of a stream that it keeps, and three ways in which one came to its end.
The ways are remembered for the last few hundred streams only, because what may still arrive for a stream depends on
how it ended: what was under way when we reset it is ignored, what follows the peer's own end is a fault.
"""

from array import array
from collections import deque
from enum import IntEnum, auto
from typing import Final

from kinference.wire.http2.frames import ConnectionFault, ErrorCode, FrameType, StreamFault

REMEMBERED_MAX: Final = 512
"""Each has the place of its number: a stream is forgotten when one that began a multiple of so many later ends."""
STATE_BITS: Final = 8
STATE_MASK: Final = 0xFF


class State(IntEnum):
    """Of a stream. The second half are ways in which streams have ended."""

    IDLE = auto()
    OPEN = auto()
    HALF_CLOSED_REMOTE = auto()
    """The peer has sent all; we have not."""
    HALF_CLOSED_LOCAL = auto()
    """We have sent all; the peer has not."""
    ENDED = auto()
    """Both have sent all."""
    RESET_BY_PEER = auto()
    RESET_BY_US = auto()
    FORGOTTEN = auto()
    """Too long ago to know, or skipped by the peer, which ends a stream too."""


class Event(IntEnum):
    PEER_ENDS = auto()
    WE_END = auto()
    PEER_RESETS = auto()
    WE_RESET = auto()


NEXT: Final[dict[tuple[State, Event], State]] = {
    (State.OPEN, Event.PEER_ENDS): State.HALF_CLOSED_REMOTE,
    (State.OPEN, Event.WE_END): State.HALF_CLOSED_LOCAL,
    (State.HALF_CLOSED_LOCAL, Event.PEER_ENDS): State.ENDED,
    (State.HALF_CLOSED_REMOTE, Event.WE_END): State.ENDED,
    **{
        (state, event): end
        for state in (State.OPEN, State.HALF_CLOSED_REMOTE, State.HALF_CLOSED_LOCAL)
        for event, end in ((Event.PEER_RESETS, State.RESET_BY_PEER), (Event.WE_RESET, State.RESET_BY_US))
    },
}
OPEN: Final = State.OPEN
HALF_CLOSED_REMOTE: Final = State.HALF_CLOSED_REMOTE
ENDED: Final = State.ENDED
PEER_ENDS: Final = Event.PEER_ENDS
WE_END: Final = Event.WE_END
"""By names of their own: reaching the member of an enumeration costs ten times as much."""
SENDING: Final = frozenset({State.OPEN, State.HALF_CLOSED_REMOTE})
"""States in which we may send."""


class Verdict(IntEnum):
    """What becomes of a frame that came for a stream in some state."""

    TAKE = auto()
    IGNORE = auto()
    STREAM_CLOSED = auto()
    CONNECTION_CLOSED = auto()
    """STREAM_CLOSED as a fault of the connection."""
    PROTOCOL_ERROR = auto()


_D: Final = FrameType.DATA
_H: Final = FrameType.HEADERS
_R: Final = FrameType.RST_STREAM
_W: Final = FrameType.WINDOW_UPDATE
_TAKE: Final = Verdict.TAKE
_SKIP: Final = Verdict.IGNORE
_BAD: Final = Verdict.PROTOCOL_ERROR
_LATE: Final = Verdict.STREAM_CLOSED
_DEAD: Final = Verdict.CONNECTION_CLOSED

VERDICTS: Final[dict[State, dict[FrameType, Verdict]]] = {
    State.IDLE: {_D: _BAD, _H: _TAKE, _R: _BAD, _W: _BAD},
    State.OPEN: {_D: _TAKE, _H: _TAKE, _R: _TAKE, _W: _TAKE},
    State.HALF_CLOSED_LOCAL: {_D: _TAKE, _H: _TAKE, _R: _TAKE, _W: _SKIP},
    State.HALF_CLOSED_REMOTE: {_D: _LATE, _H: _LATE, _R: _TAKE, _W: _TAKE},
    State.ENDED: {_D: _LATE, _H: _DEAD, _R: _SKIP, _W: _SKIP},
    State.RESET_BY_PEER: {_D: _LATE, _H: _DEAD, _R: _SKIP, _W: _SKIP},
    State.RESET_BY_US: {_D: _SKIP, _H: _SKIP, _R: _SKIP, _W: _SKIP},
    State.FORGOTTEN: {_D: _LATE, _H: _BAD, _R: _SKIP, _W: _SKIP},
}
"""PRIORITY is taken in every state, and read by nobody."""


class Stream:
    """One stream that has not ended both ways."""

    __slots__ = ("body_left", "id", "owed", "queue", "receive_window", "send_window", "state", "untaken")

    def __init__(self, stream_id: int, send_window: int, receive_window: int) -> None:
        self.id = stream_id
        self.state = OPEN
        self.send_window = send_window
        self.receive_window = receive_window
        self.untaken = 0
        """Bytes of DATA that arrived and that nobody has taken yet."""
        self.owed = 0
        """Bytes taken for which the peer got no credit yet."""
        self.body_left: int | None = None
        """What is still to come of a declared content length."""
        self.queue: deque[memoryview] | None = None
        """What waits to be sent."""


class Streams:
    """All live streams, and how the latest of the others have ended."""

    def __init__(self) -> None:
        self.live: dict[int, Stream] = {}
        self.last_id = 0
        self._ended = array("Q")
        """An id and a state in each. Objects would outlive all that was made beside them, and wherever one does,
        the allocator keeps a megabyte."""

    def state_of(self, stream_id: int) -> State:
        """The state of any stream that a client may name."""
        stream = self.live.get(stream_id)
        if stream is not None:
            return stream.state
        if stream_id > self.last_id:
            return State.IDLE
        ended = self._ended[(stream_id >> 1) % REMEMBERED_MAX] if self._ended else 0
        return State(ended & STATE_MASK) if ended >> STATE_BITS == stream_id else State.FORGOTTEN

    def open(self, stream: Stream) -> None:
        """A stream begins, and with it every idle one of a lower id has ended."""
        self.last_id = max(self.last_id, stream.id)
        self.live[stream.id] = stream

    def advance(self, stream: Stream, event: Event) -> None:
        """One step of a stream's life. A step that leads out of it takes the stream from the live ones."""
        stream.state = state = NEXT[stream.state, event]
        if state >= ENDED:
            stream_id = stream.id
            del self.live[stream_id]
            self.remember(stream_id, state)

    def remember(self, stream_id: int, state: State) -> None:
        """How a stream came to its end."""
        ended = self._ended
        if not ended:
            ended.frombytes(bytes(8 * REMEMBERED_MAX))
        ended[(stream_id >> 1) % REMEMBERED_MAX] = stream_id << STATE_BITS | state


def check(kind: FrameType, stream_id: int, state: State) -> bool:
    """Whether a frame is for use. Raises what its sender has to be told otherwise."""
    verdict = VERDICTS[state][kind]
    if verdict is Verdict.TAKE:
        return True
    if verdict is Verdict.IGNORE:
        return False
    what = f"{kind.name} on stream {stream_id}, which is {state.name.lower()}"
    if verdict is Verdict.STREAM_CLOSED:
        raise StreamFault(ErrorCode.STREAM_CLOSED, what)
    code = ErrorCode.STREAM_CLOSED if verdict is Verdict.CONNECTION_CLOSED else ErrorCode.PROTOCOL_ERROR
    raise ConnectionFault(code, what)
