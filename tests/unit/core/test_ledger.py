"""The ledger: counted once, given back once, to the life that took it."""

from kinference.core.fleet import Observation
from kinference.core.ledger import UNLIMITED, Claim, Ledger, Load
from kinference.ids import ReservationId

CLAIM = Claim(prefill_tokens=100, decode_tokens=50, resident_tokens=150)


def counts(load: Load) -> tuple[int, int, int, int, int]:
    return load.requests, load.prefilling, load.prefill_tokens, load.decode_tokens, load.resident


def test_a_reservation_counts_at_once_and_never_has_id_0() -> None:
    ledger, load = Ledger(), Load()
    numbers = [ledger.reserve(load, CLAIM, 0.0) for _ in range(3)]
    assert 0 not in numbers
    assert len(set(numbers)) == 3
    assert counts(load) == (3, 3, 300, 150, 450)


def test_the_first_token_gives_back_the_prefill_part_once() -> None:
    ledger, load = Ledger(), Load()
    number = ledger.reserve(load, CLAIM, 0.0)
    assert ledger.first_token(number, 0.0)
    assert not ledger.first_token(number, 0.0)
    assert counts(load) == (1, 0, 0, 50, 150)


def test_release_gives_back_everything_exactly_once() -> None:
    ledger, load = Ledger(), Load()
    early, late = ledger.reserve(load, CLAIM, 0.0), ledger.reserve(load, CLAIM, 0.0)
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
        ledger.reserve(load, CLAIM, 0.0)
    load.observe(Observation(5.0, waiting=2, running=1), typical_tokens=200)
    assert (load.foreign_tokens, load.foreign_requests) == (0, 0)
    load.observe(Observation(6.0, waiting=5, running=4), typical_tokens=200)
    assert (load.foreign_tokens, load.foreign_requests) == (400, 6)


def test_room_in_the_kv_cache_counts_ours_as_already_in_it() -> None:
    ledger, load = Ledger(), Load()
    assert load.room == UNLIMITED
    ledger.reserve(load, CLAIM, 0.0)
    load.observe(Observation(0.0, 0, 1, kv_usage_ratio=0.75, kv_blocks=100, block_tokens=16), typical_tokens=1)
    assert load.room - load.resident == 400
    ledger.reserve(load, CLAIM, 0.0)
    assert load.room - load.resident == 250


def test_a_kv_usage_beyond_1_is_a_full_cache() -> None:
    load = Load()
    load.observe(Observation(0.0, 0, 1, kv_usage_ratio=1.2, kv_blocks=100, block_tokens=16), typical_tokens=1)
    assert load.room == 0
