"""Prompts as lengths and block names."""

from itertools import count
from random import Random

from kinference.sim.cluster.job import BLOCK_TOKENS
from kinference.sim.workloads.text import Popularity, Text, about


def test_what_goes_on_from_a_text_shares_its_full_blocks_and_no_others() -> None:
    names = count(1)
    head = Text().then(BLOCK_TOKENS + 10, names)
    one, other = head.then(BLOCK_TOKENS, names), head.then(BLOCK_TOKENS, names)
    assert (head.blocks, one.tokens, len(one.blocks)) == ((1,), 2 * BLOCK_TOKENS + 10, 2)
    assert one.blocks[0] == other.blocks[0]
    assert one.blocks[1] != other.blocks[1]


def test_lengths_are_around_the_typical_one_and_bounded() -> None:
    rng = Random(1)
    lengths = sorted(about(rng, 1_000, most=3_000) for _ in range(500))
    assert 800 < lengths[250] < 1_250
    assert lengths[0] >= 1
    assert lengths[-1] <= 3_000


def test_the_first_things_are_far_more_frequent() -> None:
    rng = Random(1)
    popularity = Popularity(10)
    drawn = [popularity.draw(rng) for _ in range(1_000)]
    assert set(drawn) == set(range(10))
    assert drawn.count(0) > 5 * drawn.count(9)
