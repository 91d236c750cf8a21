"""Workloads and fleets by number."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from kinference.sim.cluster.demand import engine_seconds
from kinference.sim.cluster.job import BLOCK_TOKENS, Arrival
from kinference.sim.cluster.run import ClusterRun
from kinference.sim.cluster.summary import summarize
from kinference.sim.workloads.drawn import CONTEXT_MAX, draw

NUMBERS = range(1, 41)


def test_a_number_gives_the_same_requests_in_order_with_a_name_for_each_full_block() -> None:
    arrivals = draw(7).arrivals()
    assert arrivals == draw(7).arrivals()
    assert arrivals != draw(8).arrivals()
    assert all(earlier.at <= later.at for earlier, later in pairwise(arrivals))
    assert all(len(arrival.blocks) == arrival.prompt_tokens // BLOCK_TOKENS for arrival in arrivals)


def test_draws_are_wide_and_of_every_kind() -> None:
    draws = [draw(number) for number in NUMBERS]
    assert {one.fault for one in draws} == {"", "slow", "hung", "dead"}
    assert min(len(one.engines) for one in draws) <= 3
    assert max(len(one.engines) for one in draws) >= 18
    assert {len(set(one.engines)) for one in draws} == {1, 2, 3}
    assert any(one.burst_times > 1.0 for one in draws)
    assert any(stream.sessions_per_head for one in draws for stream in one.streams)
    assert len({str(one) for one in draws}) == len(draws)


def test_every_prompt_fits_into_every_engine() -> None:
    for number in NUMBERS:
        for engine in draw(number).engines:
            assert engine.capacity_tokens > 2 * CONTEXT_MAX


def test_they_ask_for_the_drawn_share_of_what_the_fleet_can_do() -> None:
    drawn = draw(5)
    arrivals = drawn.arrivals()
    speeds = [timing.prefill_tokens_per_s for timing in drawn.engines]
    able_s = arrivals[-1].at * sum(speeds) / max(speeds)
    assert engine_seconds(arrivals, drawn.engines) == pytest.approx(drawn.load * able_s)


def test_in_a_burst_as_many_times_as_many_come() -> None:
    drawn = replace(draw(5), burst_times=8.0, burst_every_s=10.0)
    even, uneven = replace(drawn, burst_times=1.0).arrivals(), drawn.arrivals()
    assert [arrival.blocks for arrival in even] == [arrival.blocks for arrival in uneven]
    assert busiest_fifth(even) < 0.25
    assert busiest_fifth(uneven) > 0.45


def busiest_fifth(arrivals: list[Arrival]) -> float:
    """The share of the requests that come in the busiest fifth of all seconds."""
    counts = Counter(int(arrival.at) for arrival in arrivals)
    seconds = int(arrivals[-1].at) + 1
    return sum(sorted(counts.values(), reverse=True)[: seconds // 5]) / len(arrivals)


@pytest.mark.parametrize("fault", ["slow", "hung", "dead"])
def test_what_happens_to_an_engine_keeps_nobody_for_ever(fault: str) -> None:
    drawn = replace(draw(5), fault=fault, engines=draw(5).engines[:1] * 2)
    arrivals = drawn.arrivals()[:400]
    played = ClusterRun(drawn.fleet("least_request", arrivals[-1].at)).play(arrivals)
    assert summarize(played, drawn.engines).failed <= (50 if fault == "dead" else 0)
