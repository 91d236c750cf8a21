from prometheus_client.parser import text_string_to_metric_families

from kinference.sim.events import SimRequest
from kinference.sim.metrics import EngineMetrics
from kinference.sim.model import EngineModel
from kinference.sim.timing import Timing


def page(metrics: EngineMetrics) -> dict[str, float]:
    """The samples that carry this model's and engine's labels alone, or none."""
    return {
        sample.name: sample.value
        for family in text_string_to_metric_families(metrics.exposition().decode())
        for sample in family.samples
        if sample.labels in ({"model_name": "m", "engine": "0"}, {})
    }


def test_the_page_shows_the_engine_as_it_is_now() -> None:
    model = EngineModel(Timing(sequences_max=1, kv_blocks=100))
    metrics = EngineMetrics(model, "m", started_at=1000.0)
    for number in (1, 2, 3):
        model.submit(SimRequest(number, 160, 5), now=0.0)
    values = page(metrics)
    assert values["vllm:num_requests_running"] == 1
    assert values["vllm:num_requests_waiting"] == 2
    assert values["vllm:kv_cache_usage_perc"] == 0.1
    assert values["vllm:prefix_cache_queries_total"] == 160
    assert values["vllm:prefix_cache_hits_total"] == 0
    assert values["process_start_time_seconds"] == 1000


def test_counters_grow_with_what_is_done() -> None:
    model = EngineModel(Timing())
    metrics = EngineMetrics(model, "m", started_at=0.0)
    model.submit(SimRequest(1, 50, 5), now=0.0)
    while (at := model.next_event_at()) is not None:
        model.advance(at)
    values = page(metrics)
    assert values["vllm:prompt_tokens_total"] == 50
    assert values["vllm:generation_tokens_total"] == 5
    assert values["vllm:num_preemptions_total"] == 0


def test_every_histogram_is_there_before_the_first_request_and_counts_after() -> None:
    metrics = EngineMetrics(EngineModel(Timing()), "m", started_at=0.0)
    assert page(metrics)["vllm:time_to_first_token_seconds_count"] == 0
    metrics.waited(0.1)
    metrics.first_token(0.2)
    metrics.next_token(0.01)
    metrics.lasted(1.0)
    values = page(metrics)
    assert values["vllm:time_to_first_token_seconds_sum"] == 0.2
    assert values["vllm:inter_token_latency_seconds_count"] == 1
    assert values["vllm:e2e_request_latency_seconds_count"] == 1
    assert values["vllm:request_queue_time_seconds_count"] == 1


def test_ends_are_counted_by_reason() -> None:
    metrics = EngineMetrics(EngineModel(Timing()), "m", started_at=0.0)
    metrics.finished("length")
    text = metrics.exposition().decode()
    assert 'vllm:request_success_total{engine="0",finished_reason="length",model_name="m"} 1.0' in text
    assert 'vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 0.0' in text


def test_the_cache_is_described_by_its_block_size_and_count() -> None:
    metrics = EngineMetrics(EngineModel(Timing(kv_blocks=77, block_tokens=32)), "m", started_at=0.0)
    families = text_string_to_metric_families(metrics.exposition().decode())
    labels = next(family for family in families if family.name == "vllm:cache_config_info").samples[0].labels
    assert (labels["block_size"], labels["num_gpu_blocks"]) == ("32", "77")
