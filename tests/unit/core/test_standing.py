"""What stands at each candidate before a request comes, whatever it asks."""

import pytest

from kinference.core.ledger import SCRAPE_FADES_S, UNLIMITED, Load
from kinference.core.rates import Line, Rates, Typical
from kinference.core.standing import Standing, collect
from kinference.ids import ReservationId


def standing(*loads: Load, now: float = 0.0) -> Standing:
    return collect(list(loads), [Rates(Typical())] * len(loads), 0, now)


def test_a_line_is_what_is_typical_times_each_ones_factor_within_what_an_idle_engine_takes() -> None:
    typical = Typical(Line(300.0, 0.1), base_ms_max=500.0)
    collected = collect([Load(), Load()], [Rates(typical), Rates(typical, factor=2.0)], 3, 4.0)
    assert (collected.bases, collected.slopes) == ([300.0, 500.0], [0.1, 0.2])
    assert (collected.changes, collected.at) == (3, 4.0)


def test_what_others_sent_fades_with_the_age_of_the_scrape() -> None:
    told = Load(prefill_tokens=10, requests=1, foreign_tokens=100.0, foreign_requests=4.0)
    for now, share in ((0.0, 1.0), (SCRAPE_FADES_S, 0.5), (-SCRAPE_FADES_S, 0.5)):
        collected = standing(Load(), told, now=now)
        assert collected.ahead == [0, pytest.approx(10 + 100 * share)]
        assert collected.beside == [0, pytest.approx(1 + 4 * share)]


def test_what_an_engine_has_not_told_of_lately_is_ahead_of_nobody() -> None:
    for doubted, ahead, beside in ((3, 1_000.0, 1), (4, 0.0, 0)):
        collected = standing(Load(prefill_tokens=4_000, requests=4, doubted=doubted))
        assert (collected.ahead, collected.beside) == ([ahead], [beside])


def test_waiting_prompts_of_others_count_even_where_we_have_more_requests() -> None:
    assert standing(Load(foreign_tokens=50.0)).ahead == [50.0]


def test_the_least_room_is_that_of_the_fullest_cache() -> None:
    assert standing(Load(), Load()).least_room == UNLIMITED
    assert standing(Load(room=50.0), Load(room=100.0, resident=90), Load()).least_room == 10.0


def prompt(begun_at: float, heard_at: float | None = None) -> Load:
    """An engine that computes a prompt of 200 tokens, the only one there, which takes 20 ms."""
    prompts = {ReservationId(1): 200}
    return Load(prefill_tokens=200, prompts=prompts, first_prompt=200, begun_at=begun_at, heard_at=heard_at)


def test_what_must_be_computed_by_now_is_left_to_compute_no_more() -> None:
    begun = [prompt(begun_at) for begun_at in (0.0, -0.015, -1.0)]
    assert standing(*begun, Load()).left == pytest.approx([20.0, 5.0, 0.0, 0.0])


def test_an_engine_that_seems_to_hang_does_so_for_as_long_as_its_prompt_is_overdue() -> None:
    collected = standing(Load(), prompt(-3.0, heard_at=-4.0), prompt(-1.0, heard_at=-4.0), prompt(-3.0))
    assert collected.left == [0.0] * 4
    assert collected.hung == {1: pytest.approx(3_000.0 - 4 * 20.0 - 1_000.0)}
