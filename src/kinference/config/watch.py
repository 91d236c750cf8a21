"""Reload: notice that the file has changed, and take the new one only if it holds together."""

import asyncio
import dataclasses
import hashlib
import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from pathlib import Path

from kinference.config.load import FILE_BYTES_MAX, advice, load
from kinference.config.problems import InvalidConfig
from kinference.config.schema import Config
from kinference.config.values import Secret

POLL_SECONDS = 1.0
SETTLING = 0.2
"""Part of the time between two looks after which a changed file is looked at again."""

_log = logging.getLogger(__name__)


class Reloader:
    """Holds the configuration in force, and what it was loaded from. Blocking: call it on a thread."""

    def __init__(self, path: Path, environ: Mapping[str, str], current: Config) -> None:
        self._path = path
        self._environ = environ
        self.current = current
        self._secret_files = tuple(secret_files(current))
        self.loaded = self.fingerprint(path)
        """Of what `current` was made of, so that a change between then and the first look at the file is one too."""

    def reload(self) -> Config | None:
        """The new configuration; None when nothing differs, or when it is bad: then the old one stays in force."""
        try:
            fresh = load(self._path, self._environ)
        except InvalidConfig as error:
            for problem in error.problems:
                _log.error("configuration not taken over, the old one stays: %s", problem)
            return None
        for line in advice(fresh, self._environ):
            _log.warning("configuration: %s", line)
        if fresh == self.current:
            return None
        self.current, self._secret_files = fresh, tuple(secret_files(fresh))
        return fresh

    def fingerprint(self, path: Path) -> bytes | None:
        """Of the file and of every file that a secret in force was read from: what `watch_file` is to compare."""
        found = [_fingerprint(each) for each in (path, *self._secret_files)]
        return None if None in found else b"".join(each or b"" for each in found)


def secret_files(value: object) -> Iterator[Path]:
    """The files that the secrets of a configuration, or of a part of one, were read from."""
    if isinstance(value, Secret):
        if value.file is not None:
            yield value.file
    elif isinstance(value, tuple):
        for item in value:
            yield from secret_files(item)
    elif dataclasses.is_dataclass(value):
        for each in dataclasses.fields(value):
            yield from secret_files(getattr(value, each.name))


def _fingerprint(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            return hashlib.blake2b(file.read(FILE_BYTES_MAX + 1)).digest()
    except OSError:
        return None


async def watch_file(
    path: Path,
    poll_seconds: float = POLL_SECONDS,
    look: Callable[[Path], bytes | None] = _fingerprint,
    known: bytes | None = None,
) -> AsyncGenerator[None]:
    """One item for each change of the file's content, from what is `known` of it on: else from the first look.

    It compares content and not the file's times, and opens the path anew each time, so it sees the symbolic links that
    Kubernetes swaps, a rename over the file, and two edits within one tick of the file system's clock. A file that is
    away for a moment has not changed, and one that is being written has only when two looks in a row see the same.
    """
    seen = last = known or await asyncio.to_thread(look, path)
    while True:
        await asyncio.sleep(poll_seconds if last == seen else poll_seconds * SETTLING)
        now = await asyncio.to_thread(look, path)
        if now is not None and now == last != seen:
            seen = now
            yield
        last = now or seen
