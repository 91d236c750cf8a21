"""The pages are made here from the names that Triton's TensorRT-LLM backend documents: no page of a real one was at
hand.
"""

import pytest

from kinference.core.fleet import Observation
from kinference.fleet.metrics import triton

PAGE = b"""\
# HELP nv_trt_llm_request_metrics TRT LLM request metrics
# TYPE nv_trt_llm_request_metrics gauge
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="waiting",version="1"} 7
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="context",version="1"} 1
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="scheduled",version="1"} 4
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="max",version="1"} 512
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="active",version="1"} 11
# TYPE nv_trt_llm_kv_cache_block_metrics gauge
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="used",model="tensorrt_llm",version="1"} 500
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="tokens_per",model="tensorrt_llm",version="1"} 64
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max",model="tensorrt_llm",version="1"} 2000
nv_trt_llm_kv_cache_block_metrics{fraction="x",kv_cache_block_type="fraction",model="tensorrt_llm"} 0.25
"""


def test_a_page_is_read() -> None:
    assert triton.observe(PAGE, 7.0) == Observation(7.0, 7, 4, 0.25, 2000, 64)


@pytest.mark.parametrize("page", [b"", b'nv_trt_llm_request_metrics{request_type="waiting"} 1\n'])
def test_a_page_of_something_else_is_none(page: bytes) -> None:
    assert triton.observe(page, 0.0) is None
