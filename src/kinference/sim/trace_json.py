"""A trace in the format of Mooncake: a JSON object a line, with the names of the prompt's blocks."""

from collections.abc import Iterator
from itertools import chain, count
from math import isfinite

import msgspec
from xxhash import xxh3_64_intdigest

from kinference.errors import ConfigError
from kinference.ids import Seconds
from kinference.sim.cluster.job import BLOCK_TOKENS, Arrival
from kinference.sim.kv_cache import BlockHash

TOKENS_MAX = 2_000_000
TIME_MAX: Seconds = 1e12
"""From 1970 or from the trace's beginning: more than any clock tells, and differences of it are still milliseconds."""
NAME_MAX = 1 << 63
"""Names from here on are for blocks that the trace does not name."""


class _Line(msgspec.Struct):
    """`timestamp` in milliseconds, lengths in tokens, one id for each 512 tokens of the prompt.

    Some tools write the first three by other names; further fields are passed over.
    """

    timestamp: float | None = None
    created_time: float | None = None
    input_length: float | None = None
    input_tokens: float | None = None
    output_length: float | None = None
    output_tokens: float | None = None
    hash_ids: list[int | str] | None = None


def json_arrivals(name: str, head: tuple[int, bytes], rest: Iterator[tuple[int, bytes]]) -> Iterator[Arrival]:
    """The requests of a trace, line by line. Raises ConfigError, naming the line, for what is none."""
    decoder, unnamed = msgspec.json.Decoder(_Line), fresh_names()
    for number, line in chain([head], rest):
        place = f"{name}:{number}"
        try:
            read = decoder.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ConfigError(place, f"is no line of a trace: {error}") from None
        at = _told(place, "timestamp", read.timestamp, read.created_time) / 1e3
        if abs(at) > TIME_MAX:
            raise ConfigError(place, f"times go up to {TIME_MAX:.0e} seconds")
        prompt_tokens = _count(place, _told(place, "input_length", read.input_length, read.input_tokens))
        answer_tokens = _count(place, _told(place, "output_length", read.output_length, read.output_tokens))
        if not prompt_tokens:
            raise ConfigError(place, f"lengths go from 1 to {TOKENS_MAX} tokens")
        if read.hash_ids is None:
            blocks = unnamed_blocks(prompt_tokens, unnamed)
        else:
            blocks = _named(place, read.hash_ids[: prompt_tokens // BLOCK_TOKENS])
        yield Arrival(at, prompt_tokens, max(1, answer_tokens), blocks)


def fresh_names() -> Iterator[int]:
    """Names that no trace has."""
    return count(NAME_MAX)


def unnamed_blocks(prompt_tokens: int, unnamed: Iterator[int]) -> tuple[BlockHash, ...]:
    """The blocks of a prompt of which nothing but its length is known: it shares them with no other."""
    return tuple(BlockHash(next(unnamed)) for _ in range(prompt_tokens // BLOCK_TOKENS))


def _told(place: str, name: str, *values: float | None) -> float:
    for value in values:
        if value is not None and isfinite(value):
            return value
    raise ConfigError(place, f"has no {name}")


def _count(place: str, tokens: float) -> int:
    if tokens != int(tokens) or not 0 <= tokens <= TOKENS_MAX:
        raise ConfigError(place, f"lengths go from 1 to {TOKENS_MAX} tokens")
    return int(tokens)


def _named(place: str, names: list[int | str]) -> tuple[BlockHash, ...]:
    blocks = [name if isinstance(name, int) else xxh3_64_intdigest(name.encode()) >> 1 for name in names]
    if not all(0 <= block < NAME_MAX for block in blocks):
        raise ConfigError(place, "hash_ids go from 0 to 2^63")
    if len(set(blocks)) < len(blocks):
        raise ConfigError(place, "hash_ids name a prefix each, and no name comes twice in a prompt")
    return tuple(map(BlockHash, blocks))
