"""What holds for every test."""

import gc
import logging
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# How long a machine takes says nothing about the code: no deadline, and slow drawing of examples is no failure.
settings.register_profile(
    "untimed",
    settings.get_profile(settings.get_current_profile_name()),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--resets", type=int, default=500, help="how many calls the tests of resets break off, each")


@pytest.fixture(autouse=True)
def own_garbage() -> Iterator[None]:
    """Find what a test has left open while it is this test's: a later collection would blame whichever runs then."""
    yield
    gc.collect(1)


@pytest.fixture(autouse=True)
def own_logs() -> Iterator[None]:
    """Undo what a command that ran in this process did to logging: its stream is closed with the test that caught it."""
    root = logging.getLogger()
    level = root.level
    yield
    for handler in tuple(root.handlers):
        if type(handler) is logging.StreamHandler:  # those that catch what a test logs are of a class of their own
            root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture
def resets(request: pytest.FixtureRequest) -> int:
    """How many calls to break off."""
    count: int = request.config.getoption("--resets")
    return count
