import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kinference.control.errors import StoreFailed
from kinference.control.store.base import Booking
from kinference.control.store.sqlite import SqliteStore
from kinference.core.limits import Account, Accounts, Limits
from kinference.core.prices import Price
from kinference.runtime.spending import Spending, month_of

BUDGET = Limits(usd_per_month=10.0)
DOLLAR = Price(1.0, 0.0)


class Calendar:
    """A clock whose wall can be moved."""

    def __init__(self, text: str) -> None:
        self.moment = datetime.fromisoformat(text).replace(tzinfo=UTC)

    def now(self) -> float:
        return 1_000.0

    def wall(self) -> float:
        return self.moment.timestamp()


class Unwell(SqliteStore):
    """A store that fails as long as it is told to."""

    is_down = True

    async def spent(self, month: str) -> Mapping[str, int]:
        if self.is_down:
            raise StoreFailed("disk full")
        return await super().spent(month)


def account_of(accounts: Accounts, tenant: str = "t") -> Account:
    account = accounts.of(tenant, BUDGET, 0.0)
    assert account is not None
    return account


def spend(accounts: Accounts, dollars: int, tenant: str = "t") -> None:
    account_of(accounts, tenant).hold(1, DOLLAR, 0.0).settle(dollars * 1_000_000, 0, 0)


def spending(accounts: Accounts, store: SqliteStore, clock: Calendar) -> Spending:
    made = Spending(accounts, store, clock)
    made.is_wanted = True
    return made


async def test_what_was_spent_outlives_the_process(tmp_path: Path) -> None:
    clock = Calendar("2026-11-30T12:00")
    for expected in (3.0, 6.0):
        store, accounts = SqliteStore(tmp_path / "control.db"), Accounts()
        keeper = spending(accounts, store, clock)
        await keeper.book()
        spend(accounts, 3)
        await keeper.book()
        assert accounts.unbooked() == {}
        assert account_of(accounts).spent_usd == expected
        await store.close()


async def test_replicas_that_share_a_store_share_a_budget(tmp_path: Path) -> None:
    clock, store = Calendar("2026-11-30T12:00"), SqliteStore(tmp_path / "control.db")
    one, other = Accounts(), Accounts()
    for accounts, dollars in ((one, 4), (other, 5)):
        spend(accounts, dollars)
        await spending(accounts, store, clock).book()
    assert account_of(other).purse_usd == 1.0
    await spending(one, store, clock).book()
    assert account_of(one).purse_usd == 1.0
    await store.close()


async def test_a_new_month_begins_with_nothing_spent(tmp_path: Path) -> None:
    clock, store, accounts = Calendar("2026-11-30T23:59"), SqliteStore(tmp_path / "control.db"), Accounts()
    keeper = spending(accounts, store, clock)
    spend(accounts, 9)
    await keeper.book()
    assert accounts.month_ends_at == 1_060.0
    clock.moment = datetime(2026, 12, 1, tzinfo=UTC)
    await keeper.book()
    assert account_of(accounts).purse_usd == 10.0
    await store.close()


async def test_a_wall_clock_that_jumps_over_the_month_and_back_forgives_nothing_and_charges_nothing_twice(
    tmp_path: Path,
) -> None:
    clock, accounts, store = Calendar("2026-11-30T23:59"), Accounts(), SqliteStore(tmp_path / "control.db")
    book = spending(accounts, store, clock).book
    spent = {"2026-11": 0, "2026-12": 0, "1970-01": 0}
    for month, dollars in (
        ("2026-11", 3),
        ("2026-12", 2),
        ("2026-11", 1),
        ("1970-01", 5),
        ("2026-12", 0),
        ("2026-11", 0),
    ):
        clock.moment = datetime.fromisoformat(f"{month}-30T23:59:59" if dollars else f"{month}-01").replace(tzinfo=UTC)
        await book()
        assert account_of(accounts).spent_usd == spent[month]
        spend(accounts, dollars)
        spent[month] += dollars
        await book()
        assert account_of(accounts).spent_usd == spent[month]
        assert clock.now() < accounts.month_ends_at <= clock.now() + 31 * 86_400
    await store.close()


async def test_while_the_store_fails_the_budget_holds_and_what_is_owed_is_booked_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock, store, accounts = Calendar("2026-11-30T12:00"), Unwell(tmp_path / "control.db"), Accounts()
    keeper = spending(accounts, store, clock)
    spend(accounts, 4)
    for _ in range(3):
        await keeper.try_to_book()
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert account_of(accounts).purse_usd == 6.0
    spend(accounts, 1)
    store.is_down = False
    await keeper.try_to_book()
    assert account_of(accounts).purse_usd == 5.0
    assert dict(await store.spent("2026-11")) == {"t": 5_000_000_000}
    await store.close()


class Mute(SqliteStore):
    """A store that takes what it is told, and is cut off before it can say so."""

    is_cut_off = True

    async def spend(self, booking: Booking) -> None:
        await super().spend(booking)
        if self.is_cut_off:
            raise StoreFailed("connection lost")


async def test_what_was_stored_without_an_answer_is_not_booked_again(tmp_path: Path) -> None:
    clock, store, accounts = Calendar("2026-11-30T23:59"), Mute(tmp_path / "control.db"), Accounts()
    keeper = spending(accounts, store, clock)
    spend(accounts, 4)
    for dollars in (0, 1):
        with pytest.raises(StoreFailed):
            await keeper.book()
        spend(accounts, dollars)
    store.is_cut_off, clock.moment = False, datetime(2026, 12, 1, tzinfo=UTC)
    await keeper.book()
    assert accounts.unbooked() == {}
    assert dict(await store.spent("2026-11")) == {"t": 4_000_000_000}
    assert dict(await store.spent("2026-12")) == {"t": 1_000_000_000}
    await store.close()


async def test_without_budgets_no_store_is_touched(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "control.db")
    await Spending(Accounts(), store, Calendar("2026-11-30T12:00")).book()
    assert list(tmp_path.iterdir()) == []  # noqa: ASYNC240 - an empty folder
    await store.close()


@pytest.mark.parametrize(
    ("moment", "month", "days"),
    [("2026-11-01T00:00", "2026-11", 30), ("2028-02-01T00:00", "2028-02", 29), ("2026-12-31T00:00", "2026-12", 1)],
)
def test_a_month_is_a_calendar_month_in_utc(moment: str, month: str, days: int) -> None:
    wall = datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp()
    assert month_of(wall) == (month, days * 86_400.0)


class Counting(SqliteStore):
    """A store that counts how often it is written to."""

    writes = 0

    async def spend(self, booking: Booking) -> None:
        self.writes += 1
        await super().spend(booking)


async def test_all_that_was_spent_in_a_round_is_one_write(tmp_path: Path) -> None:
    """A disk takes milliseconds for each: a round of thousands of tenants would take longer than the next is away."""
    store, accounts = Counting(tmp_path / "control.db"), Accounts()
    names = [f"tenant-{number}" for number in range(300)]
    for name in names:
        spend(accounts, 2, name)
    keeper = spending(accounts, store, Calendar("2026-11-30T12:00"))
    await keeper.book()
    await keeper.book()
    assert store.writes == 1
    assert await store.spent("2026-11") == dict.fromkeys(names, 2_000_000_000)
    await store.close()
