"""The store in one SQLite file: every acknowledged write survives the death of the process, and of the machine.

The connection lives on one thread of its own, so that a slow disk never holds up the event loop.
"""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from kinference.control.errors import Overtaken, Referred, StoreFailed
from kinference.control.store import sql
from kinference.control.store.base import Booking, Kind, Row, Store

BUSY_SECONDS = 10.0
"""How long to wait for another process that writes to the same file."""

BUSY_AGAIN_SECONDS = 0.01
"""How soon to ask again. SQLite would wait itself, but not always, and not until a time that is set from outside."""

_WHERE = "check the path, its permissions and its disk"
_AFRESH = "move it away, and put a copy in its place or a backup into a new one: kinference store restore FILE"
_REMEDIES = {
    sqlite3.SQLITE_BUSY: f"another process held it for {BUSY_SECONDS:g} s: wait for it, or end it (fuser tells which)",
    sqlite3.SQLITE_FULL: "make room on its disk",
    sqlite3.SQLITE_READONLY: "let this user write to the file and its folder",
    sqlite3.SQLITE_CORRUPT: _AFRESH,
    sqlite3.SQLITE_NOTADB: _AFRESH,
}
"""What to do about SQLite's primary result codes (sqlite.org/rescode.html)."""

Result = TypeVar("Result")


class SqliteStore(Store):
    """Rows in a file, which is created when it is first used."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, "kinference-store")
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        """Which file the connection is to: its path may lead to another since."""

    async def open(self) -> None:
        await self._do(lambda _connection: None)

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._disconnect)
        self._thread.shutdown(wait=False)

    async def read(self, kind: Kind, name: str) -> Row | None:
        found = await self._do(lambda connection: _rows(connection, sql.READ, kind.value, name))
        return sql.row_of(found[0]) if found else None

    async def rows(self, kind: Kind) -> Sequence[Row]:
        return sql.rows_of(await self._do(lambda connection: _rows(connection, sql.ROWS, kind.value)))

    async def write(self, row: Row, expected: int | None = None) -> int:
        statement, parameters = sql.write(row, expected)
        found = await self._do(lambda connection: _change(connection, statement, *parameters))
        if not found:
            raise Overtaken(f"{row.kind.value} {row.name!r} was changed by somebody else in the meantime")
        version: int = found[0][0]
        return version

    async def delete(self, kind: Kind, name: str) -> bool:
        return bool(await self._do(lambda connection: _change(connection, sql.DELETE, kind.value, name)))

    async def spend(self, booking: Booking) -> None:
        await self._do(lambda connection: _spend(connection, booking))

    async def spent(self, month: str) -> Mapping[str, int]:
        return dict(await self._do(lambda connection: _rows(connection, sql.SPENT, month)))

    async def load(self, rows: Iterable[Row]) -> None:
        await self._do(lambda connection: _load(connection, tuple(rows)))

    async def _do(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Time spent in the queue counts, so that many who wait for one lock are all told in time."""
        until = time.monotonic() + BUSY_SECONDS
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._guarded, work, until)

    def _guarded(self, work: Callable[[sqlite3.Connection], Result], until: float) -> Result:
        while True:
            try:
                return work(self._connected())
            except sqlite3.IntegrityError as error:
                raise Referred(str(error)) from None
            except (sqlite3.Error, OSError) as error:
                if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise self._failed(str(error), _REMEDIES.get(_code(error), _WHERE)) from error
                time.sleep(BUSY_AGAIN_SECONDS)  # all that was begun is undone, and asking again is safe

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = _connected(self._path)
            self._file = _identity(self._path)
        elif self._file != _identity(self._path):  # what is written to a file without a name is lost, and no error
            remedy = "put it back, or restart kinference to go on with what is there now"
            raise self._failed("the file was deleted or replaced while in use", remedy)
        return self._connection

    def _failed(self, why: str, remedy: str) -> StoreFailed:
        return StoreFailed(f"the store {self._path} cannot be used: {why}; {remedy}")

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _code(error: Exception) -> int:
    """SQLite's primary result code; 0 where SQLite itself did not fail."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file it is; None when there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _connected(path: Path) -> sqlite3.Connection:
    """Open the file, for its owner alone, and bring its tables up to date."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):  # a file that is there stays shut: closing it would drop this process's locks on it
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    connection = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        _migrate(connection)
    except (sqlite3.Error, StoreFailed):
        connection.close()
        raise
    return connection


def _migrate(connection: sqlite3.Connection) -> None:
    with _transaction(connection):
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > len(sql.MIGRATIONS):
            raise StoreFailed("the store was written by a newer version of kinference; install that one")
        for script in sql.MIGRATIONS[version:]:
            connection.execute(script.format(bytes="BLOB"))
        connection.execute(f"PRAGMA user_version = {len(sql.MIGRATIONS)}")


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing, with the write lock from the start: a lock that is taken late can be refused."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk has ended it already
            connection.execute("ROLLBACK")
        raise


def _rows(connection: sqlite3.Connection, statement: str, *parameters: object) -> list[Any]:
    named = {str(place): value for place, value in enumerate(parameters, start=1)}
    return connection.execute(statement, named).fetchall()


def _change(connection: sqlite3.Connection, statement: str, *parameters: object) -> list[Any]:
    with _transaction(connection):
        return _rows(connection, statement, *parameters)


def _spend(connection: sqlite3.Connection, booking: Booking) -> None:
    """At once: each change on its own would wait for the disk."""
    with _transaction(connection):
        if not _rows(connection, sql.BOOK, *sql.book(booking)):
            return
        for tenant, amount in booking.nano_usd.items():
            _rows(connection, sql.SPEND, booking.month, tenant, amount)
        if booking.number == 1:
            _rows(connection, sql.FORGET_BOOKERS, sql.month_before(booking.month))


def _load(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    with _transaction(connection):
        for kind in reversed(Kind):
            _rows(connection, sql.CLEAR, kind.value)
        for row in sql.in_order(rows):
            _rows(connection, sql.PUT_BACK, *sql.values(row), row.version)
