"""The store in PostgreSQL, for several replicas of the control plane. Its tables stand in a schema of our own."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager

import asyncpg

from kinference.control.errors import Overtaken, Referred, StoreFailed
from kinference.control.store import sql
from kinference.control.store.base import Booking, Kind, Row, Store
from kinference.ids import Seconds

CONNECTIONS_MAX = 4
PATIENCE: Seconds = 10.0
SCHEMA = "kinference"
_MIGRATION_LOCK = 0x6B696E66
"""Two replicas that start at once migrate one after the other."""
_SILENT = f"no answer in {PATIENCE:g} s"
"""What a time-out, which has no words of its own, comes of."""
_REMEDY = "check its address in control.store, that the server is up, and what its log says"


class PostgresStore(Store):
    """Rows on a server. The password, where there is one, is for the client library to find: PGPASSWORD, PGPASSFILE."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._opening = asyncio.Lock()
        self._pool: asyncpg.Pool | None = None

    async def open(self) -> None:
        async with self._connection():
            pass

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()
            self._pool = None

    async def read(self, kind: Kind, name: str) -> Row | None:
        async with self._connection() as connection:
            found = await connection.fetchrow(sql.READ, kind.value, name)
        return None if found is None else sql.row_of(found)

    async def rows(self, kind: Kind) -> Sequence[Row]:
        async with self._connection() as connection:
            return sql.rows_of(await connection.fetch(sql.ROWS, kind.value))

    async def write(self, row: Row, expected: int | None = None) -> int:
        statement, parameters = sql.write(row, expected)
        async with self._connection() as connection:
            version: int | None = await connection.fetchval(statement, *parameters)
        if version is None:
            raise Overtaken(f"{row.kind.value} {row.name!r} was changed by somebody else in the meantime")
        return version

    async def delete(self, kind: Kind, name: str) -> bool:
        async with self._connection() as connection:
            return await connection.fetchval(sql.DELETE, kind.value, name) is not None

    async def spend(self, booking: Booking) -> None:
        """Without tenants that a caller named with a zero byte: no text of the server's holds one, and with it it would
        refuse all.
        """
        async with self._connection() as connection:
            async with connection.transaction():
                if await connection.fetchval(sql.BOOK, *sql.book(booking)) is None:
                    return
                # In one order for all replicas: each locks the rows that it has added to.
                spent = [(booking.month, *each) for each in sorted(booking.nano_usd.items()) if "\0" not in each[0]]
                await connection.executemany(sql.SPEND, spent)
            if booking.number == 1:
                await connection.execute(sql.FORGET_BOOKERS, sql.month_before(booking.month))

    async def spent(self, month: str) -> Mapping[str, int]:
        async with self._connection() as connection:
            return {row[0]: row[1] for row in await connection.fetch(sql.SPENT, month)}

    async def load(self, rows: Iterable[Row]) -> None:
        rows = tuple(rows)
        async with self._connection() as connection, connection.transaction():
            for kind in reversed(Kind):
                await connection.execute(sql.CLEAR, kind.value)
            for row in sql.in_order(rows):
                await connection.execute(sql.PUT_BACK, *sql.values(row), row.version)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[asyncpg.Connection]:
        try:
            async with (await self._connected()).acquire(timeout=PATIENCE) as connection:
                yield connection
        except asyncpg.ForeignKeyViolationError as error:
            raise Referred(str(error)) from None
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
            why = f"{type(error).__name__}: {str(error) or _SILENT}"
            raise StoreFailed(f"the PostgreSQL store cannot be used: {why}; {_REMEDY}") from error

    async def _connected(self) -> asyncpg.Pool:
        async with self._opening:
            if self._pool is None:
                pool = await asyncpg.create_pool(
                    self._address,
                    min_size=0,
                    max_size=CONNECTIONS_MAX,
                    timeout=PATIENCE,
                    command_timeout=PATIENCE,
                    server_settings={"search_path": SCHEMA, "synchronous_commit": "on"},
                )
                async with pool.acquire(timeout=PATIENCE) as connection, connection.transaction():
                    await _migrate(connection)
                self._pool = pool
            return self._pool


async def _migrate(connection: asyncpg.Connection) -> None:
    await connection.execute(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})")
    await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    await connection.execute("CREATE TABLE IF NOT EXISTS migrations (version INT PRIMARY KEY)")
    version = await connection.fetchval("SELECT coalesce(max(version), 0) FROM migrations")
    if version > len(sql.MIGRATIONS):
        raise StoreFailed("the PostgreSQL store was written by a newer version of kinference; install that one")
    for place, script in enumerate(sql.MIGRATIONS[version:], start=version + 1):
        await connection.execute(script.format(bytes="BYTEA"))
        await connection.execute("INSERT INTO migrations VALUES ($1)", place)
