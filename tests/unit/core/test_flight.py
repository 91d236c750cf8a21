"""What one request's reports teach."""

from array import array

import pytest

from kinference.core.fleet import CacheFeed, Endpoint, EndpointSpec
from kinference.core.flight import Aside, Flight
from kinference.core.limits import Accounts, Hold, Limits
from kinference.core.policy import TargetKind
from kinference.core.prefix.index import Insertion
from kinference.core.prices import Price
from kinference.core.rates import Typical, cold_rates
from kinference.core.roster import BYTES_PER_TOKEN, Destination, ModelTraits
from kinference.ids import Address, ObjectRef
from kinference.vocabulary import AbortReason


def flight_of(*, believed: int = 0, alone: bool = True, hold: Hold | None = None) -> Flight:
    destination = Destination(TargetKind.POOL, ObjectRef("default", "pool"), "pool")
    flight = Flight(destination, cold_rates(Typical()), ModelTraits(), 3_000, None)
    flight.computed_tokens, flight.believed_tokens, flight.alone, flight.hold = 1_000.0, believed, alone, hold
    return flight


def test_a_good_answer_teaches_rates_counts_and_hold_time() -> None:
    flight = flight_of()
    before = flight.rates.hold_ms
    flight.learn_first(500.0, 200, now=1.0)
    flight.learn_final(1_000, 50, now=2.0)
    assert flight.rates.samples == 1
    assert flight.traits.bytes_per_token < BYTES_PER_TOKEN
    assert flight.rates.hold_ms < before


def test_a_first_token_teaches_no_rates_when_its_length_was_guessed_and_others_are_known_by_now() -> None:
    flight = flight_of()
    flight.traits.learn_counts(3_000, 1_000, 50)
    flight.learn_first(500.0, 200, now=1.0)
    assert flight.rates.samples == 0
    flight.is_measured = True
    flight.learn_first(500.0, 200, now=1.0)
    assert flight.rates.samples == 1


@pytest.mark.parametrize("status", [0, 400, 429, 503])
def test_a_bad_answer_teaches_no_rates_and_no_counts(status: int) -> None:
    flight = flight_of()
    flight.learn_first(1.0, status, now=1.0)
    flight.learn_final(1_000, 50, now=2.0)
    assert not flight.served
    assert flight.rates.samples == 0
    assert flight.traits.bytes_per_token == BYTES_PER_TOKEN
    assert flight.destination.circuit.failures == (status != 400)


def test_an_end_without_a_first_byte_was_good() -> None:
    flight = flight_of()
    flight.destination.circuit.failed("before", 0.0)
    flight.learn_final(1_000, 50, now=2.0)
    assert flight.served
    assert flight.destination.circuit.failures == 0


def test_an_answer_that_broke_off_is_a_fault_whose_counts_are_good_all_the_same() -> None:
    flight = flight_of()
    flight.learn_first(500.0, 200, now=1.0)
    flight.learn_break(now=2.0)
    flight.learn_final(1_000, 50, now=2.0)
    assert flight.destination.circuit.breaks == 1
    assert flight.traits.bytes_per_token < BYTES_PER_TOKEN


@pytest.mark.parametrize(
    ("believed", "cached", "alone", "dropped"),
    [(1_000, 0, True, True), (1_000, 600, True, False), (1_000, 0, False, False), (0, 0, True, False)],
)
def test_only_a_clear_miss_with_nothing_ahead_shows_that_the_cache_dropped_something(
    believed: int, cached: int, *, alone: bool, dropped: bool
) -> None:
    flight = flight_of(believed=believed, alone=alone)
    assert flight.learn_hit(cached) is dropped
    assert (flight.destination.hit_trust < 1.0) == (cached < believed)


def held() -> tuple[Flight, Hold]:
    account = Accounts().of("t", Limits(1, 1_000, usd_per_month=1.0), 0.0)
    assert account is not None
    hold = account.hold(400, Price(1_000.0, 2_000.0, 500.0), 0.4)
    return flight_of(hold=hold), hold


def used(hold: Hold) -> tuple[float, float, float]:
    """Requests, tokens, dollars."""
    requests, tokens = hold.account.requests, hold.account.tokens
    assert requests is not None
    assert tokens is not None
    assert hold.account.in_flight == 0
    return requests.size - requests.level, tokens.size - tokens.level, round(hold.account.spent_usd, 6)


def test_the_final_counts_replace_what_was_expected_and_cached_tokens_are_cheaper() -> None:
    flight, hold = held()
    flight.learn_first(1.0, 200, 0.0)
    flight.settle(100, 20, 60)
    assert used(hold) == (1, 120, 0.11)


def test_a_final_without_counts_is_no_gift() -> None:
    flight, hold = held()
    flight.settle(0, 0, None)
    assert used(hold) == (1, 400, 0.4)


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("status", [0, 400, 429, 503])
def test_an_answer_that_failed_costs_nothing(status: int, counted: bool) -> None:
    flight, hold = held()
    flight.learn_first(1.0, status, 0.0)
    if counted:
        flight.settle(100, 20, 0)
    else:
        flight.settle_unreported(AbortReason.UNSPECIFIED)
    assert used(hold) == (0, 0, 0)


@pytest.mark.parametrize("reason", list(AbortReason))
def test_what_may_have_run_counts_as_expected_and_what_cannot_have_run_does_not(reason: AbortReason) -> None:
    flight, hold = held()
    flight.settle_unreported(reason)
    assert used(hold) == ((1, 400, 0.4) if reason is AbortReason.UNSPECIFIED else (0, 0, 0))


def test_without_limits_nothing_is_settled() -> None:
    flight_of().settle(1, 1, 1)
    flight_of().settle_unreported(AbortReason.UNSPECIFIED)


def test_a_prompt_that_somebody_asked_for_tells_when_it_is_answered_and_what_was_cached() -> None:
    flight = flight_of()
    assert flight.sent() is None
    assert flight.learn_cached(100) is None
    endpoint = Endpoint(EndpointSpec(ObjectRef("default", "pool"), Address("h:1"), cache_feed=CacheFeed(5557)), 0, 1)
    flight = Flight(
        Destination(TargetKind.POOL, endpoint.spec.pool, "pool", endpoint),
        cold_rates(Typical()),
        ModelTraits(),
        3_000,
        Insertion(1, 0, [1, 2, 3], 0, 0),
    )
    sent = flight.sent()
    assert sent is not None
    assert sent is flight.sent()
    assert not sent.is_answered
    assert flight.learn_cached(256) is sent
    assert (sent.is_answered, sent.confirmed) == (True, 2)
    assert flight.learn_cached(None) is sent
    assert sent.confirmed is None


def test_only_a_first_token_behind_other_prompts_tells_how_long_prompts_wait_for_each_other() -> None:
    first, behind = flight_of(), flight_of(alone=False)
    for flight in (first, behind):
        flight.learn_first(500.0, 200, now=1.0)
    assert [flight.rates.typical.in_line for flight in (first, behind)] == [0, 1]


def test_first_tokens_far_sooner_than_expected_give_the_next_ones_headway() -> None:
    flight = flight_of()
    flight.learn_first(flight.rates.base_ms + 1.0, 200, now=1.0)
    assert flight.destination.load.headway > 1.0


@pytest.mark.parametrize(
    ("is_lone", "loads_adapter", "bound"), [(True, False, 900.0), (False, False, 500.0), (True, True, 500.0)]
)
def test_only_who_had_the_engine_for_itself_tells_that_an_empty_prompt_may_take_long(
    is_lone: bool, loads_adapter: bool, bound: float
) -> None:
    flight = flight_of()
    flight.is_lone, flight.loads_adapter = is_lone, loads_adapter
    flight.learn_first(900.0, 200, now=1.0)
    assert flight.rates.typical.base_ms_max == bound


def test_what_is_set_aside_and_taken_up_again_is_the_same_flight() -> None:
    flight, hold = held()
    flight.insertion = Insertion(7, 3, array("Q", [1, 2**64 - 1]), 1, 5)
    flight.loads_adapter = flight.is_measured = flight.is_lone = True
    aside = flight.aside()
    assert isinstance(aside, Aside)
    same = aside.resume()
    assert all(
        getattr(same, name) is getattr(flight, name) for name in ("destination", "rates", "traits", "status", "prompt")
    )
    assert (same.prompt_bytes, same.computed_tokens, same.believed_tokens) == (3_000, 1_000.0, flight.believed_tokens)
    assert (same.alone, same.loads_adapter, same.served, same.broken, same.is_measured, same.is_lone) == (
        flight.alone,
        True,
        True,
        False,
        True,
        True,
    )
    assert same.insertion is not None
    assert (same.insertion.number, same.insertion.slot, same.insertion.known, same.insertion.touched) == (7, 3, 1, 5)
    assert list(same.insertion.blocks) == [1, 2**64 - 1]
    same.settle_unreported(AbortReason.NOT_DISPATCHED)
    assert used(hold) == (0, 0, 0)


def test_a_flight_of_which_something_was_heard_is_not_set_aside() -> None:
    flight = flight_of()
    flight.learn_first(500.0, 200, now=1.0)
    assert flight.aside() is flight
