"""Bodies and tickets against a dictionary model: whatever the interleaving, every byte is counted once and given back."""

from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule

from kinference.core.decision import Decision
from kinference.errors import BodyConsumed, BudgetExceeded, UnknownId
from kinference.ids import StreamId
from kinference.picker.account import Account
from kinference.picker.bodies import Bodies
from kinference.picker.flow import Flow
from kinference.picker.limits import PickerLimits
from kinference.picker.tickets import Ticket, Tickets
from kinference.ports import PickArguments
from kinference.vocabulary import Outcome

LIMITS = PickerLimits(
    body_max_bytes=100,
    buffer_max_bytes=250,
    chunk_max_bytes=60,
    body_ttl=10.0,
    stalled_pull_ttl=20.0,
    ticket_ttl=40.0,
    pull_chunk_max_bytes=16,
    tombstones_max=1000,
)


@dataclass
class Pushed:
    """What the model knows of a body."""

    stream_id: StreamId
    body: bytearray = field(default_factory=bytearray)
    finished_at: float | None = None
    committed: bool = False


@dataclass
class Held:
    """What the model knows of a ticket."""

    ticket: Ticket
    left: bytes
    waiting_since: float | None
    pull_moved_at: float | None = None
    dispatched_at: float | None = None
    live: bool = True
    pulled: bool = False


class PickerMachine(RuleBasedStateMachine):
    """The same calls against the real thing and the model."""

    pushes = Bundle("pushes")
    tickets = Bundle("tickets")

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.account = Account(LIMITS.buffer_max_bytes)
        random = Random(3)
        self.bodies_ = Bodies(LIMITS, self.account, random, lambda wanted: None)
        self.tickets_ = Tickets(LIMITS, self.account, random)
        self.model_bodies: dict[StreamId, Pushed] = {}
        self.consumed: dict[StreamId, float] = {}
        self.model_tickets: list[Held] = []

    def held_bytes(self) -> int:
        return sum(len(pushed.body) for pushed in self.model_bodies.values()) + sum(
            len(held.left) for held in self.model_tickets
        )

    @rule(target=pushes)
    def open(self) -> Pushed:
        pushed = Pushed(self.bodies_.open(None))
        assert pushed.stream_id not in (0, *self.model_bodies, *self.consumed)
        self.model_bodies[pushed.stream_id] = pushed
        return pushed

    @rule(pushed=pushes, length=st.integers(0, 61))
    def append(self, pushed: Pushed, length: int) -> None:
        chunk = b"%c" % (97 + length % 26) * length
        if pushed.stream_id not in self.model_bodies or pushed.finished_at is not None:
            with pytest.raises(UnknownId):
                self.bodies_.append(pushed.stream_id, chunk)
        elif length > 60 or len(pushed.body) + length > 100 or self.held_bytes() + length > 250:
            with pytest.raises(BudgetExceeded):
                self.bodies_.append(pushed.stream_id, chunk)
            del self.model_bodies[pushed.stream_id]
        else:
            self.bodies_.append(pushed.stream_id, chunk)
            pushed.body += chunk

    @rule(pushed=pushes)
    def finish(self, pushed: Pushed) -> None:
        if pushed.stream_id not in self.model_bodies or pushed.finished_at is not None:
            with pytest.raises(UnknownId):
                self.bodies_.finish(pushed.stream_id, self.now)
        else:
            assert self.bodies_.finish(pushed.stream_id, self.now) == len(pushed.body)
            pushed.finished_at = self.now

    @rule(pushed=pushes)
    def commit(self, pushed: Pushed) -> None:
        if pushed.finished_at is not None and not pushed.committed:
            self.bodies_.commit(pushed.stream_id)
            pushed.committed = True

    @rule(pushed=pushes)
    def stream_ends(self, pushed: Pushed) -> None:
        self.bodies_.discard(pushed.stream_id)
        if not pushed.committed:
            self.model_bodies.pop(pushed.stream_id, None)

    @rule(target=tickets, pushed=consumes(pushes))
    def pick(self, pushed: Pushed) -> Held | None:
        if pushed.stream_id in self.consumed:
            with pytest.raises(BodyConsumed):
                self.bodies_.consume(pushed.stream_id, self.now)
            return None
        if pushed.stream_id not in self.model_bodies or pushed.finished_at is None:
            with pytest.raises(UnknownId):
                self.bodies_.consume(pushed.stream_id, self.now)
            return None
        pieces = self.bodies_.consume(pushed.stream_id, self.now).pieces()
        body = bytes(self.model_bodies.pop(pushed.stream_id).body)
        assert b"".join(pieces) == body
        self.consumed[pushed.stream_id] = self.now
        with pytest.raises(BodyConsumed):
            self.bodies_.peek(pushed.stream_id)
        flow = Flow(0.0, PickArguments(pushed.stream_id, ""), "m", Decision(Outcome.OK, ""), remote=False)
        held = Held(self.tickets_.open(pieces, flow, self.now), body, self.now)
        self.model_tickets.append(held)
        return held

    @rule(held=tickets)
    def claim(self, held: Held | None) -> None:
        if held is None:
            return
        if not held.live or held.pulled or held.ticket.state.name == "GONE":
            with pytest.raises(UnknownId):
                self.tickets_.claim(held.ticket.response_id, None, self.now)
        else:
            self.tickets_.claim(held.ticket.response_id, None, self.now)
            held.pulled, held.waiting_since, held.pull_moved_at = True, None, self.now

    @rule(held=tickets)
    def take(self, held: Held | None) -> None:
        if held is None or held.pull_moved_at is None:
            return
        piece = self.tickets_.next_piece(held.ticket)
        if piece is None:
            self.end(held)
            return
        assert held.left.startswith(piece)
        self.tickets_.piece_sent(held.ticket, self.now)
        held.left, held.pull_moved_at = held.left[len(piece) :], self.now

    @rule(held=tickets)
    def pull_breaks_off(self, held: Held | None) -> None:
        if held is not None and held.pull_moved_at is not None:
            self.end(held)

    def end(self, held: Held) -> None:
        self.tickets_.end_pull(held.ticket, self.now)
        self.model_ended(held, self.now)

    def model_ended(self, held: Held, now: float) -> None:
        complete, held.left, held.pull_moved_at = not held.left, b"", None
        if held.live and complete:
            held.dispatched_at = now
        elif held.live and held.dispatched_at is None:
            held.waiting_since = now

    @rule(held=tickets)
    def first_token(self, held: Held | None) -> None:
        if held is not None and held.live:
            self.tickets_.dispatch(held.ticket, self.now)
            held.dispatched_at = self.now

    @rule(held=tickets)
    def close(self, held: Held | None) -> None:
        if held is None:
            return
        assert (self.tickets_.find(held.ticket.response_id) is not None) == held.live
        if held.live:
            self.tickets_.close(held.ticket)
            self.model_closed(held)

    def model_closed(self, held: Held) -> None:
        held.live, held.waiting_since, held.dispatched_at = False, None, None
        if held.pull_moved_at is None:
            held.left = b""

    @rule(seconds=st.sampled_from([0.5, 3.0, 9.5, 10.0, 25.0, 41.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.bodies_.expire(self.now)
        expired = self.tickets_.expire(self.now)
        for stream_id, pushed in list(self.model_bodies.items()):
            if pushed.finished_at is not None and pushed.finished_at + 10.0 <= self.now:
                del self.model_bodies[stream_id]
        self.consumed = {stream_id: at for stream_id, at in self.consumed.items() if at + 10.0 > self.now}
        closed = [held.ticket for held in self.model_tickets if self.model_expired(held)]
        assert {id(ticket) for ticket in expired.closed} == {id(ticket) for ticket in closed}

    def model_expired(self, held: Held) -> bool:
        """Apply the passing of time; true when it closed the ticket."""
        if held.pull_moved_at is not None and held.pull_moved_at + 20.0 <= self.now:
            self.model_ended(held, self.now)
        if held.waiting_since is not None and held.waiting_since + 10.0 <= self.now:
            held.left, held.waiting_since = b"", None
            if held.dispatched_at is None:
                self.model_closed(held)
                return True
        if held.dispatched_at is not None and held.dispatched_at + 40.0 <= self.now:
            self.model_closed(held)
            return True
        return False

    @precondition(lambda self: self.model_tickets)
    @rule()
    def forget_dead_tickets(self) -> None:
        self.model_tickets = [held for held in self.model_tickets if held.live or held.pull_moved_at is not None]

    @invariant()
    def every_byte_is_counted_once(self) -> None:
        assert self.account.held == self.held_bytes()

    @invariant()
    def what_is_live_is_what_the_model_says(self) -> None:
        assert len(self.bodies_) == len(self.model_bodies)
        assert len(self.tickets_) == sum(held.live for held in self.model_tickets)
        assert self.tickets_.pulls == sum(held.pull_moved_at is not None for held in self.model_tickets)

    @invariant()
    def something_is_due_while_anything_waits(self) -> None:
        stored = any(pushed.finished_at is not None for pushed in self.model_bodies.values())
        assert (self.bodies_.deadline() is not None) == (stored or bool(self.consumed))
        assert (self.tickets_.deadline() is not None) == bool(len(self.tickets_) or self.tickets_.pulls)

    def teardown(self) -> None:
        for stream_id in list(self.model_bodies):
            self.bodies_.discard(stream_id)
        for _ in range(4):
            self.now += 100.0
            self.bodies_.expire(self.now)
            self.tickets_.expire(self.now)
        assert (self.account.held, len(self.bodies_), len(self.tickets_), self.tickets_.pulls) == (0, 0, 0, 0)


TestBodiesAndTickets = PickerMachine.TestCase
TestBodiesAndTickets.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
