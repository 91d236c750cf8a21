"""What holds for every test."""

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


@pytest.fixture
def resets(request: pytest.FixtureRequest) -> int:
    """How many calls to break off."""
    count: int = request.config.getoption("--resets")
    return count
