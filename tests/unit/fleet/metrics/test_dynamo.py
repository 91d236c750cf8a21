"""The pages are made here from the names that Dynamo documents: no page of a real one was at hand."""

import pytest

from kinference.core.fleet import Observation
from kinference.fleet.metrics import dynamo

PAGE = b"""\
# HELP dynamo_frontend_inflight_requests Number of inflight requests
# TYPE dynamo_frontend_inflight_requests gauge
dynamo_frontend_inflight_requests{model="m"} 12
dynamo_frontend_inflight_requests{model="n"} 1
# TYPE dynamo_frontend_queued_requests gauge
dynamo_frontend_queued_requests{model="m"} 5
# TYPE dynamo_frontend_model_total_kv_blocks gauge
dynamo_frontend_model_total_kv_blocks{model="m"} 9000
# TYPE dynamo_frontend_model_kv_cache_block_size gauge
dynamo_frontend_model_kv_cache_block_size{model="m"} 16
"""


def test_a_page_is_read() -> None:
    assert dynamo.observe(PAGE, 7.0) == Observation(7.0, 5, 8, None, 9000, 16)


@pytest.mark.parametrize(
    "page", [b"", b"dynamo_frontend_inflight_requests 1\n", b"dynamo_frontend_queued_requests 1\n"]
)
def test_a_page_of_something_else_is_none(page: bytes) -> None:
    assert dynamo.observe(page, 0.0) is None
