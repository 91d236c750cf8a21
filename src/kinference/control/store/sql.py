"""The statements, in the words that SQLite and PostgreSQL share; `{bytes}` is where they part.

A foreign key guards what routes refer to, so that deleting a provider and pointing a route at it cannot both succeed.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from kinference.control.store.base import Booking, Kind, Row

TABLE = """
CREATE TABLE records (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    version BIGINT NOT NULL,
    refers_to TEXT,
    provider TEXT,
    body {bytes} NOT NULL,
    PRIMARY KEY (kind, name),
    FOREIGN KEY (refers_to, provider) REFERENCES records (kind, name)
)
"""

SPENDING = """
CREATE TABLE spending (
    month TEXT NOT NULL,
    tenant TEXT NOT NULL,
    nano_usd BIGINT NOT NULL,
    PRIMARY KEY (month, tenant)
)
"""

BOOKINGS = """
CREATE TABLE bookings (
    booker TEXT PRIMARY KEY,
    number BIGINT NOT NULL,
    month TEXT NOT NULL
)
"""

MIGRATIONS = (TABLE, SPENDING, BOOKINGS)
"""Each brings the schema from the version of its place to the next. Never change one that was released: add another."""

READ = "SELECT kind, name, version, provider, body FROM records WHERE kind = $1 AND name = $2"
ROWS = "SELECT kind, name, version, provider, body FROM records WHERE kind = $1"
DELETE = "DELETE FROM records WHERE kind = $1 AND name = $2 RETURNING version"
CLEAR = "DELETE FROM records WHERE kind = $1"

SPEND = (
    "INSERT INTO spending (month, tenant, nano_usd) VALUES ($1, $2, $3)"
    " ON CONFLICT (month, tenant) DO UPDATE SET nano_usd = spending.nano_usd + excluded.nano_usd"
)
BOOK = (
    "INSERT INTO bookings (booker, number, month) VALUES ($1, $2, $3)"
    " ON CONFLICT (booker) DO UPDATE SET number = excluded.number, month = excluded.month"
    " WHERE bookings.number < excluded.number RETURNING number"
)
"""Returns nothing for a booking that was stored before."""
FORGET_BOOKERS = "DELETE FROM bookings WHERE month < $1"
SPENT = "SELECT tenant, nano_usd FROM spending WHERE month = $1"

_INSERT = "INSERT INTO records (kind, name, refers_to, provider, body, version) VALUES ($1, $2, $3, $4, $5, {version})"
PUT_BACK = _INSERT.format(version="$6")
CREATE = _INSERT.format(version="1") + " ON CONFLICT (kind, name) DO NOTHING RETURNING version"
UPSERT = (
    _INSERT.format(version="1")
    + " ON CONFLICT (kind, name) DO UPDATE SET version = records.version + 1, refers_to = excluded.refers_to,"
    + " provider = excluded.provider, body = excluded.body RETURNING version"
)
REPLACE = (
    "UPDATE records SET version = version + 1, refers_to = $3, provider = $4, body = $5"
    " WHERE kind = $1 AND name = $2 AND version = $6 RETURNING version"
)


def values(row: Row) -> tuple[Any, ...]:
    """The parameters $1 to $5 of a row that is to be written."""
    refers_to = None if row.provider is None else Kind.PROVIDER.value
    return row.kind.value, row.name, refers_to, row.provider, row.body


def write(row: Row, expected: int | None) -> tuple[str, tuple[Any, ...]]:
    """The statement that stores a row, and its parameters. It returns the new version, or nothing when overtaken."""
    if expected is None:
        return UPSERT, values(row)
    if expected == 0:
        return CREATE, values(row)
    return REPLACE, (*values(row), expected)


def book(booking: Booking) -> tuple[Any, ...]:
    """The parameters of BOOK."""
    return booking.booker, booking.number, booking.month


def month_before(month: str) -> str:
    """Whoever booked last before that one will not try again."""
    year, place = map(int, month.split("-"))
    return f"{year - (place == 1):04}-{(place - 2) % 12 + 1:02}"


def in_order(rows: Iterable[Row]) -> list[Row]:
    """The rows in an order in which they can be put back: none before what it refers to."""
    return sorted(rows, key=lambda row: list(Kind).index(row.kind))


def rows_of(found: Iterable[Sequence[Any]]) -> list[Row]:
    """The rows by name, in an order that no database's language changes."""
    return sorted((row_of(each) for each in found), key=lambda row: row.name)


def row_of(found: Sequence[Any]) -> Row:
    """A row as READ and ROWS select it."""
    return Row(Kind(found[0]), found[1], bytes(found[4]), found[3], found[2])
