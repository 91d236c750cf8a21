from collections.abc import Callable
from random import Random

import pytest

from kinference.errors import BodyConsumed, BudgetExceeded, InvalidArgument, UnknownId
from kinference.ids import StreamId
from kinference.picker.account import Account
from kinference.picker.bodies import Bodies
from kinference.picker.limits import EXPIRE_AT_ONCE, PickerLimits
from kinference.wire.pieces import join

LIMITS = PickerLimits(body_max_bytes=100, buffer_max_bytes=250, chunk_max_bytes=60, body_ttl=10.0, empty_chunks_max=3)


class Shelf:
    """Bodies with their account, and what a whole push takes."""

    def __init__(self, limits: PickerLimits = LIMITS, make_room: Callable[[int], None] = lambda wanted: None) -> None:
        self.account = Account(limits.buffer_max_bytes)
        self.bodies = Bodies(limits, self.account, Random(7), make_room)

    def open(self, *chunks: bytes, declared: int | None = None) -> StreamId:
        stream_id = self.bodies.open(declared)
        for chunk in chunks:
            self.bodies.append(stream_id, chunk)
        return stream_id

    def stored(self, *chunks: bytes, now: float = 0.0, declared: int | None = None) -> StreamId:
        stream_id = self.open(*chunks, declared=declared)
        self.bodies.finish(stream_id, now)
        self.bodies.commit(stream_id)
        return stream_id


def test_a_stored_body_is_consumed_once_in_the_order_it_was_sent() -> None:
    shelf = Shelf()
    stream_id = shelf.stored(b"abc", b"", b"def")
    assert join(shelf.bodies.consume(stream_id, 1.0).pieces()) == b"abcdef"
    with pytest.raises(BodyConsumed):
        shelf.bodies.consume(stream_id, 1.0)


@pytest.mark.parametrize("declared", [None, 0, 3, 59, 60, 61, 100, 101, 1_000])
@pytest.mark.parametrize("chunk", [None, b"", b"abc", b"x" * 60, b"x" * 61, b"x" * 101])
@pytest.mark.parametrize("held", [0, 160, 200, 249])
def test_a_push_that_came_whole_ends_as_one_that_came_by_and_by(
    declared: int | None, chunk: bytes | None, held: int
) -> None:
    def ending(shelf: Shelf, *, whole: bool) -> tuple[str, int, int]:
        shelf.account.charge(held)
        try:
            if whole:
                stream_id = shelf.bodies.put(declared, chunk, 2.0)
            else:
                stream_id = shelf.stored(*(() if chunk is None else (chunk,)), declared=declared, now=2.0)
        except (BudgetExceeded, InvalidArgument) as error:
            return repr((error, error.limit)), len(shelf.bodies), shelf.account.held
        kept = repr(shelf.bodies.peek(stream_id).pieces()), len(shelf.bodies), shelf.account.held
        shelf.bodies.discard(stream_id)
        assert len(shelf.bodies) == 1, "it is stored"
        assert shelf.bodies.expire(11.9) == 0
        assert shelf.bodies.expire(12.0) == 1
        assert shelf.account.held == held
        return kept

    assert ending(Shelf(), whole=True) == ending(Shelf(), whole=False)


@pytest.mark.parametrize("chunk_max_bytes", [100_000, 1_000_000])
def test_a_chunk_that_needs_no_cut_is_kept_as_it_came(chunk_max_bytes: int) -> None:
    limits = PickerLimits(chunk_max_bytes=chunk_max_bytes)
    chunk, shelf = b"x" * min(chunk_max_bytes, limits.pull_chunk_max_bytes), Shelf(limits)
    (kept,) = shelf.bodies.peek(shelf.stored(chunk)).pieces()
    assert kept is chunk


def test_an_id_is_never_zero_and_never_one_in_use() -> None:
    shelf = Shelf()
    ids = {shelf.open() for _ in range(500)}
    assert len(ids) == 500
    assert 0 not in ids


def test_bytes_are_counted_from_the_first_chunk() -> None:
    shelf = Shelf()
    shelf.open(b"x" * 40, b"x" * 10)
    assert shelf.account.held == 50


def test_an_open_body_is_unknown_to_a_pick() -> None:
    shelf = Shelf()
    with pytest.raises(UnknownId):
        shelf.bodies.peek(shelf.open(b"partial"))


def test_a_pick_of_a_provisional_body_performs_the_promotion() -> None:
    shelf = Shelf()
    stream_id = shelf.open(b"abc")
    shelf.bodies.finish(stream_id, 0.0)
    assert join(shelf.bodies.consume(stream_id, 0.0).pieces()) == b"abc"
    shelf.bodies.commit(stream_id)
    shelf.bodies.discard(stream_id)
    with pytest.raises(BodyConsumed):
        shelf.bodies.peek(stream_id)


@pytest.mark.parametrize("finished", [False, True])
def test_a_push_whose_stream_ends_before_its_reply_was_written_leaves_nothing(*, finished: bool) -> None:
    shelf = Shelf()
    stream_id = shelf.open(b"abc")
    if finished:
        shelf.bodies.finish(stream_id, 0.0)
    shelf.bodies.discard(stream_id)
    assert (shelf.account.held, len(shelf.bodies), shelf.bodies.deadline()) == (0, 0, None)
    with pytest.raises(UnknownId):
        shelf.bodies.peek(stream_id)


def test_the_end_of_its_stream_leaves_a_stored_body_alone() -> None:
    shelf = Shelf()
    stream_id = shelf.stored(b"abc")
    shelf.bodies.discard(stream_id)
    assert shelf.bodies.peek(stream_id).size == 3


def test_a_push_that_is_over_takes_no_more() -> None:
    shelf = Shelf()
    stream_id = shelf.stored(b"abc")
    with pytest.raises(UnknownId):
        shelf.bodies.append(stream_id, b"d")
    with pytest.raises(UnknownId):
        shelf.bodies.finish(stream_id, 0.0)


def test_a_chunk_at_its_limit_passes_and_one_byte_more_does_not() -> None:
    shelf = Shelf()
    stream_id = shelf.open(b"x" * 60)
    with pytest.raises(BudgetExceeded, match="chunk of 61 bytes"):
        shelf.bodies.append(stream_id, b"x" * 61)
    assert shelf.account.held == 0


def test_a_body_at_its_budget_passes_and_one_byte_more_does_not() -> None:
    shelf = Shelf()
    stream_id = shelf.open(b"x" * 60, b"x" * 40)
    with pytest.raises(BudgetExceeded, match="over the limit of 100"):
        shelf.bodies.append(stream_id, b"x")
    assert shelf.account.held == 0


def test_the_push_that_crosses_the_servers_budget_fails_and_the_others_stay() -> None:
    shelf = Shelf()
    first, second = shelf.open(b"x" * 60, b"x" * 40), shelf.open(b"y" * 60, b"y" * 40)
    third = shelf.open(b"z" * 50)
    with pytest.raises(BudgetExceeded, match="buffer of 250"):
        shelf.bodies.append(third, b"z")
    assert shelf.account.held == 200
    assert [shelf.bodies.finish(first, 0.0), shelf.bodies.finish(second, 0.0)] == [100, 100]


def test_room_is_made_before_a_push_is_refused() -> None:
    asked: list[int] = []

    def make_room(wanted: int) -> None:
        asked.append(wanted)
        shelf.bodies.expire(100.0)

    shelf = Shelf(make_room=make_room)
    for _ in range(2):
        shelf.stored(b"x" * 60, b"x" * 40)
    stream_id = shelf.open(b"z" * 50)
    shelf.bodies.append(stream_id, b"z" * 50)
    assert asked == [50]
    assert shelf.account.held == 100


def test_empty_chunks_cost_nothing_and_are_bounded_in_number() -> None:
    shelf = Shelf()
    stream_id = shelf.open(b"", b"", b"")
    with pytest.raises(BudgetExceeded, match="empty chunks"):
        shelf.bodies.append(stream_id, b"")


@pytest.mark.parametrize("sent", [4, 6])
def test_a_length_that_disagrees_with_the_declared_one_is_refused(sent: int) -> None:
    shelf = Shelf()
    with pytest.raises(InvalidArgument):
        shelf.stored(b"x" * sent, declared=5)
    assert (shelf.account.held, len(shelf.bodies)) == (0, 0)


def test_the_declared_length_met_is_accepted_and_reserves_nothing() -> None:
    shelf = Shelf()
    stream_id = shelf.open(declared=5)
    assert shelf.account.held == 0
    shelf.bodies.append(stream_id, b"12345")
    assert shelf.bodies.finish(stream_id, 0.0) == 5


def test_a_declared_length_that_cannot_fit_is_refused_before_a_byte_is_held() -> None:
    shelf = Shelf()
    with pytest.raises(BudgetExceeded, match="declared length of 101"):
        shelf.bodies.open(101)
    shelf.open(b"x" * 60, b"x" * 40)
    shelf.open(b"x" * 60, b"x" * 40)
    with pytest.raises(BudgetExceeded, match="buffer of 250"):
        shelf.bodies.open(51)
    assert len(shelf.bodies) == 2


def test_a_body_that_nobody_picks_expires_from_the_end_of_its_push() -> None:
    shelf = Shelf()
    slow = shelf.open(b"abc")
    stream_id = shelf.stored(b"abc", now=5.0)
    assert shelf.bodies.deadline() == 15.0
    assert shelf.bodies.expire(14.9) == 0
    assert shelf.bodies.expire(15.0) == 1
    with pytest.raises(UnknownId):
        shelf.bodies.peek(stream_id)
    assert shelf.account.held == 3, "a push under way never expires"
    assert shelf.bodies.finish(slow, 100.0) == 3


def test_a_tombstone_is_kept_for_the_bodys_time_and_then_forgotten() -> None:
    shelf = Shelf()
    stream_id = shelf.stored(b"abc")
    shelf.bodies.consume(stream_id, 1.0)
    shelf.bodies.expire(10.9)
    with pytest.raises(BodyConsumed):
        shelf.bodies.peek(stream_id)
    shelf.bodies.expire(11.0)
    with pytest.raises(UnknownId):
        shelf.bodies.peek(stream_id)


def test_tombstones_are_reclaimed_on_our_own_initiative_if_late() -> None:
    shelf = Shelf()
    shelf.bodies.consume(shelf.stored(b"abc"), 1.0)
    assert shelf.bodies.deadline() == 21.0
    shelf.stored(b"abc", now=5.0)
    assert shelf.bodies.deadline() == 15.0
    shelf.bodies.expire(21.0)
    assert shelf.bodies.deadline() is None


def test_tombstones_are_bounded_in_number() -> None:
    shelf = Shelf(PickerLimits(tombstones_max=2))
    ids = [shelf.stored(b"x") for _ in range(3)]
    for stream_id in ids:
        shelf.bodies.consume(stream_id, 0.0)
    with pytest.raises(UnknownId):
        shelf.bodies.peek(ids[0])
    with pytest.raises(BodyConsumed):
        shelf.bodies.peek(ids[1])


def test_a_flood_is_reclaimed_a_part_at_a_time() -> None:
    shelf = Shelf(PickerLimits(body_ttl=1.0))
    for _ in range(EXPIRE_AT_ONCE + 1):
        shelf.stored(b"x")
    assert [shelf.bodies.expire(1.0) for _ in range(3)] == [EXPIRE_AT_ONCE, 1, 0]
