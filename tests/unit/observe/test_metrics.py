"""The metrics: only what the table has, and never more series than it allows."""

import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from kinference.observe.metrics import LABEL_CHARS_MAX, LABEL_VALUES_MAX, TABLE, Kind, Metric, Metrics

ASKED = Metric("asked_total", Kind.COUNTER, "Asked.", ("model", "status"))
HELD = Metric("held_bytes", Kind.GAUGE, "Held.")
TOOK = Metric("took_seconds", Kind.HISTOGRAM, "Took.", (), (0.1, 1.0))


def page(metrics: Metrics) -> list[str]:
    return metrics.exposition().decode().splitlines()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics((ASKED, HELD, TOOK))


def test_a_counter_adds_up(metrics: Metrics) -> None:
    metrics.count(ASKED, "m", "200")
    metrics.count(ASKED, "m", "200", amount=2)
    assert 'asked_total{model="m",status="200"} 3.0' in page(metrics)


def test_a_gauge_is_what_was_set_last(metrics: Metrics) -> None:
    metrics.gauge(HELD, 7)
    metrics.gauge(HELD, 3)
    assert "held_bytes 3.0" in page(metrics)


def test_marks_are_what_was_marked_last_and_those_beyond_the_bound_are_counted() -> None:
    down = Metric("down", Kind.GAUGE, "Down.", ("name",))
    metrics, names = Metrics((down,)), [str(number) for number in range(LABEL_VALUES_MAX + 5)]
    metrics.mark(down, names)
    assert {'down{name="0"} 1.0', 'down{name="other"} 5.0'} <= set(page(metrics))
    metrics.mark(down, [*names[1:2], *names[-2:]])
    metrics.mark(down, [*names[1:2], *names[-2:]])
    assert {'down{name="0"} 0.0', 'down{name="1"} 1.0', 'down{name="other"} 2.0'} <= set(page(metrics))
    assert len([line for line in page(metrics) if line.startswith("down{")]) == LABEL_VALUES_MAX + 1


def test_a_histogram_has_the_buckets_of_its_row(metrics: Metrics) -> None:
    metrics.time(TOOK, 0.5)
    lines = page(metrics)
    assert 'took_seconds_bucket{le="0.1"} 0.0' in lines
    assert 'took_seconds_bucket{le="1.0"} 1.0' in lines


def test_a_label_takes_a_bounded_number_of_values_each(metrics: Metrics) -> None:
    for place in range(LABEL_VALUES_MAX + 50):
        metrics.count(ASKED, f"model-{place}", "200")
    metrics.count(ASKED, "model-0", "500")
    series = [line for line in page(metrics) if line.startswith("asked_total")]
    assert len(series) == LABEL_VALUES_MAX + 2
    assert 'asked_total{model="other",status="200"} 50.0' in series
    assert 'asked_total{model="model-0",status="500"} 1.0' in series


def test_a_long_value_is_cut_and_counts_once(metrics: Metrics) -> None:
    for ending in ("a", "b"):
        metrics.count(ASKED, "x" * 10_000 + ending, "200")
    assert f'asked_total{{model="{"x" * LABEL_CHARS_MAX}",status="200"}} 2.0' in page(metrics)


@pytest.mark.parametrize("value", ["\ud800", 'quote"', "line\nbreak", "back\\slash", "\0"])
def test_no_value_can_break_the_page(metrics: Metrics, value: str) -> None:
    metrics.count(ASKED, value, "200")
    (line,) = [line for line in metrics.exposition().decode().split("\n") if line.startswith("asked_total")]
    assert line.endswith(" 1.0")


def test_a_metric_outside_the_table_cannot_be_recorded(metrics: Metrics) -> None:
    with pytest.raises(KeyError):
        metrics.count(Metric("stray_total", Kind.COUNTER, "Stray."))


@pytest.mark.parametrize(
    "record",
    [
        lambda metrics: metrics.count(HELD),
        lambda metrics: metrics.gauge(TOOK, 1.0),
        lambda metrics: metrics.time(ASKED, 1.0, "m", "200"),
    ],
)
def test_a_metric_is_recorded_only_as_its_kind_is(metrics: Metrics, record: Callable[[Metrics], None]) -> None:
    with pytest.raises(KeyError):
        record(metrics)


def test_two_processes_worth_of_metrics_do_not_share(metrics: Metrics) -> None:
    Metrics((HELD,)).gauge(HELD, 9)
    assert "held_bytes 0.0" in page(metrics)


def test_the_names_follow_the_conventions_of_prometheus() -> None:
    assert len({metric.name for metric in TABLE}) == len(TABLE)
    for metric in TABLE:
        assert re.fullmatch(r"kinference_[a-z_]+", metric.name), metric.name
        assert metric.name.endswith("_total") is (metric.kind is Kind.COUNTER), metric.name
        assert metric.help.endswith("."), metric.name
        assert bool(metric.buckets) is (metric.kind is Kind.HISTOGRAM), metric.name


def test_the_whole_table_can_be_shown() -> None:
    text = Metrics().exposition().decode()
    assert all(f"# HELP {metric.name}" in text for metric in TABLE)


def test_the_page_is_what_the_prometheus_library_itself_would_write() -> None:
    metrics, registry = Metrics((ASKED, HELD, TOOK)), CollectorRegistry()
    asked = Counter(ASKED.name, ASKED.help, ASKED.labels, registry=registry)
    held, took = (
        Gauge(HELD.name, HELD.help, registry=registry),
        Histogram(TOOK.name, TOOK.help, buckets=TOOK.buckets, registry=registry),
    )
    for status in ("200", "404", "200"):
        metrics.count(ASKED, "m", status)
        asked.labels("m", status).inc()
    metrics.gauge(HELD, 3)
    held.set(3)
    for seconds in (0.1, 0.5, 0.25, 7):
        metrics.time(TOOK, seconds)
        took.observe(seconds)
    theirs = generate_latest(registry).decode().splitlines()
    own = [line for line in page(metrics) if "process_" not in line]
    assert [_without_time(line) for line in own] == [_without_time(line) for line in theirs]


def _without_time(line: str) -> str:
    return line.rpartition(" ")[0] if "_created" in line and not line.startswith("#") else line


def test_the_page_is_written_on_a_thread_while_series_are_added(metrics: Metrics) -> None:
    done = threading.Event()

    def scrape() -> None:
        while not done.is_set():
            metrics.exposition()

    with ThreadPoolExecutor(1) as threads:
        scraping = threads.submit(scrape)
        for model in range(100):
            for status in range(150):
                metrics.count(ASKED, f"m{model}", str(status))
        done.set()
        scraping.result()


def test_what_is_forgotten_makes_room_for_others(metrics: Metrics) -> None:
    for number in range(LABEL_VALUES_MAX):
        metrics.count(ASKED, f"m{number}", "200")
    metrics.forget("model", {"m0", "unknown"})
    metrics.forget("model", ())
    metrics.count(ASKED, "late", "200")
    shown = page(metrics)
    assert not any('model="m0"' in line for line in shown)
    assert 'asked_total{model="late",status="200"} 1.0' in shown
    assert 'asked_total{model="m1",status="200"} 1.0' in shown
