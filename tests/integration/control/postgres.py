"""A PostgreSQL server of the test's own, from the system's package, on a Unix socket in a temporary folder."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest


def binaries() -> Path:
    """Where the newest installed server is. Without one the test is skipped, but never where CI runs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    message = "needs Debian's package `postgresql`"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


@dataclass(frozen=True)
class Server:
    """A server that can be stopped and started."""

    folder: Path
    bin: Path

    @property
    def address(self) -> str:
        return f"postgresql://kinference@/postgres?host={self.folder}"

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories={self.folder}"
        self._run("pg_ctl", "-D", "data", "-w", "-l", "log", "-o", options, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", "data", "-w", "-m", "immediate", "stop")

    def _run(self, program: str, *arguments: str) -> None:
        """As another user where we are root: the server refuses to run as root."""
        command = [str(self.bin / program), *arguments]
        user = "postgres" if os.getuid() == 0 else None
        subprocess.run(command, cwd=self.folder, user=user, check=True, capture_output=True, timeout=60)

    def create(self) -> None:
        self._run(
            "initdb",
            "-D",
            "data",
            "-U",
            "kinference",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
            "--no-instructions",
        )


@contextmanager
def server() -> Iterator[Server]:
    where = binaries()
    with tempfile.TemporaryDirectory(prefix="kinference-pg-") as folder:
        if os.getuid() == 0:
            subprocess.run(["chown", "postgres", folder], check=True)
        running = Server(Path(folder), where)
        running.create()
        running.start()
        try:
            yield running
        finally:
            running.stop()
