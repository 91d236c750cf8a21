import pytest

from kinference.core.prices import Price, PricedModel, price_of

DEARER = Price(6.0, 20.0, 0.6)
PRICE = Price(3.0, 15.0, 0.3, ((200_000, DEARER),))


def test_cached_tokens_are_counted_at_their_own_price() -> None:
    assert PRICE.of(1_000_000 // 10, 40_000, 10_000) == pytest.approx(0.06 * 3 + 0.04 * 0.3 + 0.01 * 15)


def test_cached_tokens_without_a_price_of_their_own_cost_what_others_do() -> None:
    assert Price(2.0, 0.0).of(1_000_000, 1_000_000, 0) == 2.0
    assert Price(2.0, 0.0, 0.0).of(1_000_000, 1_000_000, 0) == 0.0


def test_more_cached_than_prompt_tokens_are_no_credit() -> None:
    assert PRICE.of(1_000, 5_000, 0) == PRICE.of(1_000, 1_000, 0)
    assert PRICE.of(1_000, -5_000, 0) == PRICE.of(1_000, 0, 0)


def test_beyond_a_length_the_whole_request_is_dearer() -> None:
    assert PRICE.of(200_000, 0, 0) == pytest.approx(0.6)
    assert PRICE.of(200_001, 0, 1_000) == pytest.approx(0.2 * 6 + 0.001 * 20, rel=1e-4)


def test_the_first_line_that_matches_counts_and_without_one_nobody_knows() -> None:
    prices = (PricedModel("gpt-mini", DEARER), PricedModel("gpt-*", PRICE))
    assert price_of("gpt-mini", prices) is DEARER
    assert price_of("gpt-big", prices) is PRICE
    assert price_of("llama", prices) is None
