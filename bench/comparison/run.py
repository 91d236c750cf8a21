"""Compares the gateway and the picker with what others offer, in one interleaved run, and writes the page about it.

    bench/comparison/install.sh .bench && .venv/bin/python bench/comparison/run.py --rivals .bench --quick

Every router has one core for itself; the engine and the load, both in C, share the other, so that neither is the
bottleneck and both see every router alike. What is compared is the CPU time of a request, over the whole process
tree, and its latency when requests come at a steady rate. Rounds go from router to router, so that what else the
machine does falls on all. The slow ones take every third round. `--quick` takes some
six minutes.
"""

import argparse
import datetime as dt
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from urllib.request import urlopen

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import page  # type: ignore[import-not-found] # noqa: E402 - a script beside this one
import pickers  # type: ignore[import-not-found] # noqa: E402 - as above
from routers import Router, Running, builds, cpu_seconds, free_port, resident_mb, rivals, running  # type: ignore[import-not-found] # noqa: E402 - as above

SLOW_CONNECTIONS_MAX = 8
RATE, SLOW_RATE = 300, 20


@dataclass(frozen=True)
class Load:
    """One kind of request, from so many connections at once."""

    name: str
    size: int
    connections: int = 64
    events: int = 0

    def body(self) -> bytes:
        """Three quarters of the prompt are the same in all, then an id of its own, then the rest."""
        prompt = "x" * (self.size * 3 // 4) + "@" * 16 + "y" * (self.size // 4)
        asked: dict[str, object] = {"model": "bench"}
        if self.events:
            asked |= {"stream": True, "max_tokens": self.events}
        return json.dumps(asked | {"messages": [{"role": "user", "content": prompt}]}, separators=(",", ":")).encode()


LOADS = (
    Load("1 KB", 1000),
    Load("16 KB", 16_000),
    Load("256 KB", 256_000),
    Load("1 MiB", 2**20),
    Load("50 events", 1000, events=50),
    Load("500 events", 1000, events=500),
    Load("1 KB, 1 connection", 1000, 1),
    Load("1 KB, 8 connections", 1000, 8),
    Load("1 KB, 1,024 connections", 1000, 1024),
)


@dataclass(frozen=True)
class Asker:
    """Starts the load, on a core that no router has."""

    wire: Path
    folder: Path
    core: int
    engine: int

    def ask(self, router: Router, port: int, load: Load, seconds: float, rate: float = 0) -> dict[str, float]:
        body, headers = self.folder / "body", self.folder / "headers"
        body.write_bytes(load.body())
        headers.write_text(router.headers.format(engine=self.engine), newline="")
        connections = min(load.connections, SLOW_CONNECTIONS_MAX) if router.is_slow else load.connections
        command = ["taskset", "-c", str(self.core), str(self.wire), "load", str(port), str(body), str(headers)]
        command += [str(connections), str(seconds), *([str(rate)] if rate else [])]
        told: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        return told | {"connections": connections}


def compiled(folder: Path) -> Path:
    program = folder / "wire"
    subprocess.run(["gcc", "-O2", "-o", str(program), str(HERE / "wire.c")], check=True)
    return program


@contextmanager
def engine(wire: Path, core: int) -> Iterator[int]:
    port = free_port()
    process = subprocess.Popen(["taskset", "-c", str(core), str(wire), "engine", str(port)])
    try:
        time.sleep(0.2)
        yield port
    finally:
        process.kill()
        process.wait()


def one_round(asker: Asker, one: Running, load: Load, seconds: float) -> dict[str, float]:
    before = cpu_seconds(one.pid)
    told = asker.ask(one.router, one.port, load, seconds)
    spent = max(cpu_seconds(one.pid) - before, 0.01)
    return told | {"per_cpu_s": told["done"] / spent, "per_s": told["done"] / told["seconds"]}


def compare(options: argparse.Namespace, folder: Path) -> dict[str, object]:
    cores = sorted(os.sched_getaffinity(0))
    wire = compiled(folder)
    rounds, seconds, open_seconds = (3, 0.5, 2.0) if options.quick else (7, 1.5, 10.0)
    with ExitStack() as stack:
        engine_port = stack.enter_context(engine(wire, cores[0]))
        asker = Asker(wire, folder, cores[0], engine_port)
        chosen = [*builds(), *(rivals(options.rivals) if options.rivals else ())]
        up = [stack.enter_context(running(router, engine_port, folder, cores[-1])) for router in chosen]
        for one in up:
            asker.ask(one.router, one.port, LOADS[0], 0.5)
        memory = {one.router.name: {"idle_mb": resident_mb(one.pid)} for one in up}
        rows = [row for load in LOADS for row in measured(asker, up, load, rounds, seconds)]
        paced = [row for one in up for row in at_a_rate(asker, one, open_seconds)]
        for one in up:
            memory[one.router.name]["after_mb"] = resident_mb(one.pid)
        lag = lag_of(up[0].admin)
    return {"routers": rows, "paced": paced, "memory": memory, "lag": lag, "rounds": rounds, "seconds": seconds}


def measured(asker: Asker, up: list[Running], load: Load, rounds: int, seconds: float) -> Iterator[dict[str, object]]:
    """Every router in turn, round after round."""
    told: dict[str, list[dict[str, float]]] = {one.router.name: [] for one in up}
    for number in range(rounds):
        for one in up:
            if not (one.router.is_slow and number % 3):
                told[one.router.name].append(one_round(asker, one, load, seconds))
    for name, figures in told.items():
        columns = {key: [figure[key] for figure in figures] for key in figures[0]}
        row: dict[str, object] = {"load": load.name, "router": name, **columns}
        print(f"{load.name:>24} {name:>28} {median(columns['per_cpu_s']):>10,.0f} a CPU-second", flush=True)
        yield row


def at_a_rate(asker: Asker, one: Running, seconds: float) -> Iterator[dict[str, object]]:
    rate = SLOW_RATE if one.router.is_slow else RATE
    for load in (LOADS[0], LOADS[4]):
        told = asker.ask(one.router, one.port, load, seconds, rate)
        yield {"load": load.name, "router": one.router.name, "rate": rate, **told}


def lag_of(admin: int) -> list[tuple[float, int]]:
    """The histogram of how late our event loop was: upper bounds in seconds, and how often at most that."""
    with urlopen(f"http://127.0.0.1:{admin}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    buckets = [line for line in lines if line.startswith("kinference_event_loop_lag_seconds_bucket")]
    return [(float(line.split('le="')[1].split('"')[0]), int(float(line.split()[-1]))) for line in buckets]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rivals", type=Path, help="the folder of install.sh; without it, only what is there anyway")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--json", type=Path, default=HERE / "results.json", help="where the figures go")
    options = parser.parse_args()
    if options.rivals:
        options.rivals = options.rivals.resolve()
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        figures = compare(options, Path(name))
    figures["pickers"] = pickers.compare(options.rivals, quick=options.quick)
    figures["taken"] = f"{dt.datetime.now(dt.UTC):%Y-%m-%d}"
    figures["python"], figures["load_average"] = platform.python_version(), load_before
    options.json.write_text(json.dumps(figures, indent=1) + "\n")
    page.write(options.json)


if __name__ == "__main__":
    main()
