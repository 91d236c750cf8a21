import pytest

from kinference.fleet.options import WatchOptions


def test_a_ready_endpoint_that_dies_is_noticed_within_seconds() -> None:
    options = WatchOptions()
    assert options.failures_max * (options.probe_pause_max + options.probe_timeout) <= 10


@pytest.mark.parametrize(("endpoints", "pause"), [(1, 0.005), (200, 1.0), (10_000, 50.0)])
def test_a_large_fleet_is_probed_less_often(endpoints: int, pause: float) -> None:
    assert WatchOptions().probe_pause_least(endpoints) == pause


@pytest.mark.parametrize(("place", "wait"), [(0, 0.0), (63, 0.0), (64, 0.064), (127, 0.064), (9_999, 9.984)])
def test_endpoints_that_come_together_are_asked_a_batch_at_a_time(place: int, wait: float) -> None:
    assert WatchOptions().first_probe_after(place) == wait


@pytest.mark.parametrize(
    ("endpoints", "is_failing", "pause"),
    [(1, False, 0.2), (16, False, 0.2), (100, False, 1.25), (1, True, 2.0), (400, True, 5.0)],
)
def test_a_large_fleet_and_a_failing_engine_are_scraped_less_often(
    endpoints: int, is_failing: bool, pause: float
) -> None:
    assert WatchOptions().scrape_pause(endpoints, is_failing) == pause
