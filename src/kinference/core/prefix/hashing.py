"""A prompt's canonical stream as chained block hashes: equal hash at depth n means equal first n blocks."""

from collections.abc import Iterable
from struct import Struct
from typing import Final

from xxhash import xxh3_64_intdigest

from kinference.structs import FrozenLeaf

BLOCK_BYTES: Final = 512
HASHED_BYTES_MAX: Final = 2 * 1024 * 1024
FEW_BYTES: Final = 8 * BLOCK_BYTES
"""So few are sliced for less than what begins a walk over them."""
_BLOCKS: Final = Struct(f"{BLOCK_BYTES}s")
_DIGEST: Final = xxh3_64_intdigest


class PrefixHashes(FrozenLeaf, frozen=True):
    """The hashes of the full blocks, and whether the stream went on past what may be hashed."""

    blocks: list[int]
    truncated: bool


def chain_seed(model: str, salt: str) -> int:
    """Where a chain starts: engines share no prefix between models, adapters or salts."""
    return xxh3_64_intdigest(f"{len(model)}:{model}{salt}".encode("utf-8", "surrogatepass"))


def hash_prompt(prompt: Iterable[bytes], seed: int, bytes_max: int = HASHED_BYTES_MAX) -> PrefixHashes:
    """Hash the elements as one stream, so that where one ends and the next begins moves no block.

    The last partial block is left out: it would differ as soon as the next turn is appended.
    """
    blocks, truncated = hash_blocks(tuple(prompt), seed, bytes_max)
    return PrefixHashes(blocks, truncated)


def hash_blocks(prompt: tuple[bytes, ...], seed: int, bytes_max: int = HASHED_BYTES_MAX) -> tuple[list[int], bool]:
    """The same as two values."""
    size = 0
    for piece in prompt:
        size += len(piece)
    truncated = size > bytes_max
    stream = _head(prompt, bytes_max) if truncated else prompt[0] if len(prompt) == 1 else b"".join(prompt)
    full = len(stream) - len(stream) % BLOCK_BYTES
    digest, chain = _DIGEST, seed
    blocks: list[int] = []
    if full <= FEW_BYTES:
        for start in range(0, full, BLOCK_BYTES):
            chain = digest(stream[start : start + BLOCK_BYTES], chain)
            blocks.append(chain)
        return blocks, truncated
    for (block,) in _BLOCKS.iter_unpack(memoryview(stream)[:full]):  # to slice them costs twice as much as to hash them
        chain = digest(block, chain)
        blocks.append(chain)
    return blocks, truncated


def _head(prompt: tuple[bytes, ...], bytes_max: int) -> bytes:
    """The first `bytes_max` bytes of the stream, without ever joining more than that."""
    room, pieces = bytes_max, []
    for piece in prompt:
        pieces.append(piece[:room])
        room -= len(pieces[-1])
    return b"".join(pieces)
