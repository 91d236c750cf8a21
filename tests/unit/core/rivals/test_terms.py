"""The columns of others."""

from collections.abc import Callable

import pytest

from kinference.core.cost import Case
from kinference.core.rivals.terms import (
    CacheUse,
    PeakLatency,
    PotentialBlocks,
    PrefixMiss,
    QueueShare,
    RecentlyCold,
    TokensAndCacheUse,
    WorkTimesBatch,
)


def test_peak_latency_counts_this_request_too(make_case: Callable[..., Case]) -> None:
    case = make_case([0, 0], beside=[0.0, 2.0])
    for destination in case.destinations:
        destination.latency.learn(50.0, 1.0)
    assert PeakLatency().column(case) == [50.0, 150.0]


def test_work_is_multiplied_by_the_batch_it_joins(make_case: Callable[..., Case]) -> None:
    assert WorkTimesBatch().column(make_case([0, 600], ahead=[0.0, 100.0], beside=[0.0, 3.0])) == [1_000.0, 2_000.0]


def test_potential_blocks_are_those_to_compute_and_those_that_decode(make_case: Callable[..., Case]) -> None:
    case = make_case([0, 800], ahead=[0.0, 160.0])
    case.loads[1].resident = 320
    assert PotentialBlocks(2.0).column(case) == [3_000 / 16, (2 * 360 + 320 + 1_000) / 16]


def test_tokens_in_flight_take_their_time_and_a_full_cache_counts_more_and_more(make_case: Callable[..., Case]) -> None:
    case = make_case([0, 0, 0], ahead=[0.0, 500.0, 0.0])
    case.loads[0].resident = 200
    for load, used in zip(case.loads, (0.0, 0.5, 1.0), strict=True):
        load.kv_usage_ratio = used
    quiet, half, full = TokensAndCacheUse().column(case)
    assert (quiet, half) == (20.0, 50.0 + 150.0)
    assert full == pytest.approx(150.0 * 99)


def test_the_queue_is_scaled_between_the_shortest_and_the_longest(make_case: Callable[..., Case]) -> None:
    case = make_case([0, 0, 0])
    assert QueueShare(2.0).column(case) == [0.0, 0.0, 0.0]
    for place, load in enumerate(case.loads):
        load.prefilling = 3 + place
    assert QueueShare(2.0).column(case) == [0.0, 1.0, 2.0]


def test_cache_use_is_as_scraped(make_case: Callable[..., Case]) -> None:
    case = make_case([0, 0])
    case.loads[1].kv_usage_ratio = 0.5
    assert CacheUse(2.0).column(case) == [0.0, 1.0]


def test_what_is_not_cached_counts_by_its_share(make_case: Callable[..., Case]) -> None:
    assert PrefixMiss(3.0).column(make_case([0, 500, 900])) == [3.0, 1.5, 0.3]


def test_cold_prompts_go_round_by_who_took_one_longest_ago(make_case: Callable[..., Case]) -> None:
    case = make_case([0, 0, 0])
    for destination, picked in zip(case.destinations, (7, 0, 3), strict=True):
        destination.cold_picked = picked
    assert RecentlyCold(2.0).column(case) == [2.0, 0.0, 1.0]
    assert RecentlyCold(2.0).column(make_case([0, 1, 0])) == [0.0, 0.0, 0.0]
