"""Every workload by its name."""

from random import Random

import pytest

from kinference.sim.cluster.job import BLOCK_TOKENS
from kinference.sim.workloads.catalogue import WORKLOADS


@pytest.mark.parametrize("name", list(WORKLOADS))
def test_a_seed_gives_the_same_requests_in_order_with_a_name_for_each_full_block(name: str) -> None:
    arrivals = WORKLOADS[name](Random(3), 300, 3.0)
    assert arrivals == WORKLOADS[name](Random(3), 300, 3.0)
    assert arrivals != WORKLOADS[name](Random(4), 300, 3.0)
    assert 250 < len(arrivals) <= 300
    assert [arrival.at for arrival in arrivals] == sorted(arrival.at for arrival in arrivals)
    assert all(len(arrival.blocks) == arrival.prompt_tokens // BLOCK_TOKENS for arrival in arrivals)
    assert WORKLOADS[name].__doc__
