"""Every metric's name, kind, help and labels, in one table, and the registry behind them."""

import time
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import accumulate
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

LABEL_VALUES_MAX: Final = 256
"""Distinct values of one label; what comes after is counted under `other` (names sent by clients are unbounded)."""

LABEL_CHARS_MAX: Final = 128
OTHER: Final = "other"


class Kind(Enum):
    COUNTER = auto()
    GAUGE = auto()
    HISTOGRAM = auto()


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """One row of the table. Names follow Prometheus: base unit last, `_total` for counters.

    A row is a key of its own, by identity: hashing its fields would cost more than counting does.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


_SECONDS = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
)
_WAITS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
_OVERHEAD = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5)

GATEWAY_REQUESTS: Final = Metric(
    "kinference_gateway_requests_total", Kind.COUNTER, "HTTP requests answered.", ("api", "status", "outcome")
)
GATEWAY_OVERHEAD: Final = Metric(
    "kinference_gateway_overhead_seconds", Kind.HISTOGRAM, "Our own time in a request.", (), _OVERHEAD
)
GATEWAY_TTFT: Final = Metric(
    "kinference_gateway_time_to_first_token_seconds", Kind.HISTOGRAM, "From dispatch to first byte.", (), _SECONDS
)
GATEWAY_FAILURES: Final = Metric(
    "kinference_gateway_failed_attempts_total", Kind.COUNTER, "Attempts that a destination failed.", ("kind",)
)
GATEWAY_TOKENS: Final = Metric(
    "kinference_gateway_tokens_total",
    Kind.COUNTER,
    "Tokens of relayed answers, estimated where not reported.",
    ("kind",),
)
PICKS: Final = Metric("kinference_picker_picks_total", Kind.COUNTER, "Answered picks.", ("outcome",))
PICK_SECONDS: Final = Metric(
    "kinference_picker_pick_seconds", Kind.HISTOGRAM, "Synchronous part of a pick.", (), _OVERHEAD
)
BUFFERED_BYTES: Final = Metric("kinference_picker_buffered_bytes", Kind.GAUGE, "Bytes held in bodies, all states.")
WAITING: Final = Metric(
    "kinference_admission_waiting", Kind.GAUGE, "Picks that wait for an engine to have room.", ("class",)
)
ADMISSION_WAIT: Final = Metric(
    "kinference_admission_wait_seconds",
    Kind.HISTOGRAM,
    "How long picks that had to wait did so, whatever came of it.",
    ("class",),
    _WAITS,
)
SHED: Final = Metric(
    "kinference_admission_shed_total",
    Kind.COUNTER,
    "Picks refused because too many waited, or for too long.",
    ("class",),
)
LIVE_TICKETS: Final = Metric(
    "kinference_picker_live_tickets", Kind.GAUGE, "Picked requests not yet final, aborted or expired."
)
EXPIRED: Final = Metric("kinference_picker_expired_total", Kind.COUNTER, "What the timer reclaimed.", ("what",))
ITL_IGNORED: Final = Metric(
    "kinference_picker_itl_ignored_total", Kind.COUNTER, "Reports whose inter-token part was unusable."
)
INTER_TOKEN_GAPS: Final = Metric(
    "kinference_picker_inter_token_gaps_total",
    Kind.COUNTER,
    "Gaps between tokens that callers reported, by destination and upper edge in milliseconds (not cumulative).",
    ("destination", "up_to_ms"),
)
ABORTS: Final = Metric(
    "kinference_picker_aborts_total", Kind.COUNTER, "Live requests that callers aborted.", ("reason",)
)

CIRCUIT_OPEN: Final = Metric(
    "kinference_picker_circuit_open",
    Kind.GAUGE,
    "1 for a destination that is left alone for its failures, or tried again with a trickle.",
    ("destination",),
)
DRAINING: Final = Metric(
    "kinference_picker_draining",
    Kind.GAUGE,
    "1 for an endpoint that finishes what it has and takes nothing new.",
    ("destination",),
)
LIMIT_REFUSALS: Final = Metric(
    "kinference_tenant_limit_refusals_total",
    Kind.COUNTER,
    "Picks refused because a tenant was at one of its limits.",
    ("tenant", "limit"),
)
TENANT_SPENT: Final = Metric(
    "kinference_tenant_spent_usd_total",
    Kind.COUNTER,
    "US dollars spent by tenants that have limits, at known prices.",
    ("tenant",),
)
TENANT_UNPRICED: Final = Metric(
    "kinference_tenant_unpriced_requests_total",
    Kind.COUNTER,
    "Requests of tenants that have limits, served at a price that nobody knows.",
    ("tenant",),
)

EVENT_LOOP_LAG: Final = Metric(
    "kinference_event_loop_lag_seconds", Kind.HISTOGRAM, "How late the event loop ran what was due.", (), _OVERHEAD
)

KV_BATCHES: Final = Metric(
    "kinference_kv_batches_total", Kind.COUNTER, "Batches of KV-cache events.", ("endpoint", "outcome")
)
KV_EVENTS: Final = Metric(
    "kinference_kv_blocks_total", Kind.COUNTER, "Engine blocks that KV-cache events told of.", ("endpoint", "what")
)
KV_GAPS: Final = Metric(
    "kinference_kv_gaps_total", Kind.COUNTER, "Gaps in KV-cache events that could not be replayed.", ("endpoint",)
)
KV_LAG: Final = Metric(
    "kinference_kv_lag_seconds",
    Kind.HISTOGRAM,
    "Age of KV-cache events when they came, by the engine's clock.",
    (),
    _SECONDS,
)
KV_TOKENIZED: Final = Metric(
    "kinference_kv_prompts_total",
    Kind.COUNTER,
    "Prompts to be put into tokens for KV-cache events.",
    ("outcome",),
)

CONTROL_LEFT_OUT: Final = Metric(
    "kinference_control_routes_left_out",
    Kind.GAUGE,
    "1 for an inference route that cannot be resolved and is left out of the bundle.",
    ("route",),
)

CONNECTIONS: Final = Metric("kinference_connections", Kind.GAUGE, "Connections that are open.", ("port",))
CONNECTIONS_REFUSED: Final = Metric(
    "kinference_connections_refused_total",
    Kind.COUNTER,
    "Connections that were refused because the port, or their peer there, had as many as it may.",
    ("port",),
)
STREAMS_RESET: Final = Metric(
    "kinference_streams_reset_total",
    Kind.COUNTER,
    "HTTP/2 streams that we reset for what their peer did, by error code: refused_stream beyond streams_max, "
    "enhance_your_calm beyond header_list_max_bytes or untaken_max_bytes, others for breaking the protocol.",
    ("port", "code"),
)
PEER_FAULTS: Final = Metric(
    "kinference_peer_faults_total",
    Kind.COUNTER,
    "What peers did that is refused before anything handles it: HTTP/2 connections that were closed for it, by error "
    "code, enhance_your_calm for a flood; requests, by status, 431 for a head beyond header_list_max_bytes.",
    ("port", "code"),
)
CUT_SHORT: Final = Metric(
    "kinference_endpoints_cut_short",
    Kind.GAUGE,
    "Endpoints that tell more than is taken of them: `models` (1,000 of a list), `metrics` (1,024 samples of one, "
    "1,000 adapters).",
    ("what",),
)
MODELS_FORGOTTEN: Final = Metric(
    "kinference_picker_models_forgotten_total",
    Kind.COUNTER,
    "Models of which what was learned is forgotten, the oldest first, as there is room for 4,096.",
)
BODIES_REFUSED: Final = Metric(
    "kinference_bodies_refused_total",
    Kind.COUNTER,
    "Bodies of requests that were refused at a limit, by its key under `limits`.",
    ("limit",),
)
UNTAKEN_BYTES: Final = Metric(
    "kinference_untaken_bytes", Kind.GAUGE, "Bytes of requests on all ports that no handler has taken yet."
)
DISCOVERY_ENDPOINTS: Final = Metric(
    "kinference_discovery_endpoints", Kind.GAUGE, "Endpoints of a pool that its source has told of.", ("pool",)
)
DISCOVERY_AGE: Final = Metric(
    "kinference_discovery_age_seconds", Kind.GAUGE, "Since the source of a pool last told anything.", ("pool",)
)
DISCOVERY_FAILURES: Final = Metric(
    "kinference_discovery_failures_total",
    Kind.COUNTER,
    "Times that the source of a pool could not tell, or broke off.",
    ("pool",),
)

TABLE: Final[tuple[Metric, ...]] = (
    EVENT_LOOP_LAG,
    CONNECTIONS,
    CONNECTIONS_REFUSED,
    STREAMS_RESET,
    PEER_FAULTS,
    BODIES_REFUSED,
    UNTAKEN_BYTES,
    GATEWAY_REQUESTS,
    GATEWAY_OVERHEAD,
    GATEWAY_TTFT,
    GATEWAY_FAILURES,
    GATEWAY_TOKENS,
    CUT_SHORT,
    DISCOVERY_ENDPOINTS,
    DISCOVERY_AGE,
    DISCOVERY_FAILURES,
    MODELS_FORGOTTEN,
    PICKS,
    PICK_SECONDS,
    BUFFERED_BYTES,
    WAITING,
    ADMISSION_WAIT,
    SHED,
    LIVE_TICKETS,
    EXPIRED,
    ITL_IGNORED,
    INTER_TOKEN_GAPS,
    ABORTS,
    CIRCUIT_OPEN,
    DRAINING,
    LIMIT_REFUSALS,
    TENANT_SPENT,
    TENANT_UNPRICED,
    KV_BATCHES,
    KV_EVENTS,
    KV_GAPS,
    KV_LAG,
    KV_TOKENIZED,
    CONTROL_LEFT_OUT,
)


class _Series:
    """One metric's numbers under one set of label values. Plain numbers: only one thread changes them."""

    __slots__ = ("buckets", "created", "edges", "value")

    def __init__(self, edges: Sequence[float]) -> None:
        self.value = 0.0
        """The count, what a gauge shows, or the sum of the durations."""
        self.edges = edges
        self.buckets = [0] * (len(edges) + 1)
        self.created = time.time()


_Known: TypeAlias = dict[tuple[str, ...], _Series]
"""A metric's series by their label values, as they are shown: bounded in number and length."""


class Metrics(Collector):
    """The metrics of one process, made from the table. A metric outside the table cannot be recorded."""

    def __init__(self, table: Sequence[Metric] = TABLE) -> None:
        self._by_metric: dict[Metric, _Known] = {row: {} for row in table}
        self._counters = self._of(Kind.COUNTER)
        self._gauges = self._of(Kind.GAUGE)
        self._histograms = self._of(Kind.HISTOGRAM)
        self._seen: dict[tuple[Metric, int], set[str]] = {}
        for row in table:
            if not row.labels:
                self._series(row, ())
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def _of(self, kind: Kind) -> dict[Metric, _Known]:
        return {row: known for row, known in self._by_metric.items() if row.kind is kind}

    def count(self, metric: Metric, *labels: str, amount: float = 1) -> None:
        """Add to a counter."""
        (self._counters[metric].get(labels) or self._series(metric, labels)).value += amount

    def gauge(self, metric: Metric, value: float, *labels: str) -> None:
        """Set a gauge."""
        (self._gauges[metric].get(labels) or self._series(metric, labels)).value = value

    def mark(self, metric: Metric, values: Iterable[str]) -> None:
        """Have a gauge show 1 for each of these values of its label, 0 for others that it has shown, and as `other` how
        many there was no place for.
        """
        for series in self._gauges[metric].values():
            series.value = 0.0
        for value in values:
            self._series(metric, (value,)).value += 1

    def forget(self, label: str, values: Collection[str]) -> None:
        """Show no more what was recorded under these values of a label, and have room for others."""
        gone = {_shown(value) for value in values}
        for metric, known in self._by_metric.items():
            if not gone or label not in metric.labels:
                continue
            place = metric.labels.index(label)
            for labels in [each for each in known if each[place] in gone]:
                del known[labels]
            self._seen.setdefault((metric, place), set()).difference_update(gone)

    def time(self, metric: Metric, seconds: float, *labels: str) -> None:
        """Put one duration into a histogram."""
        series = self._histograms[metric].get(labels) or self._series(metric, labels)
        series.value += seconds
        series.buckets[bisect_left(series.edges, seconds)] += 1

    def _series(self, metric: Metric, labels: tuple[str, ...]) -> _Series:
        known = self._by_metric[metric]
        assert len(labels) == len(metric.labels), "a value for each label"
        bounded = tuple(self._bounded(metric, place, value) for place, value in enumerate(labels))
        series = known.get(bounded)
        if series is None:
            series = known[bounded] = _Series(metric.buckets)
        return series

    def _bounded(self, metric: Metric, place: int, value: str) -> str:
        seen = self._seen.setdefault((metric, place), set())
        if value in seen:
            return value
        value = _shown(value)
        if value not in seen and len(seen) >= LABEL_VALUES_MAX:
            return OTHER
        seen.add(value)
        return value

    def exposition(self) -> bytes:
        """The Prometheus text page. On a thread of its own it may be a moment behind, and holds up nothing:
        thousands of series take the library a tenth of a second.
        """
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Family]:
        """Every metric, as the library that writes the page wants it."""
        for row, known in self._by_metric.items():
            yield _FAMILIES[row.kind](row, known)


def _shown(value: str) -> str:
    """A value as it is shown. A lone surrogate would fail the whole page when it is encoded."""
    return value[:LABEL_CHARS_MAX].encode(errors="replace").decode()


def _counters(row: Metric, known: _Known) -> Family:
    family = CounterMetricFamily(row.name, row.help, labels=row.labels)
    for labels, series in list(known.items()):
        family.add_metric(labels, series.value, created=series.created)
    return family


def _gauges(row: Metric, known: _Known) -> Family:
    family = GaugeMetricFamily(row.name, row.help, labels=row.labels)
    for labels, series in list(known.items()):
        family.add_metric(labels, series.value)
    return family


def _histograms(row: Metric, known: _Known) -> Family:
    family = HistogramMetricFamily(row.name, row.help, labels=row.labels)
    edges = [*map(str, row.buckets), "+Inf"]
    for labels, series in list(known.items()):
        buckets = list(zip(edges, accumulate(map(float, series.buckets)), strict=True))
        family.add_metric(labels, buckets, series.value)
        family.add_sample(f"{row.name}_created", dict(zip(row.labels, labels, strict=True)), series.created)
    return family


_FAMILIES: Final = {Kind.COUNTER: _counters, Kind.GAUGE: _gauges, Kind.HISTOGRAM: _histograms}
