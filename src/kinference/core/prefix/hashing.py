"""A prompt's canonical stream as chained block hashes: equal hash at depth n means equal first n blocks."""

from collections.abc import Sequence
from typing import NamedTuple

from xxhash import xxh3_64_intdigest

BLOCK_BYTES = 512
HASHED_BYTES_MAX = 2 * 1024 * 1024


class PrefixHashes(NamedTuple):
    """The hashes of the full blocks, and whether the stream went on past what may be hashed."""

    blocks: list[int]
    truncated: bool


def chain_seed(model: str, salt: str) -> int:
    """Where a chain starts: engines share no prefix between models, adapters or salts."""
    return xxh3_64_intdigest(f"{len(model)}:{model}{salt}".encode("utf-8", "surrogatepass"))


def hash_prompt(prompt: Sequence[bytes], seed: int, bytes_max: int = HASHED_BYTES_MAX) -> PrefixHashes:
    """Hash the elements as one stream, so that where one ends and the next begins moves no block.

    The last partial block is left out: it would differ as soon as the next turn is appended.
    """
    stream, truncated = _head(prompt, bytes_max)
    digest, size, chain = xxh3_64_intdigest, BLOCK_BYTES, seed
    starts = range(0, len(stream) - size + 1, size)
    return PrefixHashes([chain := digest(stream[start : start + size], chain) for start in starts], truncated)


def _head(prompt: Sequence[bytes], bytes_max: int) -> tuple[bytes, bool]:
    """The first `bytes_max` bytes of the stream, without ever joining more than that."""
    if len(prompt) == 1 and len(prompt[0]) <= bytes_max:
        return prompt[0], False
    size, pieces = 0, []
    for piece in prompt:
        room = bytes_max - size
        if len(piece) > room:
            pieces.append(piece[:room])
            return b"".join(pieces), True
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces), False
