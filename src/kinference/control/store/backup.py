"""A store's rows as a text file: one JSON object a line, the same for every kind of store. Secrets stay sealed."""

from collections.abc import Iterable, Iterator

import msgspec

from kinference.control.errors import StoreFailed
from kinference.control.store.base import Kind, Row, Store

FORMAT = "kinference-store-1"
VERSION_MAX = 2**62
"""Far beyond any number of changes, and still half of what a database's integers hold."""


class Opening(msgspec.Struct, frozen=True):
    """The first line. The count tells a file that was cut off."""

    format: str
    rows: int


async def dumped(store: Store) -> bytes:
    """Everything that the store holds."""
    rows = [row for kind in Kind for row in await store.rows(kind)]
    return b"".join(msgspec.json.encode(each) + b"\n" for each in (Opening(FORMAT, len(rows)), *rows))


def parsed(content: bytes) -> list[Row]:
    """The rows of a backup. Raises StoreFailed for a file that is none, or not a whole one."""
    try:
        lines = iter(content.splitlines())
        opening = msgspec.json.decode(next(lines, b""), type=Opening)
        if opening.format != FORMAT:
            raise StoreFailed(f"a backup of format {opening.format[:40]!r} cannot be read, only {FORMAT}")
        rows = list(_rows(lines))
    except msgspec.DecodeError:
        raise StoreFailed("this is not a backup of kinference's store") from None
    if len(rows) != opening.rows:
        raise StoreFailed(f"the backup holds {len(rows)} records of {opening.rows}: it was cut off")
    if len({(row.kind, row.name) for row in rows}) < len(rows):
        raise StoreFailed("the backup holds two records of one name")
    if not all(0 < row.version <= VERSION_MAX for row in rows):
        raise StoreFailed("the backup holds a record whose version cannot be one")
    return rows


def _rows(lines: Iterable[bytes]) -> Iterator[Row]:
    return (msgspec.json.decode(line, type=Row) for line in lines)
