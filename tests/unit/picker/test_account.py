import pytest

from kinference.picker.account import Account


def test_what_is_charged_is_held_until_it_is_released() -> None:
    account = Account(100)
    account.charge(70)
    assert (account.held, account.free) == (70, 30)
    account.release(70)
    assert (account.held, account.free) == (0, 100)


def test_an_account_over_its_budget_has_nothing_free() -> None:
    account = Account(10)
    account.charge(12)
    assert account.free == 0


def test_bytes_released_twice_are_noticed() -> None:
    account = Account(10)
    account.charge(5)
    account.release(5)
    with pytest.raises(AssertionError, match="twice"):
        account.release(5)


def test_the_peak_is_the_most_that_was_held_at_once() -> None:
    account = Account(100)
    for amount in (40, 20):
        account.charge(amount)
        account.release(amount)
    assert (account.held, account.peak) == (0, 40)
