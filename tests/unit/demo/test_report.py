import pytest

from kinference.demo.report import Answer, Scoreboard, Tally


def test_an_empty_tally_reads_as_zero() -> None:
    tally = Tally()
    assert (tally.hit_rate, tally.ttft_ms(0.99), tally.ttft_ms_mean) == (0.0, 0.0, 0.0)


def test_hit_rate_is_a_share_of_tokens_not_of_requests() -> None:
    tally = Tally()
    tally.add(Answer("a:1", 10, prompt_tokens=900, cached_tokens=0))
    tally.add(Answer("a:1", 10, prompt_tokens=100, cached_tokens=100))
    assert tally.hit_rate == pytest.approx(0.1)


def test_quantiles_are_values_that_were_measured() -> None:
    tally = Tally()
    for ttft in (30, 10, 20, 40):
        tally.add(Answer("a:1", ttft, 1, 0))
    assert (tally.ttft_ms(0.0), tally.ttft_ms(0.5), tally.ttft_ms(0.99), tally.ttft_ms(1.0)) == (10, 30, 40, 40)


def test_a_failed_answer_counts_as_done_and_for_no_endpoint() -> None:
    board = Scoreboard("expected_latency", 2)
    board.add(Answer("a:1", 5, 10, 5))
    board.add(Answer("", 0, 0, 0, error="APIConnectionError: refused"))
    assert board.done == 2
    assert board.total.requests == 1
    assert list(board.endpoints) == ["a:1"]
    assert board.errors == ["APIConnectionError: refused"]
