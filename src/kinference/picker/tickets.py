"""Picked requests: two lives behind one response id.

The *bytes* wait to be pulled, are pulled once, and are gone. The *reservation* (what the ledger counts in flight) lives
until the final report, an abort, or its time is over. Each has its own clock:

    waiting      from Pick, or from a pull that broke off: nothing shows that the destination got the prompt.
    stalled      from the last piece that a running pull took.
    dispatched   from the last sign that the destination is at work: a complete pull, a first-token report.

A pull may outlive its ticket: a final report does not cut the last bytes short.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from enum import auto
from itertools import islice
from random import Random
from typing import Final

from kinference.errors import BudgetExceeded, KinferenceError, UnknownId
from kinference.ids import ResponseId, Seconds
from kinference.packed import packed, unpacked
from kinference.picker.account import Account
from kinference.picker.flow import Flow
from kinference.picker.limits import EXPIRE_AT_ONCE, PickerLimits
from kinference.picker.numbering import draw_id
from kinference.picker.timeline import Timeline
from kinference.vocabulary import Keyed


class State(Keyed):
    """Of a ticket's bytes."""

    UNPULLED = auto()
    PULLING = auto()
    GONE = auto()


class Event(Keyed):
    PULL = auto()
    RELEASE = auto()


# Read once: Python 3.11 finds a member of an enum by a hook of its metaclass, at ten times the price of a constant.
UNPULLED: Final = State.UNPULLED
PULLING: Final = State.PULLING
GONE: Final = State.GONE
PULL: Final = Event.PULL
RELEASE: Final = Event.RELEASE

NEXT: Final = {
    (UNPULLED, PULL): PULLING,
    (UNPULLED, RELEASE): GONE,
    (PULLING, RELEASE): GONE,
}


class Ticket:
    """One picked request. `dispatched` once a complete pull or a report says that the destination has it."""

    __slots__ = ("dispatched", "failure", "kept", "live", "pieces", "response_id", "state", "wake")

    def __init__(
        self, response_id: ResponseId, kept: Flow | bytes, pieces: tuple[bytes, ...], state: State = UNPULLED
    ) -> None:
        self.response_id = response_id
        self.kept = kept
        """The flow, packed once it is set aside."""
        self.pieces = pieces
        """What is left to pull."""
        self.state = state
        self.dispatched = False
        self.live = True
        self.failure: KinferenceError | None = None
        """Why a running pull was cut, for its carrier to tell. It is raised as a copy: what has been raised holds the
        frames that it passed, and with them this ticket and the piece that was being sent, until the collector comes.
        """
        self.wake: Callable[[], None] | None = None
        """Told when a running pull was cut: its carrier may be waiting for a reader that takes nothing."""

    @property
    def flow(self) -> Flow:
        """What the request is."""
        kept = self.kept
        if not isinstance(kept, bytes):
            return kept
        flow: Flow = unpacked(kept)
        self.kept = flow
        return flow

    @property
    def bytes_left(self) -> int:
        """To pull."""
        return sum(map(len, self.pieces)) if self.pieces else 0

    def advance(self, event: Event) -> None:
        self.state = NEXT[self.state, event]

    def set_aside(self) -> None:
        """Very many others have come, and nothing shows that the destination has it: hold it in less memory."""
        self.kept = packed(self.flow)


@dataclass(frozen=True, slots=True)
class Expired:
    """What one call reclaimed: tickets that closed unheard, and bytes that nobody took."""

    closed: tuple[Ticket, ...]
    unpulled: int
    stalled: int

    def __bool__(self) -> bool:
        return bool(self.closed or self.unpulled or self.stalled)


class Tickets:
    """All live tickets and all running pulls."""

    def __init__(self, limits: PickerLimits, account: Account, random: Random) -> None:
        self._limits, self._account, self._random = limits, account, random
        self._live: dict[ResponseId, Ticket] = {}
        self._pulls: dict[ResponseId, Ticket] = {}
        self._waiting: Timeline[ResponseId] = Timeline(limits.body_ttl)
        self._stalled: Timeline[ResponseId] = Timeline(limits.stalled_pull_ttl)
        self._dispatched: Timeline[ResponseId] = Timeline(limits.ticket_ttl)

    def __len__(self) -> int:
        return len(self._live)

    @property
    def pulls(self) -> int:
        """Pulls under way."""
        return len(self._pulls)

    def open(self, pieces: tuple[bytes, ...], flow: Flow, now: Seconds) -> Ticket:
        """A request was picked. Its bytes are in the account already; the ticket releases them."""
        response_id = ResponseId(draw_id(self._random, self._live, self._pulls))
        ticket = Ticket(response_id, flow, pieces)
        flow.response_id = response_id
        self._live[response_id] = ticket
        self._waiting.start(response_id, now)
        return ticket

    def open_pulled(self, flow: Flow, now: Seconds) -> Ticket:
        """A request was picked by whoever holds its body: there is nothing to pull, and it is on its way."""
        response_id = ResponseId(draw_id(self._random, self._live, self._pulls))
        ticket = Ticket(response_id, flow, (), GONE)
        self._live[response_id] = ticket
        self.dispatch(ticket, now)
        return ticket

    def find(self, response_id: ResponseId) -> Ticket | None:
        """The live ticket of this id."""
        return self._live.get(response_id)

    def unpulled(self, response_id: ResponseId) -> Ticket:
        """The ticket whose bytes wait under this id."""
        ticket = self._live.get(response_id)
        if ticket is None or ticket.state is not UNPULLED:
            raise UnknownId("no body waits under this response_id: never picked, pulled already, expired or released")
        return ticket

    def pulled(self, ticket: Ticket, now: Seconds) -> None:
        """All bytes that waited were taken at once: the one pull has begun and ended."""
        ticket.advance(RELEASE)
        self._account.release(ticket.bytes_left)
        ticket.pieces = ()
        self._waiting.stop(ticket.response_id)
        self.dispatch(ticket, now)

    def claim(self, response_id: ResponseId, wake: Callable[[], None] | None, now: Seconds) -> Ticket:
        """Begin the one pull of a ticket's bytes."""
        ticket = self.unpulled(response_id)
        ticket.advance(PULL)
        ticket.wake = wake
        self._pulls[response_id] = ticket
        self._waiting.stop(response_id)
        self._stalled.start(response_id, now)
        return ticket

    def next_piece(self, ticket: Ticket) -> bytes | None:
        """The piece to send; None when all were sent. Raises when the pull was cut."""
        if ticket.failure is not None:
            raise copy(ticket.failure)
        return ticket.pieces[0] if ticket.pieces else None

    def piece_sent(self, ticket: Ticket, now: Seconds) -> None:
        """The piece in front was taken: its bytes are no longer ours, and the pull is not stalled."""
        if ticket.failure is not None:
            raise copy(ticket.failure)
        sent, *left = ticket.pieces
        ticket.pieces = tuple(left)
        self._account.release(len(sent))
        self._stalled.start(ticket.response_id, now)

    def end_pull(self, ticket: Ticket, now: Seconds) -> None:
        """The pull is over: complete, which dispatches the ticket, or broken off."""
        if ticket.state is not PULLING:
            return
        complete = not ticket.pieces
        self._release(ticket)
        if not ticket.live:
            return
        if complete:
            self.dispatch(ticket, now)
        if not ticket.dispatched:
            self._waiting.start(ticket.response_id, now)

    def dispatch(self, ticket: Ticket, now: Seconds) -> None:
        """A sign that the destination is at work on the request: its long clock begins, or begins anew."""
        ticket.dispatched = True
        self._dispatched.start(ticket.response_id, now)

    def close(self, ticket: Ticket) -> None:
        """The reservation ends. Bytes that nobody pulls go with it; a running pull may finish."""
        ticket.live = False
        del self._live[ticket.response_id]
        self._waiting.stop(ticket.response_id)
        self._dispatched.stop(ticket.response_id)
        if ticket.state is UNPULLED:
            self._release(ticket)

    def cut_pull(self, ticket: Ticket, failure: KinferenceError, now: Seconds) -> None:
        """End a running pull from our side; its carrier learns why. Without one, nothing happens."""
        if ticket.state is not PULLING:
            return
        ticket.failure = failure
        wake = ticket.wake
        self.end_pull(ticket, now)
        if wake is not None:
            wake()

    def shed(self, now: Seconds) -> bool:
        """Cut the pull that has been stalled longest, if any has been for the grace time. True if one was cut."""
        response_id = self._stalled.oldest_since(now - self._limits.stall_grace)
        if response_id is None:
            return False
        failure = BudgetExceeded("the pull took nothing while the server's buffer was full")
        self.cut_pull(self._pulls[response_id], failure, now)
        return True

    def deadline(self) -> Seconds | None:
        """When the next thing is due."""
        deadlines = (self._waiting.deadline(), self._stalled.deadline(), self._dispatched.deadline())
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def expire(self, now: Seconds) -> Expired:
        """Reclaim what is due, some at once."""
        stalled = self._expire_stalled(now)
        closed: list[Ticket] = []
        unpulled = 0
        for response_id in islice(self._waiting.pop_due(now), EXPIRE_AT_ONCE):
            ticket = self._live[response_id]
            if ticket.state is UNPULLED:
                unpulled += 1
                self._release(ticket)
            if not ticket.dispatched:
                closed.append(ticket)
        closed += (self._live[key] for key in islice(self._dispatched.pop_due(now), EXPIRE_AT_ONCE))
        for ticket in closed:
            self.close(ticket)
        return Expired(tuple(closed), unpulled, stalled)

    def pack(self) -> None:
        """Hold what there is in tables of its size."""
        self._live, self._pulls = dict(self._live), dict(self._pulls)
        for timeline in (self._waiting, self._stalled, self._dispatched):
            timeline.pack()

    def _expire_stalled(self, now: Seconds) -> int:
        due = list(islice(self._stalled.pop_due(now), EXPIRE_AT_ONCE))
        for response_id in due:
            self.cut_pull(self._pulls[response_id], UnknownId("the pull took nothing for too long: expired"), now)
        return len(due)

    def _release(self, ticket: Ticket) -> None:
        ticket.advance(RELEASE)
        self._account.release(ticket.bytes_left)
        ticket.pieces = ()
        ticket.wake = None
        self._pulls.pop(ticket.response_id, None)
        self._stalled.stop(ticket.response_id)
