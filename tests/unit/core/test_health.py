"""Circuits: opening, growing time, trickle, late news."""

from kinference.core.health import (
    BACKOFF_MAX_S,
    FAILURES_TO_OPEN,
    TRIAL_EVERY_S,
    UNUSABLE_BACKOFF_MAX_S,
    UNUSABLE_BACKOFF_S,
    Circuit,
    is_failure,
    is_success,
)


def opened(now: float = 0.0) -> Circuit:
    circuit = Circuit()
    for _ in range(FAILURES_TO_OPEN):
        circuit.failed("status 503", now)
    return circuit


def test_a_few_failures_in_a_row_open_it_and_fewer_do_not() -> None:
    circuit = Circuit()
    for _ in range(FAILURES_TO_OPEN - 1):
        circuit.failed("status 503", 0.0)
    assert circuit.allows(0.0)
    circuit.failed("status 503", 0.0)
    assert not circuit.allows(0.0)
    assert circuit.reason == "status 503"


def test_it_is_doubtful_after_any_failure_until_something_succeeds() -> None:
    assert not Circuit().is_doubtful
    failing, breaking = Circuit(), Circuit()
    failing.failed("status 503", 0.0)
    breaking.broke("broke off", 0.0)
    assert [one.is_doubtful for one in (failing, breaking)] == [True, True]
    failing.succeeded()
    breaking.completed()
    assert [one.is_doubtful for one in (failing, breaking)] == [False, False]


def test_a_success_between_failures_keeps_it_closed_but_shows_in_the_ratio() -> None:
    circuit = Circuit()
    for _ in range(20):
        circuit.failed("status 500", 0.0)
        circuit.succeeded()
    assert circuit.closed
    assert 0.2 < circuit.failure_ratio < 0.8


def test_answers_that_break_off_open_it_although_each_began_well() -> None:
    circuit = Circuit()
    for _ in range(FAILURES_TO_OPEN):
        circuit.succeeded()
        assert circuit.closed
        circuit.broke("broke its answer off", 0.0)
    assert not circuit.closed
    assert circuit.reason == "broke its answer off"


def test_whoever_goes_on_breaking_off_is_left_alone_for_longer_and_longer_up_to_a_bound() -> None:
    circuit, waits = Circuit(), []
    for _ in range(30):
        circuit.succeeded()
        circuit.broke("broke its answer off", 0.0)
        waits.append(next(wait for wait in (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0) if circuit.allows(wait)))
    assert waits[:8] == [0.0, 0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    assert set(waits[8:]) == {BACKOFF_MAX_S}


def test_an_answer_that_ends_forgives_those_that_broke_off() -> None:
    circuit = Circuit()
    for _ in range(10):
        circuit.broke("broke its answer off", 0.0)
        circuit.completed()
    assert circuit.closed


def test_after_its_time_it_lets_a_trickle_through() -> None:
    circuit = opened()
    assert circuit.state(0.5) == "open"
    assert circuit.state(1.0) == "half_open"
    circuit.picked(1.0)
    assert not circuit.allows(1.0)
    assert circuit.allows(1.0 + TRIAL_EVERY_S)


def test_a_trial_that_succeeds_closes_it() -> None:
    circuit = opened()
    circuit.picked(1.0)
    circuit.succeeded()
    assert circuit.state(1.0) == "closed"


def test_trials_that_fail_keep_it_open_for_a_growing_bounded_time() -> None:
    circuit, now, spans = opened(), 0.0, []
    for _ in range(10):
        start = now
        while not circuit.allows(now):
            now += 0.25
        spans.append(now - start)
        circuit.picked(now)
        circuit.failed("status 503", now)
    assert spans[:4] == [1.0, 2.0, 4.0, 8.0]
    assert spans[-1] == BACKOFF_MAX_S


def test_late_failures_of_requests_sent_before_do_not_lengthen_it() -> None:
    circuit = opened()
    for _ in range(50):
        circuit.failed("status 503", 0.1)
    assert circuit.allows(1.0)


def test_an_unusable_backend_is_out_at_once_for_longer_and_longer() -> None:
    circuit = Circuit()
    circuit.reject("no route", 0.0)
    assert circuit.unusable
    assert not circuit.allows(UNUSABLE_BACKOFF_S - 1)
    assert circuit.allows(UNUSABLE_BACKOFF_S)
    circuit.reject("no route", 1.0)
    assert circuit.allows(UNUSABLE_BACKOFF_S)
    now = UNUSABLE_BACKOFF_S
    for _ in range(10):
        circuit.picked(now)
        circuit.reject("no route", now)
        assert not circuit.allows(now + 2 * UNUSABLE_BACKOFF_S - 1)
        now += UNUSABLE_BACKOFF_MAX_S
    assert circuit.allows(now)


def test_only_the_destinations_own_faults_count() -> None:
    statuses = (0, -1, 200, 302, 400, 401, 404, 422, 429, 500, 503, 599)
    assert [one for one in statuses if is_failure(one)] == [0, -1, 429, 500, 503, 599]
    assert [one for one in statuses if is_success(one)] == [200, 302]


def test_it_says_when_it_is_tried_again() -> None:
    circuit = opened(now=10.0)
    assert circuit.retry_in(10.0) > 0.0
    assert circuit.retry_in(10.0 + BACKOFF_MAX_S) == 0.0
    assert Circuit().retry_in(0.0) == 0.0
