"""Pushed bodies, from the first chunk until Pick takes them or their time is over.

The life of a body is the table below. It is PROVISIONAL while the reply that names its id is being written: with some
carriers a push that was reset looks like one that ended, and only a reply that could be written tells them apart. A
Pick that names a provisional id proves that its caller read the reply, so it takes the body as if it were stored.
"""

from collections import deque
from collections.abc import Callable
from enum import auto
from itertools import islice
from random import Random
from typing import Final

from kinference.errors import BodyConsumed, BudgetExceeded, InvalidArgument, UnknownId
from kinference.ids import Seconds, StreamId
from kinference.picker.account import Account
from kinference.picker.limits import EXPIRE_AT_ONCE, PickerLimits
from kinference.picker.numbering import draw_id
from kinference.picker.timeline import Timeline
from kinference.structs import EntityLeaf
from kinference.vocabulary import Keyed
from kinference.wire.pieces import Pieces

TOMBSTONES_LATE: Final[Seconds] = 10.0


class State(Keyed):
    OPEN = auto()
    PROVISIONAL = auto()
    STORED = auto()


class Event(Keyed):
    FINISH = auto()
    COMMIT = auto()


# Read once: Python 3.11 finds a member of an enum by a hook of its metaclass, at ten times the price of a constant.
OPEN: Final = State.OPEN
PROVISIONAL: Final = State.PROVISIONAL
STORED: Final = State.STORED
FINISH: Final = Event.FINISH
COMMIT: Final = Event.COMMIT

NEXT: Final = {
    (OPEN, FINISH): PROVISIONAL,
    (PROVISIONAL, COMMIT): STORED,
}
PICKABLE: Final = frozenset({PROVISIONAL, STORED})
DISCARDABLE: Final = frozenset({OPEN, PROVISIONAL})
"""States in which the end of the push's own stream ends the body too."""


class Body(EntityLeaf):
    """The bytes under one id."""

    pieces: Pieces
    declared: int | None
    state: State = OPEN
    empty_chunks: int = 0
    held: bool = False
    """A Pick of it waits: it cannot expire, and no other Pick gets it."""

    def advance(self, event: Event) -> None:
        self.state = NEXT[self.state, event]


class Bodies:
    """All bodies that were not picked yet, and the tombstones of those that were.

    `make_room` is told how many bytes are wanted before a push is refused because the server's buffer is full.
    """

    def __init__(
        self, limits: PickerLimits, account: Account, random: Random, make_room: Callable[[int], None]
    ) -> None:
        self._limits, self._account, self._random, self._make_room = limits, account, random, make_room
        self._live: dict[StreamId, Body] = {}
        self._unpicked: Timeline[StreamId] = Timeline(limits.body_ttl)
        self._consumed: Timeline[StreamId] = Timeline(limits.body_ttl)

    def __len__(self) -> int:
        return len(self._live)

    def open(self, declared: int | None) -> StreamId:
        """Begin a body. Nothing is reserved for a declared length; one that can never fit is refused now."""
        if declared is not None:
            self._check_declared(declared)
        stream_id = StreamId(draw_id(self._random, self._live, self._consumed))
        self._live[stream_id] = Body(Pieces(self._limits.pull_chunk_max_bytes), declared)
        return stream_id

    def put(self, declared: int | None, chunk: bytes | None, now: Seconds) -> StreamId:
        """Keep a body that came whole, in one chunk or none, as if it had gone through all its states."""
        if declared is not None:
            self._check_declared(declared)
        body = Body(Pieces(self._limits.pull_chunk_max_bytes), declared, STORED)
        size = 0 if chunk is None else len(chunk)
        if chunk is not None:
            self._check(body, size)
        if declared is not None and size != declared:
            raise _other_length(size, declared)
        if chunk:
            self._account.charge(size)
            body.pieces.append(chunk)
        stream_id = StreamId(draw_id(self._random, self._live, self._consumed))
        self._live[stream_id] = body
        self._unpicked.start(stream_id, now)
        return stream_id

    def _check_declared(self, declared: int) -> None:
        if declared > self._limits.body_max_bytes:
            raise BudgetExceeded(
                f"the declared length of {declared} is over the limit of {self._limits.body_max_bytes} bytes",
                "body_max_bytes",
            )
        self.check_room(declared)

    def append(self, stream_id: StreamId, chunk: bytes) -> None:
        """Add to an open body. A chunk that breaks a rule ends the body and gives all its bytes back."""
        body = self._open_body(stream_id)
        try:
            self._check(body, len(chunk))
        except (BudgetExceeded, InvalidArgument):
            self.discard(stream_id)
            raise
        if not chunk:
            body.empty_chunks += 1
            return
        self._account.charge(len(chunk))
        body.pieces.append(chunk)

    def _check(self, body: Body, length: int) -> None:
        limits, size = self._limits, body.pieces.size + length
        if length > limits.chunk_max_bytes:
            raise BudgetExceeded(
                f"a chunk of {length} bytes is over the limit of {limits.chunk_max_bytes}", "chunk_max_bytes"
            )
        if body.declared is not None and size > body.declared:
            raise InvalidArgument(f"more than the declared length of {body.declared} bytes was sent")
        if size > limits.body_max_bytes:
            raise BudgetExceeded(f"the body is over the limit of {limits.body_max_bytes} bytes", "body_max_bytes")
        if not length and body.empty_chunks >= limits.empty_chunks_max:
            raise BudgetExceeded(f"more than {limits.empty_chunks_max} empty chunks in one push", "empty_chunks_max")
        self.check_room(length)

    def check_room(self, wanted: int) -> None:
        """Raise BudgetExceeded unless so many more bytes fit into the server's buffer."""
        if wanted <= self._account.budget - self._account.held:
            return
        self._make_room(wanted)
        if wanted > self._account.free:
            raise BudgetExceeded(f"the server's buffer of {self._account.budget} bytes is full", "buffer_max_bytes")

    def finish(self, stream_id: StreamId, now: Seconds) -> int:
        """The push half-closed: the body is complete, and provisional. Returns its length."""
        body = self._open_body(stream_id)
        size = body.pieces.size
        if body.declared is not None and size != body.declared:
            self.discard(stream_id)
            raise _other_length(size, body.declared)
        body.advance(FINISH)
        self._unpicked.start(stream_id, now)
        return size

    def commit(self, stream_id: StreamId) -> None:
        """The reply was written. A body that was picked or has expired meanwhile is past this."""
        body = self._live.get(stream_id)
        if body is not None:
            body.advance(COMMIT)

    def discard(self, stream_id: StreamId) -> None:
        """The push's stream ended. Its body goes unless it was committed or picked."""
        body = self._live.get(stream_id)
        if body is not None and body.state in DISCARDABLE and not body.held:
            self._drop(stream_id)

    def peek(self, stream_id: StreamId) -> Pieces:
        """What a Pick of this id would get. Raises as Pick does."""
        body = self._live.get(stream_id)
        if body is not None and body.state in PICKABLE:
            if body.held:
                raise BodyConsumed("another Pick of this body waits for its answer")
            return body.pieces
        if stream_id in self._consumed:
            raise BodyConsumed("an earlier Pick consumed this body")
        raise UnknownId("no complete body has this stream_id: never pushed, expired or released")

    def hold(self, stream_id: StreamId) -> None:
        """A Pick of it waits."""
        self._live[stream_id].held = True
        self._unpicked.stop(stream_id)

    def let_go(self, stream_id: StreamId, now: Seconds) -> None:
        """That Pick waits no longer. Unless it consumes the body, the body's time runs anew."""
        self._live[stream_id].held = False
        self._unpicked.start(stream_id, now)

    def consume(self, stream_id: StreamId, now: Seconds) -> Pieces:
        """Pick takes the body, and with it the duty to release its bytes; a tombstone stays."""
        pieces = self.peek(stream_id)
        del self._live[stream_id]
        self._unpicked.stop(stream_id)
        self._consumed.start(stream_id, now)
        if len(self._consumed) > self._limits.tombstones_max:
            self._consumed.pop_oldest()
        return pieces

    def deadline(self) -> Seconds | None:
        """When the next body is due. Tombstones hold no bytes, so they may be late, and leave many at a time."""
        unpicked, tombstone = self._unpicked.deadline(), self._consumed.deadline()
        if tombstone is None:
            return unpicked
        late = tombstone + TOMBSTONES_LATE
        return late if unpicked is None else min(unpicked, late)

    def expire(self, now: Seconds) -> int:
        """Reclaim bodies that nobody picked in time, some at once. Returns how many."""
        deque(islice(self._consumed.pop_due(now), EXPIRE_AT_ONCE), maxlen=0)
        expired = list(islice(self._unpicked.pop_due(now), EXPIRE_AT_ONCE))
        for stream_id in expired:
            self._drop(stream_id)
        return len(expired)

    def pack(self) -> None:
        """Hold what there is in tables of its size."""
        self._live = dict(self._live)
        self._unpicked.pack()
        self._consumed.pack()

    def _drop(self, stream_id: StreamId) -> None:
        self._account.release(self._live.pop(stream_id).pieces.size)
        self._unpicked.stop(stream_id)

    def _open_body(self, stream_id: StreamId) -> Body:
        body = self._live.get(stream_id)
        if body is None or body.state is not OPEN:
            raise UnknownId("this push is over")
        return body


def _other_length(size: int, declared: int) -> InvalidArgument:
    return InvalidArgument(f"{size} bytes were sent where {declared} were declared")
