import asyncio
import sqlite3
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kinference.control.errors import Overtaken, Referred, StoreFailed
from kinference.control.store.base import Kind, Row
from kinference.control.store.sql import MIGRATIONS
from kinference.control.store.sqlite import SqliteStore

PROVIDER = Row(Kind.PROVIDER, "p", b"{}")
ROUTE = Row(Kind.ROUTE, "r", b"[]", "p")


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
    await asyncio.gather(*(store.spend("2026-11", tenant, 7) for tenant in ("a", "", "a") * 10))
    await store.spend("2026-12", "a", 1)
    assert dict(await store.spent("2026-11")) == {"a": 140, "": 70}


async def test_a_restored_backup_does_not_give_spent_money_back(store: SqliteStore) -> None:
    await store.spend("2026-11", "a", 7)
    await store.load([PROVIDER])
    assert dict(await store.spent("2026-11")) == {"a": 7}


async def test_a_file_of_the_version_before_is_brought_up_to_date(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.execute(MIGRATIONS[0].format(bytes="BLOB"))
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    store = SqliteStore(path)
    await store.spend("2026-11", "a", 7)
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
