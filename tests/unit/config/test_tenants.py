import pytest

from kinference.config.load import parse
from kinference.config.problems import InvalidConfig


def test_a_rule_holds_its_limits_and_what_is_not_said_is_not_limited() -> None:
    text = "tenants: [{tenants: [a], limits: {concurrent: 3, usd_per_month: 4.5}, usd_per_hour: 60}, {tenants: [b]}]"
    limited, free = parse(text, {}).tenants
    assert limited.limits is not None
    assert (limited.tenants, limited.usd_per_hour, limited.limits.usd_per_month) == (("a",), 60.0, 4.5)
    assert (limited.limits.concurrent, limited.limits.requests_per_minute) == (3, None)
    assert (free.limits, free.usd_per_hour) == (None, None)


@pytest.mark.parametrize("limit", ["concurrent: 1.5", "requests_per_minute: -1", "usd_per_month: much", "tokens: 5"])
def test_what_is_no_limit_is_refused(limit: str) -> None:
    with pytest.raises(InvalidConfig):
        parse(f"tenants: [{{tenants: [a], limits: {{{limit}}}}}]", {})
