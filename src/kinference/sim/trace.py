"""Reads request traces: JSON lines as Mooncake has them, or a table of token counts as Azure and BurstGPT have them."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from kinference.errors import ConfigError
from kinference.sim.cluster.job import Arrival
from kinference.sim.trace_json import json_arrivals
from kinference.sim.trace_table import table_arrivals

LINES_MAX = 10_000_000
LINE_BYTES_MAX = 1024 * 1024
_BOM = b"\xef\xbb\xbf"


def read_trace(path: Path, requests: int | None = None) -> list[Arrival]:
    """The arrivals of a trace, in order of time; the first so many of them. Raises ConfigError for what is no trace."""
    try:
        with path.open("rb") as file:
            arrivals = list(islice(_arrivals(path, file), requests))
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read: {error.strerror}") from None
    if not arrivals:
        raise ConfigError(str(path), "holds no request")
    return sorted(arrivals, key=lambda arrival: arrival.at)


def _arrivals(path: Path, file: BinaryIO) -> Iterator[Arrival]:
    lines = _lines(path, file)
    head = next(lines, None)
    if head is None:
        return iter(())
    read = json_arrivals if head[1].startswith(b"{") else table_arrivals
    return read(str(path), head, lines)


def _lines(path: Path, file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines that are not empty, each with its number; neither too long nor too many."""
    for number in range(1, LINES_MAX + 1):
        line = file.readline(LINE_BYTES_MAX + 1)
        if len(line) > LINE_BYTES_MAX:
            raise ConfigError(f"{path}:{number}", f"is longer than {LINE_BYTES_MAX} bytes")
        if not line:
            return
        text = (line.removeprefix(_BOM) if number == 1 else line).strip()
        if text:
            yield number, text
