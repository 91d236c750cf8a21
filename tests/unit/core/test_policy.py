"""What a rule says of itself."""

from kinference.core.limits import Limits
from kinference.core.policy import TenantRule


def test_a_budget_or_a_price_of_time_makes_a_rule_mind_money() -> None:
    assert not TenantRule(("t",)).minds_money
    assert not TenantRule(("t",), limits=Limits(concurrent=1)).minds_money
    assert TenantRule(("t",), limits=Limits(usd_per_month=0.0)).minds_money
    assert TenantRule(("t",), usd_per_hour=1.0).minds_money
