"""A long random life of bodies and tickets under a virtual clock, against a model that a child could follow.

The same seed gives the same life. KINFERENCE_SIMULATION_STEPS=1000000 makes it a long one.
"""

import os
from collections import Counter
from dataclasses import dataclass, field
from random import Random

import pytest

from kinference.core.decision import Decision
from kinference.errors import BodyConsumed, BudgetExceeded, UnknownId
from kinference.ids import ResponseId, Seconds, StreamId
from kinference.picker.account import Account
from kinference.picker.bodies import Bodies
from kinference.picker.flow import Flow
from kinference.picker.limits import PickerLimits
from kinference.picker.tickets import Ticket, Tickets
from kinference.ports import PickArguments
from kinference.vocabulary import Outcome

STEPS = int(os.environ.get("KINFERENCE_SIMULATION_STEPS", "100000"))
LIMITS = PickerLimits(
    body_max_bytes=2000,
    buffer_max_bytes=20_000,
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
            *[self.claim] * 2,
            *[self.take] * 4,
            *[self.finish] * 2,
            self.reset_push,
            self.break_pull,
            self.pick_again,
            self.claim_again,
            self.time_passes,
        )

    def step(self) -> None:
        act = self.random.choice(self.acts)
        act()
        self.seen[act.__name__] += 1
        assert self.account.held == self.model.held, act.__name__

    def push(self) -> None:
        stream_id = self.bodies.open(None)
        assert stream_id
        assert stream_id not in self.model.open
        assert stream_id not in self.model.stored
        self.model.open[stream_id] = b""
        self.append_to(stream_id)

    def append(self) -> None:
        if self.model.open:
            self.append_to(self.random.choice(list(self.model.open)))

    def append_to(self, stream_id: StreamId) -> None:
        before, chunk = (
            self.model.open[stream_id],
            self.random.randbytes(self.random.choice((0, 1, 100, 599, 600, 601))),
        )
        over = len(chunk) > 600 or len(before + chunk) > 2000 or self.model.held + len(chunk) > 20_000
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
        for group in (self.model.pulling, self.model.broken, self.model.at_work):
            if group:
                with pytest.raises(UnknownId):
                    self.tickets.claim(self.random.choice(list(group)), None, self.now)

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
        body, _ = self.model.pulling.pop(response_id)
        ticket = self.by_id[response_id]
        self.tickets.end_pull(ticket, self.now)
        if not ticket.live:
            del self.by_id[response_id]
        elif not body:
            self.model.at_work[response_id] = self.now
        else:
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
        if response_id not in self.model.pulling:
            del self.by_id[response_id]

    def time_passes(self) -> None:
        self.now += self.random.choice((0.1, 1.0, 5.0, 60.0))
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
                del model.pulling[key]
                if self.by_id[key].live:
                    model.broken[key] = now
                else:
                    del self.by_id[key]
        unpulled = {key: at for key, (_, at) in model.unpulled.items()}
        for group, since, ttl in (
            (model.unpulled, unpulled, 100),
            (model.broken, model.broken, 100),
            (model.at_work, model.at_work, 400),
        ):
            for key in [key for key, at in since.items() if at + ttl <= now]:
                del group[key]
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
    for number in range(STEPS // 2):
        life.step()
        if number % 50 == 0:
            assert len(life.bodies) == len(life.model.open) + len(life.model.stored)
            assert len(life.tickets) == sum(ticket.live for ticket in life.by_id.values())
            assert life.tickets.pulls == len(life.model.pulling)
    life.end()
    assert set(life.seen) == {act.__name__ for act in life.acts}
