import pytest

from kinference.fleet.options import WatchOptions


def test_a_ready_endpoint_that_dies_is_noticed_within_seconds() -> None:
    options = WatchOptions()
    assert options.failures_max * (options.probe_pause_max + options.probe_timeout) <= 10


@pytest.mark.parametrize(
    ("endpoints", "is_failing", "pause"),
    [(1, False, 0.2), (16, False, 0.2), (100, False, 1.25), (1, True, 2.0), (400, True, 5.0)],
)
def test_a_large_fleet_and_a_failing_engine_are_scraped_less_often(
    endpoints: int, is_failing: bool, pause: float
) -> None:
    assert WatchOptions().scrape_pause(endpoints, is_failing) == pause
