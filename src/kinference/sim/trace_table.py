"""A trace as a table of times and token counts, as Azure and BurstGPT publish them: comma-separated, with a heading.

Such a trace does not tell which prompts begin alike, so all are taken to be different: nothing is ever cached, and what
policies make of prefixes cannot be judged by it.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain

from kinference.errors import ConfigError
from kinference.ids import Seconds
from kinference.sim.cluster.job import Arrival
from kinference.sim.trace_json import TIME_MAX, TOKENS_MAX, fresh_names, unnamed_blocks

TIME = ("timestamp",)
PROMPT = ("contexttokens", "request tokens")
ANSWER = ("generatedtokens", "response tokens")
"""Headings of Azure's traces and of BurstGPT's, in small letters."""
_DIGITS_MAX = 9


@dataclass(frozen=True, slots=True)
class _Columns:
    """Which columns hold what; there may be others."""

    time: int
    prompt: int
    answer: int


def table_arrivals(name: str, head: tuple[int, bytes], rest: Iterator[tuple[int, bytes]]) -> Iterator[Arrival]:
    """The requests of a trace, row by row; one without a prompt or an answer has failed and is passed over.

    Raises ConfigError, naming the line, for what is no such table.
    """
    place, unnamed = _Place(name), fresh_names()
    rows = _rows(place, chain([head], rest))
    columns = _columns(place, next(rows))
    origin: Seconds | None = None
    for row in rows:
        if len(row) <= max(columns.time, columns.prompt, columns.answer):
            raise place.wrong("has fewer columns than the heading")
        prompt_tokens, answer_tokens = (_count(place, row[at]) for at in (columns.prompt, columns.answer))
        at = _time(place, row[columns.time].strip())
        origin = at if origin is None else origin
        if prompt_tokens and answer_tokens:
            yield Arrival(at - origin, prompt_tokens, answer_tokens, unnamed_blocks(prompt_tokens, unnamed))


def _rows(place: "_Place", lines: Iterator[tuple[int, bytes]]) -> Iterator[list[str]]:
    try:
        yield from csv.reader(place.texts(lines), strict=True, skipinitialspace=True)
    except csv.Error as error:
        raise place.wrong(f"is no row of a table: {error}") from None


class _Place:
    """Where in the file the reader is."""

    def __init__(self, name: str) -> None:
        self._name, self._number = name, 0

    def texts(self, lines: Iterator[tuple[int, bytes]]) -> Iterator[str]:
        for self._number, line in lines:
            try:
                yield line.decode("utf-8")
            except UnicodeDecodeError:
                raise self.wrong("is not UTF-8") from None

    def wrong(self, why: str) -> ConfigError:
        return ConfigError(f"{self._name}:{self._number}", why)


def _columns(place: _Place, heading: Sequence[str]) -> _Columns:
    names = [name.strip().lower() for name in heading]
    found = [next((names.index(name) for name in known if name in names), -1) for known in (TIME, PROMPT, ANSWER)]
    if min(found) < 0:
        raise place.wrong(
            "is no line of a trace: neither a JSON object nor a heading with TIMESTAMP, ContextTokens and "
            "GeneratedTokens (Azure) or Timestamp, Request tokens and Response tokens (BurstGPT)"
        )
    return _Columns(*found)


def _count(place: _Place, text: str) -> int:
    digits = text.strip().removesuffix(".0")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX and int(digits) <= TOKENS_MAX):
        raise place.wrong(f"lengths go from 0 to {TOKENS_MAX} tokens")
    return int(digits)


def _time(place: _Place, text: str) -> Seconds:
    """Seconds, or a date with a time: in UTC where it does not say."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            when = datetime.fromisoformat(text)
        except ValueError:
            raise place.wrong("has no time: seconds, or a date as in 2023-11-16 18:17:03.9799600") from None
        seconds = (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()
    if not abs(seconds) <= TIME_MAX:  # neither is what is no number
        raise place.wrong(f"has no time: times go up to {TIME_MAX:.0e} seconds")
    return seconds
