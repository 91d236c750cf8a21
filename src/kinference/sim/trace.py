"""Reads request traces in the format of Mooncake: a JSON object a line, with the names of the prompt's blocks."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from kinference.errors import ConfigError
from kinference.sim.cluster.job import BLOCK_TOKENS, Arrival
from kinference.sim.kv_cache import BlockHash

LINES_MAX = 10_000_000
TOKENS_MAX = 2_000_000


class _Line(msgspec.Struct):
    """`timestamp` in milliseconds, lengths in tokens, one id for each 512 tokens of the prompt."""

    timestamp: float
    input_length: int
    output_length: int
    hash_ids: list[int]


def read_trace(path: Path, requests: int | None = None) -> list[Arrival]:
    """The arrivals of a trace, in order of time; the first so many of them. Raises ConfigError for what is no trace."""
    try:
        with path.open("rb") as lines:
            arrivals = list(_arrivals(path, lines, requests or LINES_MAX))
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read: {error.strerror}") from None
    if not arrivals:
        raise ConfigError(str(path), "holds no request")
    return sorted(arrivals, key=lambda arrival: arrival.at)


def _arrivals(path: Path, lines: Iterator[bytes], requests: int) -> Iterator[Arrival]:
    decoder = msgspec.json.Decoder(_Line)
    for number, line in enumerate(lines, start=1):
        if number > requests:
            return
        try:
            read = decoder.decode(line)
        except msgspec.DecodeError as error:
            raise ConfigError(f"{path}:{number}", f"is no line of a trace: {error}") from None
        if not 0 < read.input_length <= TOKENS_MAX or not 0 <= read.output_length <= TOKENS_MAX:
            raise ConfigError(f"{path}:{number}", f"lengths go from 1 to {TOKENS_MAX} tokens")
        full = read.hash_ids[: read.input_length // BLOCK_TOKENS]
        if not all(0 <= name < 1 << 63 for name in full):
            raise ConfigError(f"{path}:{number}", "hash_ids go from 0 to 2^63")
        if len(set(full)) < len(full):
            raise ConfigError(f"{path}:{number}", "hash_ids name a prefix each, and no name comes twice in a prompt")
        yield Arrival(read.timestamp / 1e3, read.input_length, max(1, read.output_length), tuple(map(BlockHash, full)))
