"""The engine's metrics page, with the names, labels and buckets of vLLM."""

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kinference.ids import Seconds
from kinference.sim.model import EngineModel

_LABELS = ("model_name", "engine")
_ENGINE = "0"
_FINISHED_REASONS = ("stop", "length", "abort", "error")
_TTFT_BUCKETS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
_ITL_BUCKETS = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0),
)
_REQUEST_BUCKETS = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    *(120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
)

_GAUGES: tuple[tuple[str, str, Callable[[EngineModel], float]], ...] = (
    ("vllm:num_requests_running", "Requests in the batch.", lambda model: model.running),
    ("vllm:num_requests_waiting", "Requests in the queue.", lambda model: model.waiting),
    ("vllm:kv_cache_usage_perc", "Share of the KV cache in use, 1 is all of it.", lambda model: model.kv_usage),
)
_COUNTERS: tuple[tuple[str, str, Callable[[EngineModel], float]], ...] = (
    ("vllm:prefix_cache_queries", "Prompt tokens looked up.", lambda model: model.totals.prefix_queries),
    ("vllm:prefix_cache_hits", "Prompt tokens found in the cache.", lambda model: model.totals.prefix_hits),
    ("vllm:num_preemptions", "Preemptions.", lambda model: model.totals.preemptions),
    ("vllm:prompt_tokens", "Prompt tokens processed.", lambda model: model.totals.prompt_tokens),
    ("vllm:prompt_tokens_cached", "Cached prompt tokens.", lambda model: model.totals.prefix_hits),
    ("vllm:generation_tokens", "Tokens generated.", lambda model: model.totals.generated_tokens),
)


class EngineMetrics:
    """What one engine tells Prometheus. Durations are those that a client sees, the speed-up included."""

    def __init__(self, model: EngineModel, model_name: str, started_at: Seconds) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_StateCollector(model, model_name, started_at))
        self._ttft = self._histogram("vllm:time_to_first_token_seconds", "Time to first token.", _TTFT_BUCKETS)
        self._itl = self._histogram("vllm:inter_token_latency_seconds", "Between tokens.", _ITL_BUCKETS)
        self._lasted = self._histogram("vllm:e2e_request_latency_seconds", "Whole requests.", _REQUEST_BUCKETS)
        self._waited = self._histogram("vllm:request_queue_time_seconds", "Time in the queue.", _REQUEST_BUCKETS)
        for histogram in (self._ttft, self._itl, self._lasted, self._waited):
            histogram.labels(model_name, _ENGINE)  # a series is there from the start, at 0
        self._success = Counter(
            "vllm:request_success",
            "Requests that ended, by reason.",
            (*_LABELS, "finished_reason"),
            registry=self._registry,
        )
        for reason in _FINISHED_REASONS:
            self._success.labels(model_name, _ENGINE, reason)
        self._model_name = model_name

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, text, _LABELS, registry=self._registry, buckets=buckets)

    def waited(self, seconds: Seconds) -> None:
        self._waited.labels(self._model_name, _ENGINE).observe(seconds)

    def first_token(self, seconds: Seconds) -> None:
        self._ttft.labels(self._model_name, _ENGINE).observe(seconds)

    def next_token(self, seconds: Seconds) -> None:
        self._itl.labels(self._model_name, _ENGINE).observe(seconds)

    def lasted(self, seconds: Seconds) -> None:
        self._lasted.labels(self._model_name, _ENGINE).observe(seconds)

    def finished(self, reason: str) -> None:
        self._success.labels(self._model_name, _ENGINE, reason).inc()

    def exposition(self) -> bytes:
        """The Prometheus text page."""
        return generate_latest(self._registry)


class _StateCollector(Collector):
    """Reads the model's state at the moment of a scrape."""

    def __init__(self, model: EngineModel, model_name: str, started_at: Seconds) -> None:
        self._model, self._labels, self._started_at = model, (model_name, _ENGINE), started_at

    def collect(self) -> Iterator[Metric]:
        for name, text, read in _GAUGES:
            gauge = GaugeMetricFamily(name, text, labels=_LABELS)
            gauge.add_metric(self._labels, read(self._model))
            yield gauge
        for name, text, read in _COUNTERS:
            counter = CounterMetricFamily(name, text, labels=_LABELS)
            counter.add_metric(self._labels, read(self._model), created=self._started_at)
            yield counter
        yield self._cache_config()
        yield GaugeMetricFamily("process_start_time_seconds", "When the engine started.", value=self._started_at)

    def _cache_config(self) -> Metric:
        timing = self._model.timing
        values = {
            "block_size": str(timing.block_tokens),
            "cache_dtype": "auto",
            "enable_prefix_caching": "True",
            "engine": _ENGINE,
            "num_gpu_blocks": str(timing.kv_blocks),
            "kv_cache_size_tokens": str(timing.capacity_tokens),
        }
        config = GaugeMetricFamily("vllm:cache_config_info", "The cache's configuration.", labels=tuple(values))
        config.add_metric(tuple(values.values()), 1.0)
        return config
