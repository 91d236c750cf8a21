"""The hashes that the core would make of prompts whose blocks have names: each block is hashed once, not each turn."""

from collections.abc import Sequence
from typing import Final

from kinference.core.prefix.hashing import HASHED_BYTES_MAX, chain_seed, hash_prompt
from kinference.sim.cluster.job import BLOCK_TOKENS
from kinference.sim.kv_cache import BlockHash

NAME_BYTES: Final = 8
BLOCKS_MAX: Final = HASHED_BYTES_MAX // BLOCK_TOKENS
KNOWN_MAX: Final = 1 << 18
"""Of so many blocks the hashes are remembered; then all begins anew."""


class Chains:
    """A token is a byte of its block's name, so that blocks are the index's. A name stands for all up to its block."""

    def __init__(self, model: str) -> None:
        self._seed = chain_seed(model, "")
        self._known: dict[object, int] = {}

    def __len__(self) -> int:
        """Of how many blocks they are remembered."""
        return len(self._known)

    def hashes(self, names: Sequence[BlockHash]) -> list[int]:
        """Those of a prompt's blocks, as far as prompts are hashed at all."""
        named: Sequence[object] = names if len(names) <= BLOCKS_MAX else names[:BLOCKS_MAX]
        if named and named[-1] not in self._known:
            self._hash(names[:BLOCKS_MAX])
        return list(map(self._known.__getitem__, named))

    def _hash(self, names: Sequence[BlockHash]) -> None:
        """Whole chains are remembered and forgotten: where one block is known, all before it are."""
        known = self._known
        if len(known) > KNOWN_MAX:
            known.clear()
        place = len(names) - 1
        while place and names[place - 1] not in known:
            place -= 1
        chain, missing = known[names[place - 1]] if place else self._seed, names[place:]
        stream = [name.to_bytes(NAME_BYTES, "big") * (BLOCK_TOKENS // NAME_BYTES) for name in missing]
        known.update(zip(missing, hash_prompt(stream, chain).blocks, strict=True))
