"""Kills a writer again and again while it writes, and looks each time for what it had acknowledged.

A process of its own, because it forks: `python killed_writer.py FILE KILLS SEED`. Prints what it found at the end.
"""

import asyncio
import os
import signal
import sqlite3
import struct
import sys
import time
from pathlib import Path
from random import Random

from kinference.control.store.base import Kind, Row
from kinference.control.store.sqlite import SqliteStore

ACKNOWLEDGED = struct.Struct("<QQ")
"""Which of the names, and its version."""
NAMES = 4


async def write_for_ever(path: Path, pipe: int) -> None:
    store = SqliteStore(path)
    turn = 0
    while True:
        name = turn % NAMES
        version = await store.write(Row(Kind.PROVIDER, f"p{name}", b"x" * (turn * 977 % 9000)))
        os.write(pipe, ACKNOWLEDGED.pack(name, version))
        turn += 1


def killed_after(path: Path, seconds: float) -> dict[int, int]:
    """Run a writer, kill it, and return the versions that it had acknowledged by then."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        asyncio.run(write_for_ever(path, writer))
        os._exit(1)
    os.close(writer)
    first = os.read(reader, ACKNOWLEDGED.size)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    told = first
    while more := os.read(reader, 65536):
        told += more
    os.close(reader)
    return dict(ACKNOWLEDGED.iter_unpack(told[: len(told) // ACKNOWLEDGED.size * ACKNOWLEDGED.size]))


def stored(path: Path) -> dict[int, int]:
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    found = connection.execute("SELECT substr(name, 2), version FROM records").fetchall()
    connection.close()
    return {int(name): version for name, version in found}


def main(path: Path, kills: int, seed: int) -> None:
    random = Random(seed)
    acknowledged: dict[int, int] = {}
    for turn in range(kills):
        acknowledged |= killed_after(path, random.uniform(0, 0.02))
        kept = stored(path)
        lost = {name: version for name, version in acknowledged.items() if kept.get(name, 0) < version}
        ahead = {name for name, version in kept.items() if version > acknowledged.get(name, 0) + 1}
        assert not lost, f"kill {turn}: acknowledged and lost: {lost}"
        assert not ahead, f"kill {turn}: written twice: {ahead}"
        acknowledged |= kept
    sys.stdout.write(f"{kills} kills, {sum(acknowledged.values())} writes, none lost\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
