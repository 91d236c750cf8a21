"""Hashes of prompts whose blocks have names."""

from collections.abc import Sequence

from kinference.core.prefix.hashing import chain_seed, hash_prompt
from kinference.sim.cluster.chains import BLOCKS_MAX, KNOWN_MAX, NAME_BYTES, Chains
from kinference.sim.cluster.job import BLOCK_TOKENS
from kinference.sim.kv_cache import BlockHash


def names(*numbers: int) -> list[BlockHash]:
    return [BlockHash(number) for number in numbers]


def hashed(blocks: Sequence[int]) -> list[int]:
    stream = [number.to_bytes(NAME_BYTES, "big") * (BLOCK_TOKENS // NAME_BYTES) for number in blocks]
    return hash_prompt(stream, chain_seed("m", "")).blocks


def test_they_are_those_of_the_whole_prompt_whatever_is_known_of_it() -> None:
    chains = Chains("m")
    for blocks in ([1, 2, 3], [1, 2, 3], [1, 2, 3, 4, 5], [1, 2], [1, 2, 9], [7], []):
        assert chains.hashes(names(*blocks)) == hashed(blocks)


def test_they_are_the_same_once_others_have_been_forgotten() -> None:
    chains = Chains("m")
    first = names(*range(1, 6))
    chains.hashes(first)
    for start in range(10, KNOWN_MAX + 2 * BLOCKS_MAX, BLOCKS_MAX):
        chains.hashes(names(*range(start, start + BLOCKS_MAX)))
    assert len(chains) < KNOWN_MAX
    assert chains.hashes([*first, BlockHash(6)]) == hashed(range(1, 7))


def test_beyond_what_is_hashed_of_any_prompt_there_are_none() -> None:
    assert len(Chains("m").hashes(names(*range(BLOCKS_MAX + 5)))) == BLOCKS_MAX
