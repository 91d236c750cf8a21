from random import Random

import pytest

from kinference.core.decision import Decision
from kinference.errors import BudgetExceeded, UnknownId
from kinference.ids import ResponseId, StreamId
from kinference.picker.account import Account
from kinference.picker.flow import Flow
from kinference.picker.limits import PickerLimits
from kinference.picker.tickets import Ticket, Tickets
from kinference.ports import PickArguments
from kinference.vocabulary import Outcome

LIMITS = PickerLimits(body_ttl=10.0, stalled_pull_ttl=50.0, ticket_ttl=100.0, stall_grace=1.0)


class Rack:
    """Tickets with their account."""

    def __init__(self, limits: PickerLimits = LIMITS) -> None:
        self.account = Account(1000)
        self.tickets = Tickets(limits, self.account, Random(7))

    def open(self, *pieces: bytes, now: float = 0.0) -> Ticket:
        flow = Flow(0.0, PickArguments(StreamId(1), "acme"), "m", Decision(Outcome.OK, ""), remote=False)
        self.account.charge(sum(map(len, pieces)))
        return self.tickets.open(pieces or (b"ab", b"c"), flow, now)

    def claim(self, ticket: Ticket, now: float = 0.0) -> Ticket:
        return self.tickets.claim(ticket.response_id, None, now)

    def pulled(self, now: float = 0.0) -> Ticket:
        ticket = self.claim(self.open(b"ab", b"c", now=now), now)
        assert self.take_all(ticket, now) == b"abc"
        return ticket

    def take_all(self, ticket: Ticket, now: float) -> bytes:
        taken = b""
        while (piece := self.tickets.next_piece(ticket)) is not None:
            taken += piece
            self.tickets.piece_sent(ticket, now)
        self.tickets.end_pull(ticket, now)
        return taken


def test_a_pull_hands_over_the_pieces_in_order_and_releases_them_as_they_go() -> None:
    rack = Rack()
    ticket = rack.claim(rack.open(b"ab", b"c"))
    assert rack.tickets.next_piece(ticket) == b"ab"
    assert rack.account.held == 3, "a piece is ours until it was sent"
    rack.tickets.piece_sent(ticket, 0.0)
    assert rack.account.held == 1
    assert rack.take_all(ticket, 0.0) == b"c"
    assert (rack.account.held, rack.tickets.pulls) == (0, 0)


def test_a_body_that_is_taken_at_once_is_pulled() -> None:
    rack = Rack()
    ticket = rack.open(b"ab", b"c")
    assert rack.tickets.unpulled(ticket.response_id) is ticket
    rack.tickets.pulled(ticket, 2.0)
    assert (rack.account.held, rack.tickets.pulls) == (0, 0)
    assert ticket.dispatched
    assert rack.tickets.deadline() == 102.0
    assert rack.tickets.next_piece(ticket) is None
    with pytest.raises(UnknownId):
        rack.tickets.unpulled(ticket.response_id)


def test_ids_are_not_zero_and_not_shared() -> None:
    rack = Rack()
    ids = {rack.open(b"x").response_id for _ in range(200)}
    assert len(ids) == 200
    assert 0 not in ids


@pytest.mark.parametrize("state", ["running", "complete", "broken off", "unknown"])
def test_a_body_is_pulled_once(state: str) -> None:
    rack = Rack()
    ticket = rack.open(b"ab")
    response_id = ResponseId(0) if state == "unknown" else ticket.response_id
    if state != "unknown":
        rack.claim(ticket)
    if state == "complete":
        rack.take_all(ticket, 0.0)
    if state == "broken off":
        rack.tickets.end_pull(ticket, 0.0)
    with pytest.raises(UnknownId):
        rack.tickets.claim(response_id, None, 0.0)


def test_a_ticket_that_nobody_pulls_closes_with_its_bytes() -> None:
    rack = Rack()
    ticket = rack.open(b"abc")
    assert rack.tickets.deadline() == 10.0
    assert not rack.tickets.expire(9.9)
    expired = rack.tickets.expire(10.0)
    assert (expired.closed, expired.unpulled, expired.stalled) == ((ticket,), 1, 0)
    assert not ticket.dispatched
    assert (rack.account.held, len(rack.tickets)) == (0, 0)


def test_a_report_without_a_pull_keeps_the_ticket_and_not_its_bytes() -> None:
    rack = Rack()
    ticket = rack.open(b"abc")
    rack.tickets.dispatch(ticket, 5.0)
    expired = rack.tickets.expire(10.0)
    assert (expired.closed, expired.unpulled, rack.account.held) == ((), 1, 0)
    assert rack.tickets.find(ticket.response_id) is ticket
    assert rack.tickets.expire(105.0).closed == (ticket,)
    assert ticket.dispatched


def test_a_complete_pull_lives_as_long_as_a_long_answer() -> None:
    rack = Rack()
    ticket = rack.pulled(now=2.0)
    assert rack.tickets.deadline() == 102.0
    assert not rack.tickets.expire(101.9)
    assert rack.tickets.expire(102.0).closed == (ticket,)


def test_a_first_token_begins_the_long_clock_anew() -> None:
    rack = Rack()
    ticket = rack.pulled()
    rack.tickets.dispatch(ticket, 60.0)
    assert rack.tickets.deadline() == 160.0


def test_a_pull_that_broke_off_leaves_a_ticket_that_waits_as_if_never_pulled() -> None:
    rack = Rack()
    ticket = rack.claim(rack.open(b"ab", b"c"), 5.0)
    rack.tickets.end_pull(ticket, 6.0)
    assert rack.account.held == 0
    assert rack.tickets.find(ticket.response_id) is ticket
    expired = rack.tickets.expire(16.0)
    assert (expired.closed, expired.unpulled) == ((ticket,), 0)


def test_no_time_ends_a_pull_that_goes_on() -> None:
    rack = Rack()
    ticket = rack.claim(rack.open(*[b"x"] * 20))
    for turn in range(20):
        now = 49.0 * (turn + 1)
        assert not rack.tickets.expire(now)
        assert rack.tickets.next_piece(ticket) == b"x"
        rack.tickets.piece_sent(ticket, now)


def test_a_pull_that_took_nothing_for_its_time_is_cut_and_its_carrier_woken() -> None:
    rack = Rack()
    woken: list[str] = []
    ticket = rack.open(b"ab", b"c")
    rack.tickets.claim(ticket.response_id, lambda: woken.append("yes"), 0.0)
    expired = rack.tickets.expire(50.0)
    assert (expired.stalled, expired.closed, woken, rack.account.held) == (1, (), ["yes"], 0)
    with pytest.raises(UnknownId, match="expired"):
        rack.tickets.next_piece(ticket)
    with pytest.raises(UnknownId, match="expired"):
        rack.tickets.piece_sent(ticket, 50.0)
    rack.tickets.end_pull(ticket, 50.0)
    assert rack.tickets.expire(60.0).closed == (ticket,)


def test_under_pressure_the_pull_stalled_longest_goes_first() -> None:
    rack = Rack()
    first, second = rack.claim(rack.open(b"ab", b"c"), 0.0), rack.claim(rack.open(b"ab", b"c"), 1.0)
    rack.tickets.piece_sent(first, 2.0)
    assert rack.tickets.shed(3.0)
    with pytest.raises(BudgetExceeded):
        rack.tickets.next_piece(second)
    assert rack.tickets.next_piece(first) == b"c"


def test_a_pull_that_has_just_moved_is_not_stalled() -> None:
    rack = Rack()
    rack.claim(rack.open(b"ab"), 5.0)
    assert not rack.tickets.shed(5.9)
    assert rack.tickets.shed(6.0)
    assert not rack.tickets.shed(99.0)


def test_closing_releases_bytes_that_nobody_pulled() -> None:
    rack = Rack()
    ticket = rack.open(b"abc")
    rack.tickets.close(ticket)
    assert (rack.account.held, rack.tickets.deadline(), rack.tickets.find(ticket.response_id)) == (0, None, None)


def test_a_running_pull_outlives_its_ticket() -> None:
    rack = Rack()
    ticket = rack.claim(rack.open(b"ab", b"c"))
    rack.tickets.close(ticket)
    assert rack.tickets.find(ticket.response_id) is None
    assert rack.tickets.pulls == 1
    assert rack.take_all(ticket, 0.0) == b"abc"
    assert (rack.account.held, rack.tickets.pulls, rack.tickets.deadline()) == (0, 0, None)


def test_cutting_a_pull_that_does_not_run_changes_nothing() -> None:
    rack = Rack()
    ticket = rack.pulled()
    rack.tickets.cut_pull(ticket, UnknownId("too late"), 0.0)
    assert ticket.failure is None


def test_a_ticket_keeps_no_frame_of_those_who_were_told_that_it_was_cut() -> None:
    rack = Rack()
    ticket = rack.claim(rack.open(b"ab", b"c"))
    rack.tickets.cut_pull(ticket, UnknownId("aborted"), 0.0)
    with pytest.raises(UnknownId, match="aborted"):
        rack.tickets.next_piece(ticket)
    assert ticket.failure is not None
    assert ticket.failure.__traceback__ is None


def test_a_ticket_that_was_set_aside_has_its_flow_again_when_it_is_asked_for() -> None:
    ticket = Rack().open()
    before = ticket.flow.fields()
    ticket.set_aside()
    assert isinstance(ticket.kept, bytes)
    assert ticket.flow.fields() == before
    assert ticket.flow is ticket.flow, "what is learned of it must not be lost"
    ticket.set_aside()
    assert ticket.flow.response_id == ticket.response_id
