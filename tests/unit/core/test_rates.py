"""Learned rates: they converge, outliers do not move them, time never runs backwards."""

from random import Random

import pytest

from kinference.core.rates import (
    BACKEND_BASE_MS,
    LOCAL_BASE_MS_MAX,
    SAMPLE_MS_MAX,
    Line,
    PeakLatency,
    Rates,
    Typical,
    cold_rates,
)


def learned(base: float, slope: float, samples: int = 300, seed: int = 1) -> Rates:
    rng, rates = Random(seed), cold_rates(Typical())
    for _ in range(samples):
        tokens = rng.randrange(50, 8_000)
        rates.learn(tokens, (base + slope * tokens) * rng.uniform(0.95, 1.05))
    return rates


@pytest.mark.parametrize(("base", "slope"), [(5.0, 0.02), (50.0, 0.3), (0.0, 1.0), (500.0, 0.01)])
def test_rates_converge_to_what_happens(base: float, slope: float) -> None:
    rates = learned(base, slope)
    for tokens in (500, 2_000, 6_000):
        assert rates.at(tokens) == pytest.approx(base + slope * tokens, rel=0.1)


def test_rates_follow_a_change() -> None:
    rates = learned(20.0, 0.1)
    rng = Random(2)
    for _ in range(200):
        tokens = rng.randrange(50, 8_000)
        rates.learn(tokens, 20.0 + 0.3 * tokens)
    assert rates.at(4_000) == pytest.approx(20.0 + 0.3 * 4_000, rel=0.1)


def test_an_outlier_does_not_move_the_line() -> None:
    rates = learned(20.0, 0.1)
    before = rates.at(4_000)
    rates.learn(4_000, 600_000.0)
    assert rates.at(4_000) == pytest.approx(before, rel=0.05)


def test_one_in_twenty_outliers_does_not_poison_the_line() -> None:
    rng, rates = Random(3), cold_rates(Typical())
    for number in range(500):
        tokens = rng.randrange(50, 8_000)
        rates.learn(tokens, 60_000.0 if number % 20 == 7 else 20.0 + 0.1 * tokens)
    assert rates.at(4_000) == pytest.approx(420.0, rel=0.25)


def test_equal_prompts_alone_do_not_break_the_fit() -> None:
    rates = cold_rates(Typical())
    for _ in range(100):
        rates.learn(1_000, 50.0)
    assert rates.at(1_000) == pytest.approx(50.0, rel=0.1)
    assert rates.base_ms >= 0
    assert rates.ms_per_token > 0


def test_a_cold_destination_starts_from_what_is_typical_of_its_pool() -> None:
    typical = Typical()
    warm = cold_rates(typical)
    cold = cold_rates(typical)
    for _ in range(100):
        for tokens in (100, 1_000, 5_000):
            warm.learn(tokens, 200.0 + 0.5 * tokens)
    assert cold.at(2_000) == pytest.approx(1_200.0, rel=0.1)
    warm.learn(2_000, 1_300.0)
    assert cold.at(2_000) == typical.line.at(2_000)


def test_equal_engines_are_hardly_told_apart_by_the_chance_of_their_samples() -> None:
    typical, rng = Typical(), Random(5)
    engines = [cold_rates(typical) for _ in range(8)]
    for _ in range(40):
        for rates in engines:
            tokens = rng.randrange(50, 4_000)
            rates.learn(tokens, (20.0 + 0.06 * tokens) * rng.uniform(0.5, 2.0))
    times = [rates.at(100) for rates in engines]
    assert max(times) < 1.1 * min(times)


def test_who_answered_while_nothing_was_known_of_the_pool_learns_with_it_all_the_same() -> None:
    typical = Typical()
    early, others = cold_rates(typical), [cold_rates(typical) for _ in range(3)]
    for _ in range(4):
        early.learn(1_000, 400.0)  # it had waited, and nobody knew
    for number in range(200):
        tokens = 200 + 10 * number
        others[number % 3].learn(tokens, 10.0 + 0.06 * tokens)
    assert early.at(1_000) < 1.5 * others[0].at(1_000)


@pytest.mark.parametrize("late", [60_000.0, 3_600_000.0])
def test_the_very_first_answer_may_be_late_and_is_soon_forgotten(late: float) -> None:
    rates = cold_rates(Typical())
    rates.learn(16_000, late)
    for number in range(60):
        tokens = (200, 1_000, 4_000)[number % 3]
        rates.learn(tokens, 5.0 + 0.0625 * tokens)
    assert rates.at(1_000) == pytest.approx(67.5, rel=0.5)


def test_late_answers_to_long_prompts_do_not_move_the_base() -> None:
    rates = cold_rates(Typical())
    for number in range(600):
        tokens = (200, 1_000, 4_000, 16_000)[number % 4]
        rates.learn(tokens, (60_000.0 if number % 40 == 3 else 0.0) + 5.0 + 0.0625 * tokens)
    assert rates.at(0) < 12.0


def test_what_rests_on_guessed_lengths_is_forgotten_once_engines_have_counted() -> None:
    typical = Typical()
    rates, cold = cold_rates(typical), cold_rates(typical)
    for tokens in range(100, 2_000, 20):  # four times as long in truth
        rates.learn(tokens, 20.0 + 0.4 * tokens)
    for tokens in range(100, 8_000, 100):
        rates.learn(tokens, 20.0 + 0.1 * tokens, is_measured=True)
    assert rates.at(4_000) == pytest.approx(420.0, rel=0.1)
    assert cold.at(4_000) == pytest.approx(420.0, rel=0.1)


def test_an_idle_slow_endpoint_drifts_back_to_what_is_typical() -> None:
    typical = Typical(Line(10.0, 0.1))
    slow = Rates(typical)
    for _ in range(20):
        slow.learn(1_000, 2_000.0)
    typical.line = Line(10.0, 0.1)
    for _ in range(200):
        slow.relax(0.9)
    assert slow.at(1_000) == pytest.approx(110.0, rel=0.2)


def test_what_was_learned_fades_for_good_and_not_until_the_next_sample() -> None:
    typical = Typical(Line(10.0, 0.1))
    others, rates = cold_rates(typical), cold_rates(typical)
    for _ in range(100):
        others.learn(1_000, 110.0)
        rates.learn(1_000, 4_000.0)
    for _ in range(600):
        others.learn(1_000, 110.0)
    for _ in range(120):
        rates.relax(0.9)
    assert rates.at(1_000) == pytest.approx(110.0, rel=0.5)
    rates.learn(1_000, 110.0)
    assert rates.at(1_000) < 500.0


def test_waiting_that_nobody_told_of_is_no_trait_of_the_engine() -> None:
    rates = cold_rates(Typical())
    for tokens in range(1_000, 3_000, 20):
        rates.learn(tokens, 6_000.0)
    assert rates.base_ms <= LOCAL_BASE_MS_MAX


def test_an_empty_prompt_takes_as_long_as_one_that_came_while_nothing_else_was_there() -> None:
    rates = cold_rates(Typical())
    for _ in range(200):
        rates.typical.bound_base(1_000.0, is_lone=True)
        rates.learn(100, 1_000.0)
    assert rates.base_ms == pytest.approx(1_000.0, rel=0.05)


def test_no_empty_prompt_takes_longer_than_the_last_quick_one() -> None:
    rates = cold_rates(Typical())
    for is_lone in (True, *[False] * 200):
        rates.typical.bound_base(6_000.0, is_lone=is_lone)
        rates.learn(1_000, 6_000.0)
    assert rates.base_ms > LOCAL_BASE_MS_MAX
    rates.typical.bound_base(700.0, is_lone=False)
    assert rates.base_ms <= 700.0
    rates.typical.bound_base(20.0, is_lone=False)
    assert rates.base_ms <= LOCAL_BASE_MS_MAX
    rates.typical.bound_base(6_000.0, is_lone=False)
    assert rates.typical.base_ms_max == LOCAL_BASE_MS_MAX


def test_a_backends_empty_prompts_may_take_any_time() -> None:
    typical = Typical(Line(BACKEND_BASE_MS, 0.0), SAMPLE_MS_MAX, SAMPLE_MS_MAX)
    typical.bound_base(20.0, is_lone=True)
    assert typical.base_ms_max == SAMPLE_MS_MAX


def test_relaxing_a_cold_destination_changes_nothing() -> None:
    typical = Typical(Line(10.0, 0.1))
    rates = cold_rates(typical)
    rates.relax(0.5)
    assert (typical.line.base_ms, typical.line.ms_per_token) == (10.0, 0.1)


def test_hold_time_follows_what_happens_and_is_never_negative() -> None:
    rates = cold_rates(Typical())
    for _ in range(200):
        rates.learn_hold(-5.0)
    assert 0.0 <= rates.hold_ms < 1.0


def test_a_backend_starts_behind_any_engine_that_is_not_overloaded() -> None:
    assert Line().at(8_000) < BACKEND_BASE_MS


def test_a_peak_is_believed_at_once_and_forgotten_slowly() -> None:
    latency = PeakLatency()
    latency.learn(100.0, 1.0)
    latency.learn(1_000.0, 2.0)
    assert latency.ms == 1_000.0
    latency.learn(100.0, 12.0)
    assert 400.0 < latency.ms < 450.0


def test_the_time_to_load_an_adapter_is_learned_and_no_outlier_makes_it_jump() -> None:
    typical = Typical()
    for _ in range(50):
        typical.learn_adapter(900.0)
    assert typical.adapter_ms == pytest.approx(900.0, rel=0.02)
    typical.learn_adapter(1e9)
    assert typical.adapter_ms < 1_500.0
    for _ in range(100):
        typical.learn_adapter(-5.0)
    assert 0.0 <= typical.adapter_ms < 1.0
