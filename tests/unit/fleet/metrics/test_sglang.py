"""The pages are made here from the names that SGLang documents: no page of a real one was at hand."""

import pytest

from kinference.core.fleet import Observation
from kinference.fleet.metrics import sglang

PAGE = b"""\
# HELP sglang:num_running_reqs The number of running requests.
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 4.0
# HELP sglang:token_usage The token usage.
# TYPE sglang:token_usage gauge
sglang:token_usage{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 0.28
# HELP sglang:num_queue_reqs The number of requests in the waiting queue.
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 7.0
# HELP sglang:page_size Page size of KV cache
# TYPE sglang:page_size gauge
sglang:page_size{model_name="m"} 64.0
# HELP sglang:num_pages Number of pages in KV cache
# TYPE sglang:num_pages gauge
sglang:num_pages{model_name="m"} 5000.0
"""
QUEUES = b"sglang:num_running_reqs 2.0\nsglang:num_queue_reqs 1.0\n"


def test_a_page_is_read() -> None:
    assert sglang.observe(PAGE, 7.0) == Observation(7.0, 7, 4, 0.28, 5000, 64)


def test_an_older_engine_tells_its_cache_in_labels() -> None:
    page = QUEUES + b'sglang:cache_config_info{num_pages="100",page_size="16"} 1.0\n'
    assert sglang.observe(page, 0.0) == Observation(0.0, 1, 2, None, 100, 16)


def test_what_the_engine_does_not_tell_is_none() -> None:
    assert sglang.observe(QUEUES, 0.0) == Observation(0.0, 1, 2)


@pytest.mark.parametrize("page", [b"", b"sglang:num_running_reqs 2.0\n", b"vllm:num_requests_running 2.0\n"])
def test_a_page_of_something_else_is_none(page: bytes) -> None:
    assert sglang.observe(page, 0.0) is None
