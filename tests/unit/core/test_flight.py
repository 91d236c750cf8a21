"""What one request's reports teach."""

import pytest

from kinference.core.flight import Flight
from kinference.core.policy import TargetKind
from kinference.core.rates import Typical, cold_rates
from kinference.core.roster import BYTES_PER_TOKEN, Destination, ModelTraits
from kinference.ids import ObjectRef


def flight_of(*, believed: int = 0, alone: bool = True) -> Flight:
    destination = Destination(TargetKind.POOL, ObjectRef("default", "pool"), "pool")
    return Flight(destination, cold_rates(Typical()), ModelTraits(), 3_000, 1_000.0, believed, None, alone)


def test_a_good_answer_teaches_rates_counts_and_hold_time() -> None:
    flight = flight_of()
    before = flight.rates.hold_ms
    flight.learn_first(500.0, 200, now=1.0)
    flight.learn_final(1_000, 50, now=2.0)
    assert flight.rates.samples == 1
    assert flight.traits.bytes_per_token < BYTES_PER_TOKEN
    assert flight.rates.hold_ms < before


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
