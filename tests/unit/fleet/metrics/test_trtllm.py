"""The pages are made here from the names that TensorRT-LLM documents: no page of a real one was at hand."""

import pytest

from kinference.core.fleet import Observation
from kinference.fleet.metrics import trtllm

PAGE = b"""\
# TYPE trtllm_num_requests_running gauge
trtllm_num_requests_running{engine_type="trtllm",model_name="m"} 4.0
# TYPE trtllm_num_requests_waiting gauge
trtllm_num_requests_waiting{engine_type="trtllm",model_name="m"} 7.0
# TYPE trtllm_kv_cache_utilization gauge
trtllm_kv_cache_utilization{engine_type="trtllm",model_name="m"} 0.5
# TYPE trtllm_kv_cache_max_blocks gauge
trtllm_kv_cache_max_blocks{engine_type="trtllm",model_name="m"} 2000.0
# TYPE trtllm_kv_cache_tokens_per_block gauge
trtllm_kv_cache_tokens_per_block{engine_type="trtllm",model_name="m"} 32.0
"""


def test_a_page_is_read() -> None:
    assert trtllm.observe(PAGE, 7.0) == Observation(7.0, 7, 4, 0.5, 2000, 32)


@pytest.mark.parametrize("page", [b"", b"trtllm_kv_cache_utilization 0.5\n", b'[{"numActiveRequests":1}]'])
def test_a_page_that_does_not_tell_the_queue_is_none(page: bytes) -> None:
    assert trtllm.observe(page, 0.0) is None
