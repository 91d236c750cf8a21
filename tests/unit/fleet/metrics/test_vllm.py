from pathlib import Path

import pytest

from kinference.core.fleet import Observation
from kinference.fleet.metrics import vllm
from kinference.fleet.metrics.vllm import ADAPTERS_MAX

SAMPLES = Path(__file__).parent / "samples"
QUEUES = b"vllm:num_requests_waiting 1.0\nvllm:num_requests_running 2.0\n"


def test_the_page_of_a_real_engine_is_read() -> None:
    observation = vllm.observe((SAMPLES / "vllm.txt").read_bytes(), 7.0)
    assert observation == Observation(
        seen_at=7.0,
        waiting=0,
        running=0,
        kv_usage_ratio=0.0,
        kv_blocks=65536,
        block_tokens=32,
        started_at=1795978633.6,
    )


def test_the_ranks_of_a_data_parallel_engine_are_added_up() -> None:
    page = b"""
vllm:num_requests_waiting{engine="0"} 1.0
vllm:num_requests_waiting{engine="1"} 2.0
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 99.0
vllm:num_requests_running{engine="0"} 3.0
vllm:num_requests_running{engine="1"} 4.0
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:kv_cache_usage_perc{engine="1"} 0.75
vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="1000"} 1.0
vllm:cache_config_info{block_size="16",engine="1",num_gpu_blocks="500"} 1.0
"""
    assert vllm.observe(page, 0.0) == Observation(0.0, 3, 7, 0.5, 1500, 16)


def test_the_older_name_of_the_cache_use_is_understood() -> None:
    observation = vllm.observe(QUEUES + b"vllm:gpu_cache_usage_perc 0.5\n", 0.0)
    assert observation is not None
    assert observation.kv_usage_ratio == 0.5


def test_what_the_engine_does_not_tell_is_none() -> None:
    assert vllm.observe(QUEUES, 0.0) == Observation(0.0, 1, 2)


@pytest.mark.parametrize("count", ["None", "", "-5", "0", "9" * 30, "1e3", "\\u0663"])
def test_counts_that_make_no_sense_are_none(count: str) -> None:
    page = QUEUES + f'vllm:cache_config_info{{block_size="{count}",num_gpu_blocks="{count}"}} 1.0\n'.encode()
    assert vllm.observe(page, 0.0) == Observation(0.0, 1, 2)


def test_values_out_of_range_are_held_within_it() -> None:
    page = b"vllm:num_requests_waiting -3\nvllm:num_requests_running 1e300\nvllm:kv_cache_usage_perc 17\n"
    assert vllm.observe(page, 0.0) == Observation(0.0, 0, 1 << 40, 1.0)


@pytest.mark.parametrize("page", [b"", b"hello", b"vllm:num_requests_waiting 1\n", b"vllm:num_requests_running 1\n"])
def test_a_page_of_something_else_is_none(page: bytes) -> None:
    assert vllm.observe(page, 0.0) is None


def test_the_newest_word_on_adapters_counts() -> None:
    page = QUEUES + (
        b'vllm:lora_requests_info{max_lora="4",running_lora_adapters="old",waiting_lora_adapters=""} 1.7e+09\n'
        b'vllm:lora_requests_info{max_lora="4",running_lora_adapters="ada,bob",waiting_lora_adapters="eve"} 1.8e+09\n'
    )
    observation = vllm.observe(page, 0.0)
    assert observation is not None
    assert (observation.adapters, observation.adapters_max) == (("ada", "bob"), 4)


@pytest.mark.parametrize("most", ["0", "-1", "many", "99999999"])
def test_a_number_of_adapters_that_makes_no_sense_is_none(most: str) -> None:
    page = QUEUES + f'vllm:lora_requests_info{{max_lora="{most}",running_lora_adapters=""}} 1.0\n'.encode()
    observation = vllm.observe(page, 0.0)
    assert observation is not None
    assert (observation.adapters, observation.adapters_max) == ((), None)


def test_more_adapters_than_are_taken_are_told_of() -> None:
    for count in (ADAPTERS_MAX, ADAPTERS_MAX + 1):
        names = ",".join(f"a{number}" for number in range(count))
        page = QUEUES + f'vllm:lora_requests_info{{max_lora="4",running_lora_adapters="{names}"}} 1.0\n'.encode()
        observation = vllm.observe(page, 0.0)
        assert observation is not None
        assert (len(observation.adapters), observation.is_cut) == (ADAPTERS_MAX, count > ADAPTERS_MAX)
