"""Reads chosen metrics out of a Prometheus text page, quickly: what is not asked for is not parsed."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

SAMPLES_MAX = 1024
"""Of one metric; an engine has one for each data-parallel rank and model."""
COUNT_MAX = 1 << 40
_DIGITS_MAX = 12

_REST_OF_LINE = re.compile(
    rb'(?:\{((?:[^"{}\n]++|"(?:[^"\\\n]++|\\.)*+")*+)\})?[ \t]++([^ \t\r\n]{1,32})(?=[ \t\r\n]|\Z)'
)
_AFTER_NAME = (b"{", b" ", b"\t")
_LABEL = re.compile(rb'([A-Za-z_][A-Za-z0-9_]*+)="((?:[^"\\\n]++|\\.)*+)"')


@dataclass(frozen=True, slots=True)
class Sample:
    """One finite value of a metric, and its labels as they stand on the page."""

    labels: bytes
    value: float

    def label(self, name: bytes) -> bytes | None:
        """A label's value, escapes left alone; None when absent."""
        for match in _LABEL.finditer(self.labels):
            if match[1] == name:
                return match[2]
        return None


class Exposition:
    """One page of metrics."""

    def __init__(self, page: bytes) -> None:
        self._page = b"\n" + page
        self.is_cut = False
        """There were more samples of a metric than are read."""

    def samples(self, name: bytes) -> Iterator[Sample]:
        """The samples of a metric in page order, at most SAMPLES_MAX; lines that make no sense are passed over.

        The format has the lines of one metric stand together, so the page is searched no further than their end.
        """
        page, wanted = self._page, b"\n" + name
        line = _first_line(page, wanted)
        for _ in range(SAMPLES_MAX):
            if line < 0 or not page.startswith(wanted, line):
                return
            rest = line + len(wanted)
            match = _REST_OF_LINE.match(page, rest)
            value = _number(match[2]) if match else None
            if match and value is not None:
                yield Sample(match[1] or b"", value)
            line = page.find(b"\n", rest)
        self.is_cut |= line >= 0 and page.startswith(wanted, line)

    def first(self, name: bytes) -> float | None:
        """The value of the first sample."""
        return next((sample.value for sample in self.samples(name)), None)

    def count(self, name: bytes, label: bytes = b"", value: bytes = b"") -> int | None:
        """All samples added up (those with this label, where one is named), never negative; None without any."""
        values = self._values(name, label, value)
        return _bounded(sum(values)) if values else None

    def first_count(self, name: bytes, label: bytes = b"", value: bytes = b"") -> int | None:
        """The first sample as a positive whole number: of what is the same for all ranks."""
        return next((number for number in map(_bounded, self._values(name, label, value)) if number), None)

    def ratio(self, name: bytes, label: bytes = b"", value: bytes = b"") -> float | None:
        """The mean of the samples, of which we cannot choose one, within 0 and 1."""
        values = self._values(name, label, value)
        return min(max(sum(values) / len(values), 0.0), 1.0) if values else None

    def label_counts(self, name: bytes, label: bytes) -> list[int]:
        """What a label says in each sample, where that is a positive whole number."""
        texts = [sample.label(label) or b"" for sample in self.samples(name)]
        return [int(text) for text in texts if text.isdigit() and len(text) <= _DIGITS_MAX and int(text)]

    def _values(self, name: bytes, label: bytes, value: bytes) -> list[float]:
        return [sample.value for sample in self.samples(name) if not label or sample.label(label) == value]


def _bounded(value: float) -> int:
    return int(min(max(value, 0.0), COUNT_MAX))


def _first_line(page: bytes, wanted: bytes) -> int:
    """Where the first line of a metric begins (at the line break before it): names may be prefixes of others."""
    line = page.find(wanted)
    for _ in range(SAMPLES_MAX):
        after = line + len(wanted)
        if line < 0 or page[after : after + 1] in _AFTER_NAME:
            return line
        line = page.find(wanted, after)
    return -1


def _number(text: bytes) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
