from pathlib import Path

import pytest

from kinference.control.errors import StoreFailed
from kinference.control.store.backup import dumped, parsed
from kinference.control.store.base import Kind, Row
from kinference.control.store.sqlite import SqliteStore

ROWS = [Row(Kind.PROVIDER, "p", b"\x00\xff{}", None, 3), Row(Kind.ROUTE, "r\n", b"[]", "p", 7)]


def with_versions(*versions: int) -> bytes:
    lines = [f'{{"kind": "provider", "name": "p", "body": "e30=", "version": {version}}}\n' for version in versions]
    return (f'{{"format": "kinference-store-1", "rows": {len(versions)}}}\n' + "".join(lines)).encode()


async def test_what_was_dumped_is_parsed_again(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "control.db")
    await store.load(ROWS)
    content = await dumped(store)
    await store.close()
    assert parsed(content) == ROWS
    assert content.count(b"\n") == 3


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "not a backup"),
        (b"hello", "not a backup"),
        (b'{"format": "other-9", "rows": 0}\n', "format 'other-9' cannot be read"),
        (b'{"format": "kinference-store-1", "rows": 2}\n', "0 records of 2: it was cut off"),
        (b'{"format": "kinference-store-1", "rows": 1}\n{"kind": "other"}\n', "not a backup"),
        (with_versions(1, 1), "two records of one name"),
        (with_versions(0), "version cannot be one"),
        (with_versions(-1), "version cannot be one"),
        (with_versions(2**63), "version cannot be one"),
        (with_versions(10**30), "version cannot be one|not a backup"),
    ],
)
def test_what_is_no_whole_backup_is_refused(content: bytes, problem: str) -> None:
    with pytest.raises(StoreFailed, match=problem):
        parsed(content)
