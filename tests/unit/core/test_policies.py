"""Policies by name and their parameters."""

import pytest

from kinference.core.policies import POLICIES, ExpectedLatency, make_policy
from kinference.errors import ConfigError


@pytest.mark.parametrize("name", list(POLICIES))
def test_every_policy_can_be_made_and_has_help(name: str) -> None:
    policy = make_policy(name, {})
    scoring = policy.scoring()
    assert type(policy).__doc__
    assert len({term.name for term in scoring.terms}) == len(scoring.terms)


def test_parameters_reach_the_policy() -> None:
    assert make_policy("expected_latency", {"lambda_itl": 0.7}) == ExpectedLatency(lambda_itl=0.7)


def test_an_unknown_policy_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'round_robin'"):
        make_policy("round-robin", {})


def test_a_policy_like_none_of_ours_lists_them() -> None:
    with pytest.raises(ConfigError, match="choose from expected_latency"):
        make_policy("zzz", {})


def test_an_unknown_parameter_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"routing\.parameters\.lamda_itl: .*did you mean 'lambda_itl'"):
        make_policy("expected_latency", {"lamda_itl": 1.0})


def test_a_policy_without_parameters_says_so() -> None:
    with pytest.raises(ConfigError, match="it takes none"):
        make_policy("random", {"x": 1.0})


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_a_parameter_that_is_no_sensible_number_is_refused(value: float) -> None:
    with pytest.raises(ConfigError, match="at least 0"):
        make_policy("expected_latency", {"band": value})
