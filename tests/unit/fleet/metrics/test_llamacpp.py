from pathlib import Path

import pytest

from kinference.core.fleet import Observation
from kinference.fleet.metrics import llamacpp

SAMPLES = Path(__file__).parent / "samples"


def test_the_page_of_a_real_engine_is_read() -> None:
    assert llamacpp.observe((SAMPLES / "llamacpp.txt").read_bytes(), 7.0) == Observation(7.0, 0, 0)


def test_an_older_server_tells_its_cache_use() -> None:
    page = b"llamacpp:kv_cache_usage_ratio 0.5\nllamacpp:requests_processing 2\nllamacpp:requests_deferred 3\n"
    assert llamacpp.observe(page, 0.0) == Observation(0.0, 3, 2, 0.5)


def test_values_out_of_range_are_held_within_it() -> None:
    page = b"llamacpp:kv_cache_usage_ratio 9\nllamacpp:requests_processing -2\nllamacpp:requests_deferred 1e300\n"
    assert llamacpp.observe(page, 0.0) == Observation(0.0, 1 << 40, 0, 1.0)


@pytest.mark.parametrize("page", [b"", b"llamacpp:requests_processing 2\n", b"llamacpp:requests_deferred 2\n"])
def test_a_page_of_something_else_is_none(page: bytes) -> None:
    assert llamacpp.observe(page, 0.0) is None
