import asyncio
import sqlite3
import stat
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kinference.control.errors import Overtaken, Referred, StoreFailed
from kinference.control.store import sqlite
from kinference.control.store.base import Booking, Kind, Row
from kinference.control.store.sql import MIGRATIONS
from kinference.control.store.sqlite import BUSY_SECONDS, SqliteStore

PROVIDER = Row(Kind.PROVIDER, "p", b"{}")
ROUTE = Row(Kind.ROUTE, "r", b"[]", "p")


class Ticking:
    """A clock that only sleepers move."""

    def __init__(self) -> None:
        self.slept = 0.0

    def monotonic(self) -> float:
        return self.slept

    def sleep(self, seconds: float) -> None:
        self.slept += seconds


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def no_database(path: Path) -> Path:
    path.parent.mkdir()
    path.write_bytes(b"not a database, and long enough to have a header" * 30)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "control.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(path)
    yield opened
    await opened.close()


async def test_a_row_is_read_back_with_its_version(store: SqliteStore) -> None:
    assert await store.read(Kind.PROVIDER, "p") is None
    assert await store.write(PROVIDER) == 1
    assert await store.write(Row(Kind.PROVIDER, "p", b"more")) == 2
    assert await store.read(Kind.PROVIDER, "p") == Row(Kind.PROVIDER, "p", b"more", None, 2)


async def test_rows_come_by_name_and_only_of_their_kind(store: SqliteStore) -> None:
    for name in ("z", "p", "é"):
        await store.write(Row(Kind.PROVIDER, name, b""))
    await store.write(ROUTE)
    assert [row.name for row in await store.rows(Kind.PROVIDER)] == ["p", "z", "é"]
    assert await store.rows(Kind.ROUTE) == [Row(Kind.ROUTE, "r", b"[]", "p", 1)]


async def test_a_write_over_another_version_than_expected_is_overtaken(store: SqliteStore) -> None:
    with pytest.raises(Overtaken):
        await store.write(PROVIDER, expected=1)
    assert await store.write(PROVIDER, expected=0) == 1
    with pytest.raises(Overtaken, match="provider 'p' was changed"):
        await store.write(PROVIDER, expected=0)
    assert await store.write(PROVIDER, expected=1) == 2
    with pytest.raises(Overtaken):
        await store.write(PROVIDER, expected=1)


async def test_racing_writes_each_get_a_version_of_their_own(store: SqliteStore) -> None:
    versions = await asyncio.gather(*(store.write(PROVIDER) for _ in range(100)))
    assert sorted(versions) == list(range(1, 101))


async def test_a_row_needs_its_provider_and_keeps_it(store: SqliteStore) -> None:
    with pytest.raises(Referred):
        await store.write(ROUTE)
    await store.write(PROVIDER)
    await store.write(ROUTE)
    with pytest.raises(Referred):
        await store.delete(Kind.PROVIDER, "p")
    assert await store.delete(Kind.ROUTE, "r")
    assert await store.delete(Kind.PROVIDER, "p")
    assert not await store.delete(Kind.PROVIDER, "p")


async def test_what_was_written_is_there_after_reopening(store: SqliteStore, path: Path) -> None:
    await store.write(PROVIDER)
    again = SqliteStore(path)
    assert await again.read(Kind.PROVIDER, "p") is not None
    await again.close()


async def test_two_processes_may_write_to_one_file(store: SqliteStore, path: Path) -> None:
    other = SqliteStore(path)
    versions = await asyncio.gather(*(each.write(PROVIDER) for each in (store, other) * 20))
    assert sorted(versions) == list(range(1, 41))
    await other.close()


async def test_many_may_make_one_file_at_once(tmp_path: Path) -> None:
    """SQLite refuses at once, whatever its time-out, one of two that turn a new file to WAL."""
    for turn in range(60):
        stores = [SqliteStore(tmp_path / f"{turn}.db") for _ in range(4)]
        await asyncio.gather(*(each.open() for each in stores))
        await asyncio.gather(*(each.close() for each in stores))


async def test_the_file_is_its_owners_alone(store: SqliteStore, path: Path) -> None:
    await store.open()
    assert [mode(path), mode(path.parent)] == [0o600, 0o700]


async def test_loading_replaces_everything_and_keeps_versions(store: SqliteStore) -> None:
    await store.write(Row(Kind.PROVIDER, "old", b""))
    rows = [Row(Kind.ROUTE, "r", b"[]", "p", 7), Row(Kind.PROVIDER, "p", b"{}", None, 3)]
    await store.load(rows)
    assert [*await store.rows(Kind.ROUTE), *await store.rows(Kind.PROVIDER)] == rows


async def test_loading_rows_that_do_not_hold_together_changes_nothing(store: SqliteStore) -> None:
    await store.write(PROVIDER)
    with pytest.raises(Referred):
        await store.load([Row(Kind.ROUTE, "r", b"[]", "gone", 1)])
    assert await store.read(Kind.PROVIDER, "p") is not None


async def test_a_file_that_is_no_database_is_told_so(no_database: Path) -> None:
    store = SqliteStore(no_database)
    with pytest.raises(StoreFailed, match="file is not a database"):
        await store.open()
    await store.close()


async def test_a_path_that_cannot_be_written_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = SqliteStore(tmp_path / "file" / "control.db")
    with pytest.raises(StoreFailed, match=r"control\.db cannot be used"):
        await store.open()
    await store.close()


async def test_a_file_of_a_newer_version_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    store = SqliteStore(path)
    with pytest.raises(StoreFailed, match="newer version"):
        await store.open()
    await store.close()


async def test_what_is_spent_adds_up_by_month_and_tenant(store: SqliteStore) -> None:
    assert dict(await store.spent("2026-11")) == {}
    spends = enumerate(({"a": 7}, {"a": 7, "": 7}) * 10)
    await asyncio.gather(*(store.spend(Booking(f"b{place}", 1, "2026-11", spent)) for place, spent in spends))
    await store.spend(Booking("b0", 2, "2026-12", {"a": 1}))
    assert dict(await store.spent("2026-11")) == {"a": 140, "": 70}


async def test_what_is_booked_again_is_spent_once(store: SqliteStore) -> None:
    for number in (1, 1, 2, 2, 1):
        await store.spend(Booking("b", number, "2026-11", {"a": 7}))
    await store.spend(Booking("another", 1, "2026-11", {"a": 7}))
    assert dict(await store.spent("2026-11")) == {"a": 21}


async def test_bookers_of_long_ago_are_forgotten(store: SqliteStore) -> None:
    for place, month in enumerate(("2025-11", "2025-12", "2026-01")):
        await store.spend(Booking(f"b{place}", 1, month, {"a": 7}))
    kept = await store._do(lambda connection: connection.execute("SELECT booker FROM bookings ORDER BY 1").fetchall())
    assert kept == [("b1",), ("b2",)]


async def test_a_restored_backup_does_not_give_spent_money_back(store: SqliteStore) -> None:
    await store.spend(Booking("b", 1, "2026-11", {"a": 7}))
    await store.load([PROVIDER])
    assert dict(await store.spent("2026-11")) == {"a": 7}


async def test_a_file_of_the_version_before_is_brought_up_to_date(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.execute(MIGRATIONS[0].format(bytes="BLOB"))
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    store = SqliteStore(path)
    await store.spend(Booking("b", 1, "2026-11", {"a": 7}))
    assert await store.write(PROVIDER) == 1
    await store.close()


async def test_a_write_that_sqlite_has_taken_back_by_itself_is_told_by_its_own_reason(store: SqliteStore) -> None:
    """As it does where the disk is full."""
    await store.write(PROVIDER)
    full = "CREATE TEMP TRIGGER full BEFORE INSERT ON records BEGIN SELECT RAISE(ROLLBACK, 'no space is left'); END"
    await store._do(lambda connection: connection.execute(full).fetchall())
    with pytest.raises(Referred, match="no space is left"):
        await store.write(Row(Kind.PROVIDER, "another", b""))
    await store._do(lambda connection: connection.execute("DROP TRIGGER full").fetchall())
    assert await store.write(Row(Kind.PROVIDER, "another", b"")) == 1


async def test_nothing_is_written_to_a_file_that_was_deleted_while_in_use(store: SqliteStore, path: Path) -> None:
    """It would be acknowledged, and gone at the next start."""
    await store.write(PROVIDER)
    away = path.with_name("away.db")
    await asyncio.to_thread(path.rename, away)
    with pytest.raises(StoreFailed, match="deleted or replaced while in use; put it back, or restart kinference"):
        await store.write(Row(Kind.PROVIDER, "another", b""))
    assert not await asyncio.to_thread(path.exists)
    await asyncio.to_thread(away.rename, path)
    assert await store.write(Row(Kind.PROVIDER, "another", b"")) == 1


async def test_a_file_put_in_the_place_of_the_one_in_use_is_neither_read_nor_written(
    store: SqliteStore, path: Path, tmp_path: Path
) -> None:
    await store.write(PROVIDER)
    other = SqliteStore(tmp_path / "other.db")
    await other.open()
    await other.close()
    await asyncio.to_thread((tmp_path / "other.db").rename, path)
    with pytest.raises(StoreFailed, match="deleted or replaced"):
        await store.read(Kind.PROVIDER, "p")


async def test_many_who_wait_for_one_lock_wait_no_longer_than_one(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other has its own time, the sixth would be told after a minute, and a mere reader, too."""
    await store.write(PROVIDER)
    clock = Ticking()
    monkeypatch.setattr(sqlite, "time", clock)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    all_wait = threading.Event()
    first = asyncio.ensure_future(store._do(lambda _connection: all_wait.wait()))
    writes = [asyncio.ensure_future(store.write(Row(Kind.PROVIDER, str(number), b""))) for number in range(6)]
    read = asyncio.ensure_future(store.read(Kind.PROVIDER, "p"))
    await asyncio.sleep(0)  # each of them has begun to wait
    all_wait.set()
    _, *refused, found = await asyncio.gather(first, *writes, read, return_exceptions=True)
    why = "database is locked; another process held it for 10 s: wait for it, or end it (fuser tells which)"
    assert [str(error) for error in refused] == [f"the store {path} cannot be used: {why}"] * 6
    assert isinstance(found, Row)
    assert clock.slept == pytest.approx(BUSY_SECONDS, abs=1)
    holder.execute("ROLLBACK")
    holder.close()
    assert await store.write(Row(Kind.PROVIDER, "after", b"")) == 1


async def test_a_full_disk_is_told_with_what_to_do(store: SqliteStore) -> None:
    await store.write(PROVIDER)
    await store._do(lambda connection: connection.execute("PRAGMA max_page_count = 1").fetchall())
    with pytest.raises(StoreFailed, match="database or disk is full; make room on its disk"):
        await store.write(Row(Kind.PROVIDER, "large", bytes(100_000)))
    assert await store.read(Kind.PROVIDER, "p") is not None


async def test_a_file_that_may_only_be_read_is_told_with_what_to_do(store: SqliteStore) -> None:
    await store.write(PROVIDER)
    await store._do(lambda connection: connection.execute("PRAGMA query_only = 1").fetchall())
    with pytest.raises(StoreFailed, match="readonly database; let this user write to the file and its folder"):
        await store.write(Row(Kind.PROVIDER, "another", b""))


async def test_a_damaged_file_is_told_with_what_to_do(no_database: Path) -> None:
    store = SqliteStore(no_database)
    with pytest.raises(StoreFailed, match="move it away, and put a copy in its place or a backup into a new one"):
        await store.open()
    await asyncio.to_thread(no_database.unlink)
    assert await store.write(PROVIDER) == 1
    await store.close()
