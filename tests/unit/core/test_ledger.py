"""The ledger: counted once, given back once, to the life that took it."""

import pytest

from kinference.core.fleet import Observation
from kinference.core.ledger import (
    FROZEN_AFTER_S,
    HEADWAY_MAX,
    IDLE_SCRAPES,
    LAG_MS_MAX,
    LATE_MS,
    LOST_AFTER_S,
    SILENCE,
    SILENCE_MS,
    TOLD_MAX,
    UNLIMITED,
    Ledger,
    Load,
)
from kinference.ids import ReservationId

PREFILL, DECODE = 100, 50
"""Tokens of each request."""


def counts(load: Load) -> tuple[int, int, int, int, int]:
    return load.requests, load.prefilling, load.prefill_tokens, load.decode_tokens, load.resident


def test_a_reservation_counts_at_once_and_never_has_id_0() -> None:
    ledger, load = Ledger(), Load()
    numbers = [ledger.reserve(load, PREFILL, DECODE, 0.0) for _ in range(3)]
    assert 0 not in numbers
    assert len(set(numbers)) == 3
    assert counts(load) == (3, 3, 300, 150, 450)


def test_the_first_token_gives_back_the_prefill_part_once() -> None:
    ledger, load = Ledger(), Load()
    number = ledger.reserve(load, PREFILL, DECODE, 0.0)
    assert ledger.first_token(number, 0.0)
    assert not ledger.first_token(number, 0.0)
    assert counts(load) == (1, 0, 0, 50, 150)


def test_release_gives_back_everything_exactly_once() -> None:
    ledger, load = Ledger(), Load()
    early, late = ledger.reserve(load, PREFILL, DECODE, 0.0), ledger.reserve(load, PREFILL, DECODE, 0.0)
    ledger.first_token(late, 0.0)
    assert [ledger.release(number, 0.0) for number in (early, late, early, late)] == [True, True, False, False]
    assert counts(load) == (0, 0, 0, 0, 0)
    assert len(ledger) == 0


def test_unknown_reservations_are_ignored() -> None:
    ledger = Ledger()
    assert not ledger.first_token(ReservationId(0), 0.0)
    assert not ledger.release(ReservationId(99), 0.0)


def test_a_scrape_adds_only_what_our_own_ledger_does_not_explain() -> None:
    ledger, load = Ledger(), Load()
    for _ in range(3):
        ledger.reserve(load, PREFILL, DECODE, 0.0)
    load.observe(Observation(5.0, waiting=2, running=1), typical_tokens=200)
    assert (load.foreign_tokens, load.foreign_requests) == (0, 0)
    load.observe(Observation(6.0, waiting=5, running=4), typical_tokens=200)
    assert (load.foreign_tokens, load.foreign_requests) == (400, 6)


def test_room_in_the_kv_cache_counts_ours_as_already_in_it() -> None:
    ledger, load = Ledger(), Load()
    assert load.room == UNLIMITED
    ledger.reserve(load, PREFILL, DECODE, 0.0)
    load.observe(Observation(0.0, 0, 1, kv_usage_ratio=0.75, kv_blocks=100, block_tokens=16), typical_tokens=1)
    assert load.room - load.resident == 400
    ledger.reserve(load, PREFILL, DECODE, 0.0)
    assert load.room - load.resident == 250


def test_a_kv_usage_beyond_1_is_a_full_cache() -> None:
    load = Load()
    load.observe(Observation(0.0, 0, 1, kv_usage_ratio=1.2, kv_blocks=100, block_tokens=16), typical_tokens=1)
    assert load.room == 0


# --- lost reports -------------------------------------------------------------------------------


def seen(at: float, running: int, waiting: int = 0, kv: float | None = None) -> Observation:
    return Observation(at, waiting, running, kv)


def test_what_the_engine_never_tells_of_for_long_is_written_off_the_oldest_first() -> None:
    ledger, load = Ledger(), Load()
    numbers = [ledger.reserve(load, PREFILL, DECODE, 0.0) for _ in range(5)]
    ledger.first_token(numbers[0], 0.0)
    for at, running in ((0.0, 2), (5.0, 4), (10.0, 3)):
        load.observe(seen(at, running), 1.0)
        assert load.lost == 0
    ledger.reserve(load, PREFILL, DECODE, 0.0)
    load.observe(seen(LOST_AFTER_S, 3), 1.0)
    assert load.lost == 1  # at one moment all but one were there
    ledger.write_off(load)
    assert (load.requests, load.prefilling, load.lost) == (5, 5, 0)
    assert ledger.release(numbers[0], 0.0)  # its late report is a report all the same, and takes nothing twice
    assert load.requests == 5


def test_all_that_is_lost_is_gone_when_the_engine_is_idle_and_nothing_younger_with_it() -> None:
    ledger, load = Ledger(), Load()
    lost = [ledger.reserve(load, PREFILL, DECODE, 0.0) for _ in range(3)]
    load.observe(seen(0.0, 0), 1.0)
    young = ledger.reserve(load, PREFILL, DECODE, 0.0)
    load.observe(seen(LOST_AFTER_S + 1, 0), 1.0)
    ledger.write_off(load)
    assert (load.requests, load.prefill_tokens, load.decode_tokens, load.resident) == (
        1,
        PREFILL,
        DECODE,
        PREFILL + DECODE,
    )
    for number in (*lost, young):
        ledger.first_token(number, 0.0)
        ledger.release(number, 0.0)
    assert (load.requests, load.prefilling, load.prefill_tokens, load.decode_tokens, load.resident) == (0, 0, 0, 0, 0)
    assert not load.prompts


def test_what_is_on_its_way_is_not_lost() -> None:
    ledger, load = Ledger(), Load()
    for at in range(100):
        number = ledger.reserve(load, PREFILL, DECODE, 0.0)
        load.observe(seen(float(at), at % 2), 1.0)  # every other scrape comes before the engine has it
        ledger.release(number, 0.0)
        assert load.lost == 0


def test_what_the_engine_has_not_told_of_lately_is_doubted_as_long_as_it_does_not() -> None:
    ledger, load = Ledger(), Load()
    numbers = [ledger.reserve(load, PREFILL, DECODE, 0.0) for _ in range(5)]
    for at, running, doubted in ((0.0, 2, 0), (1.0, 1, 0), (2.0, 2, 3), (3.0, 3, 2), (4.0, 2, 2), (5.0, 5, 0)):
        load.observe(seen(at, running), 1.0)
        assert (at, load.doubted, load.believed) == (at, doubted, 5 - doubted)
    for number in numbers:
        ledger.release(number, 6.0)
    assert load.believed == 0


def test_prompts_that_nobody_reports_are_done_in_time_unless_the_engine_tells_that_some_wait() -> None:
    ledger, load = Ledger(), Load()
    for _ in range(10):
        ledger.reserve(load, PREFILL, DECODE, 0.0)
    whole = float(PREFILL)
    assert not load.is_silent(1.0, 0.5)
    assert load.is_silent(1.0, 3_600.0)
    assert load.done_ms(1.0, 3_600.0) == 10 * whole
    load.observe(seen(3_600.0, 1, waiting=9), 1.0)
    assert load.done_ms(1.0, 3_600.0) == whole


def test_a_busy_engine_whose_numbers_stand_still_is_believed_less_and_less() -> None:
    load = Load()
    for at in range(60):
        load.observe(seen(float(at), 7, 3, 0.5), 1.0)
    assert load.seen_at == FROZEN_AFTER_S
    load.observe(seen(60.0, 7, 3, 0.51), 1.0)
    assert load.seen_at == 60.0


@pytest.mark.parametrize(("running", "kv"), [(0, 0.5), (7, None)])
def test_numbers_that_may_stand_still_by_rights_do_not_age(running: int, kv: float | None) -> None:
    load = Load()
    for at in range(60):
        load.observe(seen(float(at), running, 0, kv), 1.0)
    assert load.seen_at == 59.0


def test_what_must_be_computed_of_the_first_prompt_by_now_is_no_longer_ahead() -> None:
    ledger, load = Ledger(), Load()
    assert load.done_ms(1.0, 5.0) == 0.0
    first = ledger.reserve(load, 100, 1, 5.0)
    ledger.reserve(load, 200, 1, 5.0)
    assert [load.done_ms(1.0, now) for now in (5.0, 5.05, 5.1, 6.0)] == pytest.approx([0.0, 50.0, 100.0, 100.0])
    ledger.first_token(first, 6.0)
    assert load.first_prompt == 200
    assert load.done_ms(1.0, 6.05) == pytest.approx(50.0)


def test_callers_who_never_report_do_not_leave_an_engine_busy_for_ever() -> None:
    ledger, load = Ledger(), Load()
    for _ in range(3):
        ledger.reserve(load, 100, 1, 0.0)
    assert load.done_ms(1.0, 1.0) == pytest.approx(100.0)
    assert load.done_ms(1.0, 1.6) == pytest.approx(200.0)
    assert load.done_ms(1.0, 10.0) == pytest.approx(300.0)


@pytest.mark.parametrize("waiting", [0, 3])
@pytest.mark.parametrize("wanted_ms", [-1.0, 0.0, 40.0, 100.0, 100.1, 250.0, 300.0])
@pytest.mark.parametrize("now", [0.0, 0.03, 0.2, 1.45, 5.0])
def test_when_prompts_are_taken_for_done_is_known_before(wanted_ms: float, waiting: int, now: float) -> None:
    ledger, load = Ledger(), Load()
    for _ in range(3):
        ledger.reserve(load, PREFILL, DECODE, 0.0)
    load.waiting = waiting
    in_ms = load.ms_until_done(wanted_ms, 1.0, now)
    if in_ms == UNLIMITED:
        assert load.done_ms(1.0, 1e6) < wanted_ms, "no time is enough"
    else:
        assert load.done_ms(1.0, now + in_ms / 1e3 + 1e-9) >= wanted_ms
    if 0.0 < in_ms < UNLIMITED:
        assert load.done_ms(1.0, now + in_ms / 1e3 - 1e-6) < wanted_ms


def test_where_nothing_is_sent_nothing_will_be_done() -> None:
    assert Load().ms_until_done(1.0, 1.0, 0.0) == UNLIMITED
    assert not Load().is_silent(1.0, 1e6)


def test_when_a_caller_is_silent_is_known_before() -> None:
    ledger, load = Ledger(), Load()
    ledger.reserve(load, PREFILL, DECODE, 0.0)
    in_s = load.ms_until_silent(1.0, 0.5) / 1e3
    assert [load.is_silent(1.0, 0.5 + in_s + late) for late in (-1e-6, 1e-6)] == [False, True]


def test_an_engine_that_told_of_nothing_while_it_served_is_not_believed_until_it_tells_of_something() -> None:
    ledger, load = Ledger(), Load()
    first, *others = [ledger.reserve(load, PREFILL, DECODE, 0.0) for _ in range(5)]
    ledger.first_token(first, 0.1)
    for at in range(IDLE_SCRAPES):
        load.observe(seen(float(at), 0), 1.0)
    assert load.doubted == 5
    ledger.served(first)
    for at in range(IDLE_SCRAPES, 100):
        load.observe(seen(float(at), 0), 1.0)
        assert (load.doubted, load.lost) == (0, 0)
    assert load.seen_at == FROZEN_AFTER_S
    load.observe(seen(100.0, 1), 1.0)
    assert (load.is_disproved, load.seen_at) == (False, 100.0)
    ledger.served(others[0])
    assert not load.is_disproved, "it was idle for no time while that was served"


def test_a_few_idle_scrapes_disprove_nothing() -> None:
    ledger, load = Ledger(), Load()
    number = ledger.reserve(load, PREFILL, DECODE, 0.0)
    for at in range(IDLE_SCRAPES - 1):
        load.observe(seen(float(at), 0), 1.0)
    ledger.served(number)
    ledger.release(number, 2.0)
    ledger.served(number)
    assert not load.is_disproved


def test_of_what_is_ahead_so_much_is_left_as_time_has_not_allowed_to_compute() -> None:
    ledger, load = Ledger(), Load()
    for _ in range(4):
        ledger.reserve(load, PREFILL, DECODE, 0.0)
    assert load.left_of(load.prefill_tokens, 1.0, 0.0) == 400
    assert load.left_of(load.prefill_tokens, 1.0, 0.06) == 340
    assert load.left_of(50.0, 1.0, 0.1) == 0.0


def hung(*, heard: bool) -> tuple[Ledger, Load]:
    """A prompt of 100 ms has been at an engine since 10 s."""
    ledger, load = Ledger(), Load()
    if heard:
        ledger.first_token(ledger.reserve(load, 100, 10, 0.0), 1.0)
    ledger.reserve(load, 100, 10, 10.0)
    return ledger, load


def test_an_engine_that_accepts_and_answers_no_more_seems_to_hang_for_as_long_again_as_it_has() -> None:
    _, load = hung(heard=True)
    assert [load.hung_ms(1.0, now) for now in (10.0, 10.5, 11.4, 12.4, 20.4)] == pytest.approx([0, 0, 0, 1_000, 9_000])
    assert load.hung_ms(1.0, 11.4 + LOST_AFTER_S) == 0.0, "its callers have ceased to report"


def test_where_nobody_ever_reported_and_where_others_have_since_an_engine_does_not_seem_to_hang() -> None:
    _, load = hung(heard=False)
    assert load.hung_ms(1.0, 15.0) == 0.0
    ledger, load = hung(heard=True)
    ledger.first_token(ledger.reserve(load, 100, 10, 11.0), 12.0)
    assert load.hung_ms(1.0, 15.0) == 0.0


def test_an_engine_with_nothing_to_do_does_not_seem_to_hang() -> None:
    ledger, load = Ledger(), Load()
    ledger.first_token(ledger.reserve(load, 100, 10, 0.0), 1.0)
    assert load.hung_ms(1.0, 5.0) == 0.0
    assert load.left_of(0.0, 1.0, 5.0) == 0.0


def test_an_engine_that_tells_of_less_than_was_sent_does_not_seem_to_hang() -> None:
    _, load = hung(heard=True)
    for number in range(5):
        load.observe(seen(11.0 + number, running=0), 500.0)
    assert load.doubted
    assert load.hung_ms(1.0, 15.0) == 0.0


def test_packing_changes_nothing_but_the_table() -> None:
    ledger, load = Ledger(), Load()
    numbers = [ledger.reserve(load, PREFILL, DECODE, 0.0) for _ in range(3)]
    ledger.release(numbers[0], 0.0)
    ledger.pack()
    assert len(ledger) == 2
    assert [ledger.release(number, 0.0) for number in numbers] == [False, True, True]


def test_time_in_which_nobody_reported_does_nothing_for_who_comes_after_it() -> None:
    ledger, load = Ledger(), Load()
    ledger.reserve(load, 1_000, 10, now=0.0)
    load.close_silence(1.0, 3_600.0)
    ledger.reserve(load, 10_000, 10, now=3_600.0)
    assert load.prefill_tokens - load.done_ms(1.0, 3_600.0) == 10_000
    assert load.prefill_tokens - load.done_ms(1.0, 3_604.0) == 6_000


def test_a_silence_that_has_not_gone_on_for_so_long_goes_on() -> None:
    ledger, load = Ledger(), Load()
    ledger.reserve(load, 1_000, 10, now=0.0)
    load.close_silence(1.0, 2.0)
    assert load.begun_at == 0.0


def test_what_is_given_back_with_nothing_heard_of_it_does_not_begin_the_time_of_the_next_one() -> None:
    ledger, load = Ledger(), Load()
    numbers = [ledger.reserve(load, 1_000, 10, now=float(second)) for second in range(60)]
    ledger.release(numbers[0], 60.0, is_told=False)
    assert load.done_ms(1.0, 60.0) == 60_000.0 - SILENCE * 1_000.0 - SILENCE_MS
    ledger.release(numbers[1], 60.0)
    assert load.done_ms(1.0, 60.0) == 0.0


def test_where_nobody_has_ever_reported_nobody_waits_long_for_a_guess() -> None:
    ledger, load = Ledger(), Load()
    ledger.reserve(load, 1_000_000, 10, now=0.0)
    assert [load.is_silent(1.0, now) for now in (1.9, 2.1)] == [False, True]


def test_more_may_be_ahead_while_the_last_first_tokens_came_in_less_than_half_the_time() -> None:
    load = Load()
    for share in (1.0, 0.6, 1.5):
        for _ in range(30):
            load.note_first(1_000.0 * share, 1_000.0)
        assert load.headway == 1.0
    for _ in range(30):
        load.note_first(100.0, 1_000.0)
    assert 3.5 < load.headway < 5.0, "ten times as quick: five times as much is within half of it"
    for _ in range(5):
        load.note_first(1_000.0, 1_000.0)
    assert load.headway == 1.0


def test_one_first_token_that_came_at_once_or_before_its_time_changes_little() -> None:
    load = Load()
    for _ in range(10):
        load.note_first(200.0, 200.0)
    load.note_first(-10.0, 500.0)
    assert load.headway == 1.0


def test_headway_is_bounded_and_waits_of_a_few_milliseconds_give_none() -> None:
    quick, short = Load(), Load()
    for _ in range(100):
        quick.note_first(0.0, 1e6)
        short.note_first(0.0, 10.0)
    assert quick.headway == HEADWAY_MAX
    assert short.headway == 1.0


def test_the_way_there_and_back_is_what_a_report_came_later_than_it_says() -> None:
    ledger, load = Ledger(), Load()
    for number in range(40):
        at = 10.0 * number
        reservation = ledger.reserve(load, 100, 10, at)
        ledger.first_token(reservation, at + 0.7)
        ledger.told(reservation, 300.0, at + 0.7)
    assert load.lag_ms == pytest.approx(400.0, rel=0.01)


def test_a_report_that_was_kept_back_or_tells_of_more_time_than_there_was_makes_the_way_no_longer() -> None:
    load = Load()
    load.note_lag(LAG_MS_MAX + 1.0)
    load.note_lag(-500.0)
    assert load.lag_ms == 0.0
    for _ in range(100):
        load.note_lag(LAG_MS_MAX)
    assert load.lag_ms <= LAG_MS_MAX


def test_the_next_one_had_its_turn_when_the_one_before_it_was_done_not_when_that_was_told() -> None:
    ledger, load = Ledger(), Load(lag_ms=500.0)
    first, _, _ = (ledger.reserve(load, 1_000, 10, at) for at in (0.0, 0.0, 0.3))
    ledger.first_token(first, 0.6, 100.0)
    assert load.begun_at == pytest.approx(0.1)
    assert load.done_ms(0.1, 0.15) == pytest.approx(50.0)


def test_one_that_came_to_an_idle_engine_had_its_turn_then() -> None:
    ledger, load = Ledger(), Load(lag_ms=500.0)
    first, _ = ledger.reserve(load, 1_000, 10, 0.0), ledger.reserve(load, 1_000, 10, 0.3)
    ledger.first_token(first, 0.6, 100.0)
    assert load.begun_at == pytest.approx(0.3)


def test_a_time_that_was_kept_back_for_long_dates_nothing_back_further_than_reports_may_be_late() -> None:
    ledger, load = Ledger(), Load(lag_ms=500.0)
    first, _ = ledger.reserve(load, 1_000, 10, 0.0), ledger.reserve(load, 1_000, 10, 0.0)
    ledger.first_token(first, 9.0, 0.0)
    assert load.begun_at == pytest.approx(9.0 - LAG_MS_MAX / 1e3)


MS_PER_TOKEN = 0.1


def test_what_had_ended_when_one_was_sent_was_not_ahead_of_it_though_nobody_had_told() -> None:
    """Two prompts of 100 ms, told of 500 ms late; a third sent when the second is half done takes as long as the rest."""
    ledger, load = Ledger(), Load(lag_ms=500.0)
    first, second = ledger.reserve(load, 1_000, 10, 0.0), ledger.reserve(load, 1_000, 10, 0.0)
    third = ledger.reserve(load, 500, 10, 0.15)
    told = ((first, 100.0, 0.6, 1_000.0), (second, 200.0, 0.7, 2_000.0), (third, 100.0, 0.75, 1_000.0))
    for number, ttft_ms, now, computed in told:
        assert ledger.computed_since(number, ttft_ms, MS_PER_TOKEN, now) == pytest.approx(computed)
        ledger.first_token(number, now, ttft_ms)


def test_of_one_that_came_to_an_idle_engine_only_its_own_tokens_were_computed() -> None:
    ledger, load = Ledger(), Load(lag_ms=500.0)
    for number in range(2 * TOLD_MAX):
        one = ledger.reserve(load, 100, 10, float(number))
        assert ledger.computed_since(one, 10.0, MS_PER_TOKEN, number + 0.5) == 100.0
        ledger.first_token(one, number + 0.5, 10.0)


def test_where_it_is_not_known_what_was_computed_nothing_is_said() -> None:
    ledger, load = Ledger(), Load(lag_ms=500.0)
    first, second = ledger.reserve(load, 100, 10, 0.0), ledger.reserve(load, 100, 10, 0.0)
    assert ledger.computed_since(second, 20.0, MS_PER_TOKEN, 0.5) is None, "one before it has not been told of"
    assert ledger.computed_since(first, 900.0, MS_PER_TOKEN, 0.5) is None, "more time than there was"
    ledger.release(first, 0.5)
    assert ledger.computed_since(second, 20.0, MS_PER_TOKEN, 0.5) is None, "one before it ended without a word"
    third = ledger.reserve(load, 100, 10, 1.0)
    ledger.first_token(second, 1.0)
    assert ledger.computed_since(third, 10.0, MS_PER_TOKEN, 1.5) == 100.0
    ledger.first_token(third, 1.5)
    assert ledger.computed_since(third, 10.0, MS_PER_TOKEN, 1.5) is None
    many = [ledger.reserve(load, 100, 10, 2.0) for _ in range(TOLD_MAX + 2)]
    for number in many[:-1]:
        ledger.computed_since(number, 10.0, MS_PER_TOKEN, 3.0)
        ledger.first_token(number, 3.0, 10.0)
    assert ledger.computed_since(many[-1], 20.0, MS_PER_TOKEN, 3.0) is None, "so many are not remembered"


def test_where_reports_are_not_late_what_was_known_when_one_was_sent_stands() -> None:
    ledger, load = Ledger(), Load(lag_ms=LATE_MS)
    first, second = ledger.reserve(load, 1_000, 10, 0.0), ledger.reserve(load, 1_000, 10, 0.0)
    assert ledger.computed_since(first, 100.0, MS_PER_TOKEN, 0.105) is None
    ledger.first_token(first, 0.105, 100.0)
    assert load.begun_at == 0.105
    assert load.done_ms(MS_PER_TOKEN, 0.3) == pytest.approx(100.0)
    assert ledger.computed_since(second, 200.0, MS_PER_TOKEN, 0.205) is None
