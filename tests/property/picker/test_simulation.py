"""A long random life of bodies and tickets under a virtual clock, against a model that a child could follow.

The same seed gives the same life. KINFERENCE_SIMULATION_STEPS=1000000 makes it a long one.
"""

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import pytest

from kinference.core.decision import Decision
from kinference.errors import BodyConsumed, BudgetExceeded, InvalidArgument, UnknownId
from kinference.ids import ResponseId, Seconds, StreamId
from kinference.picker import bodies as bodies_module
from kinference.picker import tickets as tickets_module
from kinference.picker.account import Account
from kinference.picker.bodies import Bodies
from kinference.picker.flow import Flow
from kinference.picker.limits import PickerLimits
from kinference.picker.tickets import Event, State, Ticket, Tickets
from kinference.picker.timeline import Timeline
from kinference.ports import PickArguments
from kinference.vocabulary import Outcome

STEPS = int(os.environ.get("KINFERENCE_SIMULATION_STEPS", "100000"))
BUFFER, SPELL = 8_000, 40
LIMITS = PickerLimits(
    body_max_bytes=2000,
    buffer_max_bytes=BUFFER,
    chunk_max_bytes=600,
    body_ttl=100.0,
    stalled_pull_ttl=150.0,
    ticket_ttl=400.0,
    pull_chunk_max_bytes=250,
    tombstones_max=10**6,
)
NO_FLOW = Flow(0.0, PickArguments(StreamId(1), ""), "m", Decision(Outcome.OK, ""), remote=False)


@dataclass
class Model:
    """What must be held: bytes by id, and since when they wait."""

    open: dict[StreamId, bytes] = field(default_factory=dict)
    stored: dict[StreamId, tuple[bytes, Seconds]] = field(default_factory=dict)
    consumed: dict[StreamId, Seconds] = field(default_factory=dict)
    unpulled: dict[ResponseId, tuple[bytes, Seconds]] = field(default_factory=dict)
    pulling: dict[ResponseId, tuple[bytes, Seconds]] = field(default_factory=dict)
    broken: dict[ResponseId, Seconds] = field(default_factory=dict)
    """Pulled in part: they hold nothing and wait for a sign of life."""
    at_work: dict[ResponseId, Seconds] = field(default_factory=dict)
    """Reported or pulled whole; the bytes of a reported one may still wait."""

    closed: set[ResponseId] = field(default_factory=set)
    """Still being pulled, after their end was reported or their time was over."""

    @property
    def live(self) -> int:
        waiting = self.unpulled.keys() | self.broken.keys() | self.at_work.keys()
        return len(waiting | (self.pulling.keys() - self.closed))

    @property
    def held(self) -> int:
        whole = sum(map(len, self.open.values()))
        return whole + sum(
            len(body) for group in (self.stored, self.unpulled, self.pulling) for body, _ in group.values()
        )


class Life:
    """One life: each step does one thing to both."""

    def __init__(self, seed: int) -> None:
        self.random, self.now, self.model = Random(seed), 0.0, Model()
        self.account = Account(LIMITS.buffer_max_bytes)
        self.bodies = Bodies(LIMITS, self.account, Random(seed + 1), lambda _: None)
        self.tickets = Tickets(LIMITS, self.account, Random(seed + 2))
        self.by_id: dict[ResponseId, Ticket] = {}
        self.seen: Counter[str] = Counter()
        self.acts = (
            *[self.push] * 3,
            *[self.append] * 6,
            *[self.half_close] * 3,
            *[self.pick] * 3,
            *[self.claim] * 4,
            *[self.take] * 3,
            *[self.finish] * 2,
            *[self.report] * 2,
            self.push_declared,
            *[self.make_room] * 2,
            self.reset_push,
            self.break_pull,
            self.pick_again,
            self.claim_again,
            *[self.time_passes] * 3,
        )

    def live(self, steps: int) -> None:
        """Spells of each kind follow one another, so that much piles up, and much is left to its time."""
        arrivals = (self.push, self.push_declared, self.append, self.half_close, self.pick, self.claim)
        spells = (self.acts, (*self.acts, *arrivals * 20), (*self.acts, *[self.time_passes] * 60))
        for number in range(steps):
            if number % SPELL == 0:
                acts = self.random.choice(spells)
            self.step(self.random.choice(acts))

    def step(self, act: Callable[[], None]) -> None:
        act()
        self.seen[act.__name__] += 1
        assert self.account.held == self.model.held, act.__name__
        assert len(self.bodies) == len(self.model.open) + len(self.model.stored), act.__name__
        assert len(self.tickets) == self.model.live, act.__name__
        assert self.tickets.pulls == len(self.model.pulling), act.__name__

    def push(self) -> None:
        stream_id = self.bodies.open(None)
        assert stream_id
        assert stream_id not in self.model.open
        assert stream_id not in self.model.stored
        self.model.open[stream_id] = b""
        self.append_to(stream_id)

    def push_declared(self) -> None:
        """A push that says how long it will be, and says so rightly, too much, too little, or more than is allowed."""
        said, sent = self.random.choice(((0, 0), (300, 300), (300, 301), (300, 299), (2000, 1), (2001, 0)))
        if said > 2000 or said > BUFFER - self.model.held:
            with pytest.raises(BudgetExceeded):
                self.bodies.open(said)
            return
        stream_id = self.bodies.open(said)
        if sent > said:
            with pytest.raises(InvalidArgument):
                self.bodies.append(stream_id, bytes(sent))
            return
        self.bodies.append(stream_id, bytes(sent))
        if sent < said:
            with pytest.raises(InvalidArgument):
                self.bodies.finish(stream_id, self.now)
            return
        assert self.bodies.finish(stream_id, self.now) == sent
        self.bodies.commit(stream_id)
        self.bodies.discard(stream_id)
        self.model.stored[stream_id] = (bytes(sent), self.now)

    def append(self) -> None:
        if self.model.open:
            self.append_to(self.random.choice(list(self.model.open)))

    def append_to(self, stream_id: StreamId) -> None:
        free = min(BUFFER - self.model.held, 600)
        before, chunk = (
            self.model.open[stream_id],
            self.random.randbytes(self.random.choice((0, 1, 100, 599, 600, 601, free, free + 1))),
        )
        over = len(chunk) > 600 or len(before + chunk) > 2000 or self.model.held + len(chunk) > BUFFER
        if over:
            with pytest.raises(BudgetExceeded):
                self.bodies.append(stream_id, chunk)
            del self.model.open[stream_id]
        else:
            self.bodies.append(stream_id, chunk)
            self.model.open[stream_id] = before + chunk

    def half_close(self) -> None:
        if not self.model.open:
            return
        stream_id = self.random.choice(list(self.model.open))
        body = self.model.open.pop(stream_id)
        assert self.bodies.finish(stream_id, self.now) == len(body)
        if self.random.random() < 0.1:  # the reply could not be written
            self.bodies.discard(stream_id)
            return
        self.bodies.commit(stream_id)
        self.bodies.discard(stream_id)
        self.model.stored[stream_id] = (body, self.now)

    def reset_push(self) -> None:
        if self.model.open:
            stream_id = self.random.choice(list(self.model.open))
            self.bodies.discard(stream_id)
            del self.model.open[stream_id]

    def pick(self) -> None:
        if not self.model.stored:
            return
        stream_id = self.random.choice(list(self.model.stored))
        body, _ = self.model.stored.pop(stream_id)
        pieces = self.bodies.consume(stream_id, self.now).pieces()
        assert b"".join(pieces) == body
        self.model.consumed[stream_id] = self.now
        if self.random.random() < 0.2:  # refused
            self.account.release(len(body))
            return
        ticket = self.tickets.open(pieces, NO_FLOW, self.now)
        self.by_id[ticket.response_id] = ticket
        self.model.unpulled[ticket.response_id] = (body, self.now)

    def pick_again(self) -> None:
        if self.model.open:
            with pytest.raises(UnknownId):
                self.bodies.consume(self.random.choice(list(self.model.open)), self.now)
        if self.model.consumed:
            with pytest.raises(BodyConsumed):
                self.bodies.consume(self.random.choice(list(self.model.consumed)), self.now)

    def claim(self) -> None:
        if not self.model.unpulled:
            return
        response_id = self.random.choice(list(self.model.unpulled))
        body, _ = self.model.unpulled.pop(response_id)
        self.tickets.claim(response_id, None, self.now)
        self.model.pulling[response_id] = (body, self.now)

    def claim_again(self) -> None:
        for group in (self.model.pulling, self.model.broken, self.model.at_work.keys() - self.model.unpulled.keys()):
            if group:
                with pytest.raises(UnknownId):
                    self.tickets.claim(self.random.choice(sorted(group)), None, self.now)

    def take(self) -> None:
        if not self.model.pulling:
            return
        response_id = self.random.choice(list(self.model.pulling))
        body, _ = self.model.pulling[response_id]
        piece = self.tickets.next_piece(self.by_id[response_id])
        if piece is None:
            assert not body
            self.end_pull(response_id)
            return
        assert body.startswith(piece)
        self.tickets.piece_sent(self.by_id[response_id], self.now)
        self.model.pulling[response_id] = (body[len(piece) :], self.now)

    def break_pull(self) -> None:
        if self.model.pulling:
            self.end_pull(self.random.choice(list(self.model.pulling)))

    def end_pull(self, response_id: ResponseId) -> None:
        self.tickets.end_pull(self.by_id[response_id], self.now)
        self.pull_ended(response_id)

    def pull_ended(self, response_id: ResponseId) -> None:
        """In the model, whoever ended it: with its last byte, or before."""
        body, _ = self.model.pulling.pop(response_id)
        if response_id in self.model.closed:
            self.model.closed.remove(response_id)
            del self.by_id[response_id]
        elif not body:
            self.model.at_work[response_id] = self.now
        elif response_id not in self.model.at_work:
            self.model.broken[response_id] = self.now

    def finish(self) -> None:
        """A final report or an abort."""
        live = [response_id for response_id, ticket in self.by_id.items() if ticket.live]
        if not live:
            return
        response_id = self.random.choice(live)
        self.tickets.close(self.by_id[response_id])
        assert self.tickets.find(response_id) is None
        self.model.at_work.pop(response_id, None)
        self.model.broken.pop(response_id, None)
        self.model.unpulled.pop(response_id, None)
        if response_id in self.model.pulling:
            self.model.closed.add(response_id)
        else:
            del self.by_id[response_id]

    def report(self) -> None:
        """A first token: the destination is at work, whatever became of the bytes."""
        live = [response_id for response_id, ticket in self.by_id.items() if ticket.live]
        if live:
            response_id = self.random.choice(live)
            self.tickets.dispatch(self.by_id[response_id], self.now)
            self.model.broken.pop(response_id, None)
            self.model.at_work[response_id] = self.now

    def make_room(self) -> None:
        """A full server cuts the pull that has stood still longest, if it has for a second."""
        stalled = min(self.model.pulling, key=lambda key: self.model.pulling[key][1], default=None)
        since = self.model.pulling[stalled][1] if stalled is not None else self.now
        shed = self.tickets.shed(self.now)
        assert shed == (since + 1 <= self.now)
        if shed:
            cut = next(key for key in self.model.pulling if self.by_id[key].failure is not None)
            assert self.model.pulling[cut][1] == since
            self.pull_ended(cut)

    def time_passes(self) -> None:
        self.now += self.random.choice((0.5, 0.5, 1.0, 1.0, 5.0, 5.0, 60.0))
        while self.bodies.expire(self.now):
            pass
        while self.tickets.expire(self.now):
            pass
        self.let_time_pass_in_the_model()

    def let_time_pass_in_the_model(self) -> None:
        model, now = self.model, self.now
        model.stored = {key: (body, at) for key, (body, at) in model.stored.items() if at + 100 > now}
        model.consumed = {key: at for key, at in model.consumed.items() if at + 100 > now}
        for key, (_, at) in list(model.pulling.items()):
            if at + 150 <= now:
                self.pull_ended(key)
        for key in [key for key, (_, at) in model.unpulled.items() if at + 100 <= now]:
            del model.unpulled[key]
            if key not in model.at_work:
                del self.by_id[key]
        for key in [key for key, at in model.broken.items() if at + 100 <= now]:
            del model.broken[key]
            del self.by_id[key]
        for key in [key for key, at in model.at_work.items() if at + 400 <= now]:
            del model.at_work[key]
            model.unpulled.pop(key, None)
            if key in model.pulling:
                model.closed.add(key)
            else:
                del self.by_id[key]

    def end(self) -> None:
        """All is abandoned; time alone gives everything back."""
        for stream_id in list(self.model.open):
            self.bodies.discard(stream_id)
        for _ in range(4):
            self.now += 1000.0
            while self.bodies.expire(self.now) or self.tickets.expire(self.now):
                pass
        assert (self.account.held, len(self.bodies), len(self.tickets), self.tickets.pulls) == (0, 0, 0, 0)
        assert (self.bodies.deadline(), self.tickets.deadline()) == (None, None)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_long_life_agrees_with_the_model(seed: int) -> None:
    life = Life(seed)
    life.live(STEPS // 2)
    life.end()
    assert set(life.seen) == {act.__name__ for act in life.acts}


def forgets_bytes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Account, "release", lambda *_: None)


def keeps_the_bytes_of_a_broken_pull(patch: pytest.MonkeyPatch) -> None:
    right = Tickets._release

    def release(self: Tickets, ticket: Ticket) -> None:
        held = self._account.held
        right(self, ticket)
        self._account.held = held if ticket.live and ticket.failure is None else self._account.held

    patch.setattr(Tickets, "_release", release)


def remembers_nothing_consumed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Timeline, "__contains__", lambda *_: False)


def picks_what_is_still_pushed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bodies_module, "PICKABLE", frozenset(bodies_module.State))


def pulls_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tickets_module, "NEXT", {**tickets_module.NEXT, (State.PULLING, Event.PULL): State.PULLING})
    right = Tickets.claim

    def claim(self: Tickets, response_id: ResponseId, wake: None, now: Seconds) -> Ticket:
        ticket = self.find(response_id)
        return ticket if ticket and ticket.state is State.PULLING else right(self, response_id, wake, now)

    patch.setattr(Tickets, "claim", claim)


def starts_no_long_clock(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Tickets, "dispatch", lambda *_: None)


def keeps_what_was_reset(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bodies_module, "DISCARDABLE", frozenset({bodies_module.State.PROVISIONAL}))


def is_late_by_a_moment(patch: pytest.MonkeyPatch) -> None:
    right = Timeline.pop_due
    patch.setattr(Timeline, "pop_due", lambda self, now: right(self, now - 0.05))


def never_ends_a_pull_that_stands_still(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Tickets, "_expire_stalled", lambda *_: 0)


def allows_a_byte_more(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Account, "free", property(lambda self: self.budget + 1 - self.held))


def sheds_the_pull_that_moved_last(patch: pytest.MonkeyPatch) -> None:
    def oldest_since(self: Timeline[int], began_by: Seconds) -> int | None:
        return next((key for key in reversed(self._began) if self._began[key] <= began_by), None)

    patch.setattr(Timeline, "oldest_since", oldest_since)


FAULTS = (
    forgets_bytes,
    keeps_the_bytes_of_a_broken_pull,
    remembers_nothing_consumed,
    picks_what_is_still_pushed,
    pulls_twice,
    starts_no_long_clock,
    keeps_what_was_reset,
    is_late_by_a_moment,
    never_ends_a_pull_that_stands_still,
    allows_a_byte_more,
    sheds_the_pull_that_moved_last,
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_planted_fault_does_not_survive_a_long_life(
    fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    life = Life(3)
    with pytest.raises((AssertionError, LookupError, UnknownId, pytest.fail.Exception)):
        life.live(20_000)
