"""Workloads that share heads."""

from collections import Counter
from random import Random

from kinference.sim.workloads.shared import (
    BURST_EVERY_S,
    BURST_S,
    DOCUMENTS,
    PROMPTS,
    bursts,
    documents,
    system_prompts,
)


def test_a_few_heads_serve_all_requests_and_tails_are_their_own() -> None:
    arrivals = system_prompts(Random(1), 500, 2.0)
    heads = Counter(arrival.blocks[0] for arrival in arrivals if arrival.blocks)
    assert len(heads) <= 2 * PROMPTS
    assert heads.most_common(1)[0][1] > 50
    assert 200 < arrivals[-1].at < 300


def test_documents_share_one_system_prompt_and_then_differ() -> None:
    arrivals = documents(Random(1), 500, 2.0)
    assert len({arrival.blocks[:2] for arrival in arrivals}) == 1
    assert 50 < len({arrival.blocks[:3] for arrival in arrivals}) <= DOCUMENTS


def test_half_of_all_come_in_bursts() -> None:
    arrivals = bursts(Random(1), 2_000, 10.0)
    inside = sum(arrival.at % BURST_EVERY_S < BURST_S for arrival in arrivals)
    assert 0.5 < inside / len(arrivals) < 0.6
    assert [arrival.at for arrival in arrivals] == sorted(arrival.at for arrival in arrivals)
