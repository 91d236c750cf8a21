"""The page, held against what the Prometheus library makes of the same numbers."""

from collections.abc import Callable, Collection, Iterator, Sequence
from math import inf, nan

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from kinference.observe.exposition import Series, counters, gauges, histograms

VALUES = (0.0, 1.0, -3.0, 0.1, 1e-9, 123456.0, 1234567.0, 1234567.25, 1e15, 1e16, 2.5e22, inf, -inf, nan)
TEXT = 'Help with a \\ and\na line; "quoted".'
AWKWARD = 'a\\b"c\nd{e}=é,'


def untimed(page: str) -> list[str]:
    return [line.rpartition(" ")[0] if "_created{" in line else line for line in page.splitlines()]


def made(value: float, labels: Sequence[str], edges: Sequence[float] = ()) -> Series:
    series = Series(("pool", "destination"), labels, edges)
    series.value = value
    return series


def test_gauges_are_written_as_the_library_does() -> None:
    registry = CollectorRegistry()
    theirs = Gauge("held_bytes", TEXT, ("pool", "destination"), registry=registry)
    for place, value in enumerate(VALUES):
        theirs.labels(AWKWARD, str(place)).set(value)
    ours = [made(value, (AWKWARD, str(place))) for place, value in enumerate(VALUES)]
    assert "".join(gauges("held_bytes", TEXT, ours)) == generate_latest(registry).decode()


def test_counters_are_written_as_the_library_does() -> None:
    registry = CollectorRegistry()
    theirs = Counter("asked_total", TEXT, ("pool", "destination"), registry=registry)
    theirs.labels("p", AWKWARD).inc(1234567)
    ours = [made(1234567.0, ("p", AWKWARD))]
    assert untimed("".join(counters("asked_total", TEXT, ours))) == untimed(generate_latest(registry).decode())


def test_histograms_are_written_as_the_library_does() -> None:
    registry, edges = CollectorRegistry(), (0.0001, 0.5, 30.0)
    theirs = Histogram("took_seconds", TEXT, ("pool", "destination"), registry=registry, buckets=edges)
    ours = made(0.0, ("p", AWKWARD), edges)
    for seconds, bucket in ((0.0001, 0), (0.25, 1), (0.5, 1), (100.0, 3)):
        theirs.labels("p", AWKWARD).observe(seconds)
        ours.value += seconds
        ours.buckets[bucket] += 1
    page = "".join(histograms("took_seconds", TEXT, [ours]))
    assert untimed(page) == untimed(generate_latest(registry).decode())


@pytest.mark.parametrize("write", [counters, gauges, histograms])
def test_what_has_no_series_yet_has_its_help_alone(
    write: Callable[[str, str, Collection[Series]], Iterator[str]],
) -> None:
    page = "".join(write("some_total", "Some.", []))
    assert page.startswith("# HELP some_total Some.\n# TYPE some_total ")
    assert page.count("\n") == 2
