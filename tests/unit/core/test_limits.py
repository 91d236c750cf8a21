import pytest

from kinference.core.limits import ACCOUNTS_MAX, Account, Accounts, Bucket, Left, Limits
from kinference.core.prices import FREE, Price

DOLLAR = Price(1.0, 1.0, 0.0)


def account(limits: Limits) -> Account:
    made = Accounts().of("acme", limits, 0.0)
    assert made is not None
    return made


def reason(one: Account, tokens: int = 1, now: float = 0.0) -> str:
    over = one.over_limit(tokens, now)
    return "" if over is None else over.limit


# --- buckets ------------------------------------------------------------------------------------


def test_a_bucket_fills_evenly_and_never_beyond_its_size() -> None:
    bucket = Bucket(60, 0.0, 0.0)
    bucket.fill(10.0)
    assert bucket.level == 10.0
    bucket.fill(5.0)  # a clock that goes back takes nothing away
    assert bucket.level == 10.0
    bucket.fill(500.0)
    assert bucket.left() == Left(60, 60, 0.0)


def test_what_exceeds_the_bucket_waits_until_it_is_full_and_no_longer() -> None:
    bucket = Bucket(60, 30.0, 0.0)
    assert bucket.wait(30) == 0.0
    assert bucket.wait(45) == 15.0
    assert bucket.wait(1_000) == 30.0


# --- limits -------------------------------------------------------------------------------------


def test_requests_a_minute_refuse_the_next_and_tell_when() -> None:
    one = account(Limits(requests_per_minute=2))
    one.hold(1, FREE, 0.0)
    one.hold(1, FREE, 0.0)
    over = one.over_limit(1, 0.0)
    assert over is not None
    assert (over.limit, over.retry_after) == ("requests_per_minute", 30.0)
    assert over.reason == "quota: tenant 'acme' is at its requests_per_minute of 2; try again in 30.0 s"
    assert reason(one, now=29.9) == "requests_per_minute"
    assert reason(one, now=30.0) == ""


def test_of_five_at_once_that_each_expect_60_of_100_tokens_one_passes() -> None:
    one = account(Limits(tokens_per_minute=100))
    passed = 0
    for _ in range(5):
        if not reason(one, 60):
            one.hold(60, FREE, 0.0)
            passed += 1
    assert passed == 1


def test_what_was_not_used_of_the_expected_is_free_again_at_once() -> None:
    one = account(Limits(tokens_per_minute=100))
    hold = one.hold(60, FREE, 0.0)
    assert reason(one, 60) == "tokens_per_minute"
    hold.settle(15, 0, 5)
    assert reason(one, 60) == ""
    assert one.left(0.0) == (None, Left(100, 80, 12.0))


def test_what_was_used_beyond_the_expected_is_paid_before_anything_passes() -> None:
    one = account(Limits(tokens_per_minute=100))
    one.hold(60, FREE, 0.0).settle(100, 0, 50)
    over = one.over_limit(1, 0.0)
    assert over is not None
    assert over.retry_after == pytest.approx(51 * 0.6)
    assert reason(one, now=31.0) == ""


def test_a_request_larger_than_the_limit_passes_when_nothing_of_it_is_used() -> None:
    one = account(Limits(tokens_per_minute=100))
    assert reason(one, 5_000) == ""
    hold = one.hold(5_000, FREE, 0.0)
    assert hold.tokens == 100
    assert reason(one, 1) == "tokens_per_minute"
    hold.give_back()
    assert reason(one, 5_000) == ""


def test_requests_at_once_are_counted_until_each_has_ended() -> None:
    one = account(Limits(concurrent=2))
    first, second = one.hold(1, FREE, 0.0), one.hold(1, FREE, 0.0)
    over = one.over_limit(1, 0.0)
    assert over is not None
    assert (over.limit, over.retry_after) == ("concurrent", None)
    first.settle(1, 0, 1)
    assert reason(one) == ""
    second.keep()
    assert one.in_flight == 0


def test_what_was_never_served_counts_for_nothing() -> None:
    one = account(Limits(requests_per_minute=1, tokens_per_minute=10, usd_per_month=1.0))
    one.hold(10, DOLLAR, 0.5).give_back()
    assert reason(one, 10) == ""
    assert (one.purse_usd, one.unreported_usd) == (1.0, 0.0)


def test_what_nobody_counted_stands_as_it_was_expected() -> None:
    one = account(Limits(tokens_per_minute=100, usd_per_month=1.0))
    one.hold(60, DOLLAR, 0.25).keep()
    assert one.left(0.0)[1] == Left(100, 40, 36.0)
    assert (one.spent_usd, one.purse_usd, one.held_usd) == (0.25, 0.75, 0.0)


# --- money --------------------------------------------------------------------------------------


def test_a_purse_is_what_is_neither_spent_nor_expected_of_what_is_in_flight() -> None:
    one = account(Limits(usd_per_month=10.0))
    hold = one.hold(1, DOLLAR, 3.0)
    assert one.purse_usd == 7.0
    hold.settle(2_000_000, 1_000_000, 0)
    assert (one.purse_usd, one.spent_usd, one.held_usd) == (9.0, 1.0, 0.0)
    assert account(Limits(concurrent=1)).purse_usd is None


def test_without_a_budget_money_is_reported_and_not_booked() -> None:
    accounts = Accounts()
    one = accounts.of("t", Limits(concurrent=1), 0.0)
    assert one is not None
    one.hold(1, DOLLAR, 0.0).settle(1_000_000, 0, 0)
    one.hold(1, None, 0.0).settle(1_000_000, 0, 0)
    assert accounts.unbooked() == {}
    assert accounts.take_unreported() == (("t", 1.0, 1),)
    assert accounts.take_unreported() == ()


def test_a_budget_holds_for_what_the_store_knows_and_what_it_does_not_know_yet() -> None:
    accounts, limits = Accounts(), Limits(usd_per_month=10.0)
    accounts.follow({"t": 4.0})
    one = accounts.of("t", limits, 0.0)
    assert one is not None
    assert one.purse_usd == 6.0
    one.hold(1, DOLLAR, 0.0).settle(1_000_000, 0, 0)
    assert (accounts.unbooked(), one.purse_usd) == ({"t": 1.0}, 5.0)
    accounts.booked("t", 1.0)
    assert (accounts.unbooked(), one.purse_usd) == ({}, 5.0)
    accounts.follow({"t": 7.0})  # another replica has spent 2
    assert one.purse_usd == 3.0
    accounts.follow({})  # another month
    assert one.purse_usd == 10.0


# --- many tenants -------------------------------------------------------------------------------


def test_each_tenant_has_an_account_of_its_own_and_keeps_it() -> None:
    accounts, limits = Accounts(), Limits(concurrent=1)
    first = accounts.of("a", limits, 0.0)
    assert accounts.of("a", limits, 0.0) is first
    assert accounts.of("b", limits, 0.0) is not first
    assert [one.tenant for one in accounts.page(None, 9)] == ["a", "b"]


def test_other_limits_leave_what_was_used_as_it_is() -> None:
    accounts = Accounts()
    one = accounts.of("a", Limits(requests_per_minute=10, concurrent=5), 0.0)
    assert one is not None
    for _ in range(5):
        one.hold(1, FREE, 0.0)
    one = accounts.of("a", Limits(requests_per_minute=6, tokens_per_minute=7, concurrent=9), 0.0)
    assert one is not None
    assert one.left(0.0) == (Left(6, 1, 50.0), Left(7, 7, 0.0))
    one = accounts.of("a", Limits(concurrent=5), 0.0)
    assert one is not None
    assert reason(one) == "concurrent"


def test_names_without_end_are_bounded_and_who_is_at_rest_makes_room() -> None:
    accounts, limits = Accounts(), Limits(requests_per_minute=60, usd_per_month=1.0)
    for number in range(ACCOUNTS_MAX):
        one = accounts.of(f"t{number}", limits, 0.0)
        assert one is not None
        one.hold(1, FREE, 0.0).keep()
    assert accounts.of("one too many", limits, 0.5) is None
    assert accounts.of("t0", limits, 0.5) is not None
    busy = accounts.of("t1", limits, 0.5)
    assert busy is not None
    busy.hold(1, FREE, 0.0)
    assert accounts.of("one too many", limits, 5.0) is not None
    assert [one.tenant for one in accounts.page(None, 9)] == ["one too many", "t1"]


def test_a_forgotten_tenant_comes_back_with_what_it_had_spent() -> None:
    accounts, limits = Accounts(), Limits(usd_per_month=10.0)
    one = accounts.of("t", limits, 0.0)
    assert one is not None
    one.hold(1, DOLLAR, 0.0).settle(3_000_000, 0, 0)
    accounts.booked("t", 3.0)
    for number in range(ACCOUNTS_MAX):
        accounts.of(f"t{number}", limits, 0.0)
    again = accounts.of("t", limits, 0.0)
    assert again is not one
    assert again is not None
    assert again.purse_usd == 7.0
