"""Real `kinference` processes for black-box tests: started by the command line, known by what they print."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

PROGRAM = Path(sys.executable).with_name("kinference")
PATIENCE_S = 90.0
FREE_PORTS = {f"KINFERENCE_LISTEN_{plane}": "127.0.0.1:0" for plane in ("PICKER", "GATEWAY", "ADMIN")}


class Process:
    """One process whose output can be waited for."""

    def __init__(self, *arguments: str, env: Mapping[str, str] | None = None) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("KINFERENCE_")}
        self.popen = subprocess.Popen(
            [PROGRAM, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=clean | dict(env or {}),
            text=True,
        )
        self.output: list[str] = []
        self._lines: Queue[str] = Queue()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            self._lines.put(line)

    def wait_for(self, pattern: str) -> re.Match[str]:
        """The first line of output, from where the last wait ended, that matches."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            try:
                line = self._lines.get(timeout=0.1)
            except Empty:
                if self.popen.poll() is not None and self._lines.empty() and not self._reader.is_alive():
                    break
                continue
            self.output.append(line)
            if match := re.search(pattern, line):
                return match
        raise AssertionError(f"no line matches {pattern!r} in:\n{''.join(self.output)}")

    def finish(self) -> tuple[int, str]:
        """Exit code and everything that it printed."""
        code = self.popen.wait(timeout=PATIENCE_S)
        self._reader.join(timeout=PATIENCE_S)
        while not self._lines.empty():
            self.output.append(self._lines.get_nowait())
        return code, "".join(self.output)

    def stop(self) -> None:
        """End it, whatever it is doing."""
        if self.popen.poll() is None:
            self.popen.kill()
        self.finish()
        assert self.popen.stdout is not None
        self.popen.stdout.close()


@contextmanager
def process(*arguments: str, env: Mapping[str, str] | None = None) -> Iterator[Process]:
    """A process that does not outlive the block."""
    running = Process(*arguments, env=env)
    try:
        yield running
    finally:
        running.stop()


def run(*arguments: str, env: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Run a command to its end: exit code and output."""
    with process(*arguments, env=env) as running:
        return running.finish()


@contextmanager
def engine(*flags: str, model: str = "demo") -> Iterator[str]:
    """A simulated engine; yields its URL."""
    with process("sim", "--port", "0", "--model", model, *flags) as running:
        yield running.wait_for(r"(http://127\.0\.0\.1:\d+)")[1]


@dataclass(frozen=True)
class Served:
    """A running `kinference serve`."""

    process: Process
    picker: int
    gateway: int
    admin: int

    @property
    def gateway_url(self) -> str:
        return f"http://127.0.0.1:{self.gateway}"

    @property
    def admin_url(self) -> str:
        return f"http://127.0.0.1:{self.admin}"


@contextmanager
def serve(folder: Path, *flags: str, env: Mapping[str, str] | None = None) -> Iterator[Served]:
    """All planes on free ports."""
    ports_file = folder / "ports.json"
    ports_file.unlink(missing_ok=True)
    with process("serve", "--ports-file", str(ports_file), *flags, env=FREE_PORTS | dict(env or {})) as running:
        running.wait_for(r"^kinference: ready")
        yield Served(running, **json.loads(ports_file.read_text()))
