"""How many descriptors a process takes, and when it says that they are too few."""

import resource
from collections.abc import Iterator

import pytest

from kinference.config.schema import Limits
from kinference.config.values import Count
from kinference.runtime.descriptors import raise_limit, shortage


@pytest.fixture
def hard() -> Iterator[int]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_process_takes_what_the_system_allows(hard: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    assert raise_limit() == resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(hard % 2**63, 1_048_576)
    assert raise_limit() == raise_limit()


def test_too_few_are_told_of_with_what_would_fit() -> None:
    limits = Limits(connections_max=Count(1000))
    assert shortage(1256, limits) == shortage(resource.RLIM_INFINITY, limits) == ""
    told = shortage(1024, limits)
    assert "more file descriptors than the 1024" in told
    assert "set it to 384" in told
    assert shortage(1024, Limits(connections_max=Count(384))) == ""
    assert "set it to 1," in shortage(3, limits)
