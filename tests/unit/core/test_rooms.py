"""Who can begin with one more prompt soon, and when the first can."""

import pytest

from kinference.core.fleet import Observation
from kinference.core.ledger import Ledger
from kinference.core.policy import TargetKind
from kinference.core.rates import Rates, Typical
from kinference.core.rooms import TRIED, find_rooms, has_room, ready_ms, rooms_later
from kinference.core.roster import Destination
from kinference.ids import ObjectRef

Place = tuple[Destination, Rates]
WITHIN_MS = 125.0
LEARNED = Typical(samples=100, in_line=100)


def place(*prompts: int, typical: Typical = LEARNED) -> Place:
    """A destination that computes a token in 0.1 ms, and has been sent these prompts at 0."""
    destination, ledger = Destination(TargetKind.POOL, ObjectRef("default", "pool"), "one"), Ledger()
    for tokens in prompts:
        ledger.reserve(destination.load, tokens, 1, 0.0)
    return destination, Rates(typical)


def test_who_can_begin_soon_enough_is_free_and_then_the_first_is_free_now() -> None:
    rooms = find_rooms({"full": place(10_000), "idle": place(), "near": place(1_000)}, WITHIN_MS, 7, 0.0)
    assert (rooms.usable, list(rooms.free)) == ({"full", "idle", "near"}, ["idle", "near"])
    assert (rooms.at, rooms.changes, rooms.free_at) == (0.0, 7, 0.0)


def test_where_none_is_free_the_first_will_be_once_so_much_is_computed() -> None:
    places = {"long": place(20_000), "short": place(10_000)}
    rooms = find_rooms(places, WITHIN_MS, 0, 0.0)
    assert not rooms.free
    assert rooms.free_at == pytest.approx(1.0 - WITHIN_MS / 1e3)
    assert find_rooms(places, WITHIN_MS, 0, rooms.free_at - 1e-6).free == {}
    assert find_rooms(places, WITHIN_MS, 0, rooms.free_at + 1e-6).free == {"short": places["short"]}


def test_who_cannot_be_used_has_no_room_and_where_nobody_can_it_is_looked_at_again_at_once() -> None:
    broken = place()
    broken[0].circuit.reject("no route", 0.0)
    rooms = find_rooms({"broken": broken}, WITHIN_MS, 0, 1.0)
    assert (rooms.usable, rooms.free, rooms.free_at) == (set(), {}, 1.0)


def test_a_few_may_be_where_nothing_is_told_and_nobody_knows_whether_they_wait_for_each_other() -> None:
    untried = Typical(samples=5, in_line=TRIED - 1)
    for prompts, typical, is_free in (
        ((10_000,), untried, True),
        ((10_000,) * TRIED, untried, False),
        ((10_000,), Typical(samples=5, in_line=TRIED), False),
    ):
        destination, rates = place(*prompts, typical=typical)
        assert has_room(destination.load, rates, WITHIN_MS, 0.0) is is_free
        assert find_rooms({"one": (destination, rates)}, WITHIN_MS, 0, 0.0).free.keys() == (
            {"one"} if is_free else set()
        )
    told = place(10_000, typical=untried)
    told[0].load.observe(Observation(0.0, 0, 1), 100.0)
    assert not has_room(told[0].load, told[1], WITHIN_MS, 0.0)
    assert not has_room(place(10_000, typical=untried)[0].load, Rates(untried), 0.0, 0.0)


def test_what_others_sent_counts_the_less_the_older_the_scrape_is() -> None:
    destination, rates = place()
    destination.load.observe(Observation(0.0, 4, 0), 5_000.0)
    assert ready_ms(destination.load, rates, 0.0) == pytest.approx(2_000.0)
    assert ready_ms(destination.load, rates, 5.0) == pytest.approx(1_000.0)
    assert find_rooms({"one": (destination, rates)}, WITHIN_MS, 0, 5.0).free_at == pytest.approx(5.875)


def test_of_what_the_engine_has_not_told_of_only_the_share_that_it_tells_of_is_waited_for() -> None:
    destination, rates = place(5_000, 5_000)
    destination.load.doubted = 1
    assert ready_ms(destination.load, rates, 0.0) == pytest.approx(500.0)
    assert find_rooms({"one": (destination, rates)}, WITHIN_MS, 0, 0.0).free_at > 0.5


def test_nobody_waits_for_one_that_is_overdue_where_nobody_has_ever_reported() -> None:
    destination, rates = place(100_000, typical=Typical())
    rooms = find_rooms({"one": (destination, rates)}, WITHIN_MS, 0, 0.0)
    assert rooms.free_at == 2.0
    assert ready_ms(destination.load, rates, 2.1) == 0.0
    assert has_room(destination.load, rates, WITHIN_MS, 2.1)


def test_while_nothing_is_told_only_those_who_were_first_are_asked_again_and_say_what_all_would() -> None:
    places = {"long": place(20_000), "short": place(10_000), "equal": place(10_000)}
    before = find_rooms(places, WITHIN_MS, 0, 0.1)
    assert list(before.first) == [places["short"], places["equal"]]
    for now in (0.1, 0.3, 0.87):
        later = rooms_later(before, WITHIN_MS, now)
        assert later is not None
        again = find_rooms(places, WITHIN_MS, 0, now)
        assert (later.at, later.usable, later.free_at, later.first) == (now, again.usable, again.free_at, again.first)
        before = later


def test_all_are_asked_again_where_time_alone_may_have_changed_who_is_first() -> None:
    places = {"one": place(10_000), "other": place(20_000)}
    before = find_rooms(places, WITHIN_MS, 0, 0.0)
    assert rooms_later(before, WITHIN_MS, before.free_at) is None
    assert rooms_later(before, WITHIN_MS, -1.0) is None
    assert rooms_later(find_rooms({"idle": place(), **places}, WITHIN_MS, 0, 0.0), WITHIN_MS, 0.1) is None
    places["other"][0].load.foreign_tokens = 10.0
    assert rooms_later(find_rooms(places, WITHIN_MS, 0, 0.0), WITHIN_MS, 0.1) is None
    places["other"][0].load.foreign_tokens = 0.0
    places["other"][0].circuit.reject("no route", 0.0)
    assert rooms_later(find_rooms(places, WITHIN_MS, 0, 0.0), WITHIN_MS, 0.1) is None


def test_what_is_behind_one_that_nobody_can_have_told_of_yet_is_being_computed() -> None:
    late, prompt = place(1_000, 4_000), place(1_000, 4_000)
    late[0].load.lag_ms = 300.0
    for at, left_ms in ((0.05, 450.0), (0.25, 250.0), (0.4, 100.0), (0.9, 100.0)):
        assert ready_ms(late[0].load, late[1], at) == pytest.approx(left_ms)
    assert ready_ms(prompt[0].load, prompt[1], 0.4) == pytest.approx(400.0)
    assert list(find_rooms({"late": late, "prompt": prompt}, WITHIN_MS, 0, 0.4).free) == ["late"]
    assert not has_room(late[0].load, late[1], 0.0, 0.4), "who is to be there alone is not sent along"
    assert find_rooms({"late": late}, WITHIN_MS, 0, 0.0).free_at == pytest.approx(0.5 - WITHIN_MS / 1e3)


def test_a_way_that_is_shorter_than_what_may_be_ahead_anyway_changes_nothing() -> None:
    near, full = place(1_240), place(1_260)
    for one, _ in (near, full):
        one.load.lag_ms = 100.0
    assert list(find_rooms({"near": near, "full": full}, WITHIN_MS, 0, 0.0).free) == ["near"]
