"""Prompts as lengths and named blocks, so that what they share is known without a byte of text."""

from bisect import bisect
from collections.abc import Iterator
from itertools import accumulate, islice
from random import Random

import msgspec

from kinference.sim.cluster.job import BLOCK_TOKENS
from kinference.sim.kv_cache import BlockHash


class Text(msgspec.Struct, frozen=True, gc=False):
    """Some tokens, and the names of their full blocks."""

    tokens: int = 0
    blocks: tuple[BlockHash, ...] = ()

    def then(self, tokens: int, names: Iterator[int]) -> "Text":
        """This text and so many tokens more, which nobody else has: blocks that become full get new names."""
        total = self.tokens + tokens
        new = islice(names, total // BLOCK_TOKENS - len(self.blocks))
        return Text(total, self.blocks + tuple(map(BlockHash, new)))


def about(rng: Random, typical: float, spread: float = 0.6, most: int = 60_000) -> int:
    """A length as lengths are: lognormal around what is typical, at least 1."""
    return max(1, min(most, int(typical * rng.lognormvariate(0.0, spread))))


class Popularity:
    """Some things of which the first ones are asked for far more often (Zipf's law)."""

    def __init__(self, count: int) -> None:
        self._until = list(accumulate(1.0 / (place + 1) for place in range(count)))

    def draw(self, rng: Random) -> int:
        """One of them."""
        return bisect(self._until, rng.random() * self._until[-1])
