"""Requests a CPU-second of this gateway and of the routers in Rust, in interleaved rounds before the same engine.

The rivals are wheels with a binary inside. They belong into an environment of their own, which this script is told:

    python -m venv rivals && rivals/bin/pip install sglang-router vllm-router setproctitle
    .venv/bin/python bench/rivals.py --rivals rivals/bin --rounds 5

Without rivals it compares our own carriers. Each router may use one core, which no other part of the benchmark uses;
engine and load share the other. The load is the bottleneck before a fast router, so it is CPU time a request, over the
whole process, that is compared. Every round asks each router in turn, and the median over the rounds is printed: ratios
carry over to other machines, absolute figures do not.
"""

import argparse
import asyncio
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import uvloop
from gateway import LOADS, Load, cpu_seconds, engine, measure, quantile  # type: ignore[import-not-found] # the script beside this one

PATIENCE_S = 60.0


@dataclass(frozen=True)
class Router:
    """A running router."""

    name: str
    port: int
    pid: int


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def commands(rivals: Path | None, engine_url: str) -> dict[str, list[str]]:
    """How each router is started; `PORT` and `OTHER` stand for free ports."""
    common = ["--host", "127.0.0.1", "--port", "PORT", "--prometheus-port", "OTHER", "--worker-urls", engine_url]
    common += ["--log-level", "error"]
    own = [str(Path(sys.executable).with_name("kinference")), "serve", "--log-level", "warning", "--engine", engine_url]
    ours = {f"kinference {wire}": [*own, "--wire", wire] for wire in ("own", "grpcio")}
    if rivals is None:
        return ours
    sglang, vllm = str(rivals / "sglang-router"), str(rivals / "vllm-router")
    return ours | {
        "sglang cache-aware": [sglang, "launch", *common, "--policy", "cache_aware"],
        "vllm round robin": [vllm, *common, "--policy", "round_robin"],
        "vllm cache-aware": [vllm, *common, "--policy", "cache_aware"],
    }


@asynccontextmanager
async def running(name: str, command: list[str], log: Path) -> AsyncIterator[Router]:
    """A router on the last core, once it answers."""
    port, other = free_port(), free_port()
    listen = {"GATEWAY": port, "PICKER": 0, "ADMIN": 0}
    environment = {f"KINFERENCE_LISTEN_{plane}": f"127.0.0.1:{number}" for plane, number in listen.items()}
    arguments = [{"PORT": str(port), "OTHER": str(other)}.get(argument, argument) for argument in command]
    cores = sorted(os.sched_getaffinity(0))
    with log.open("wb") as output:
        process = subprocess.Popen(arguments, env=os.environ | environment, stdout=output, stderr=output)
    os.sched_setaffinity(process.pid, cores[-1:])
    try:
        await answers(port, process, log)
        yield Router(name, port, process.pid)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


async def answers(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a request is served."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"{process.args!r} did not start:\n{log.read_text()[-2000:]}")
        try:
            await measure(port, LOADS[0], 1, 0.2)
        except (SystemExit, OSError, asyncio.IncompleteReadError):
            await asyncio.sleep(0.2)
        else:
            return


@dataclass(frozen=True)
class Figures:
    """One round of one router."""

    per_cpu_s: float
    per_s: float
    p50_ms: float


async def one_round(router: Router, load: Load, connections: int, seconds: float) -> Figures:
    alone = await measure(router.port, load, 1, seconds / 2)
    before, began = cpu_seconds(router.pid), time.perf_counter()
    many = await measure(router.port, load, connections, seconds)
    spent, lasted = cpu_seconds(router.pid) - before, time.perf_counter() - began
    return Figures(len(many) / spent, len(many) / lasted, quantile(alone, 0.5) * 1e3)


async def compare(args: argparse.Namespace) -> None:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        engine_port = await stack.enter_async_context(engine())
        starting = commands(args.rivals, f"http://127.0.0.1:{engine_port}")
        routers = [
            await stack.enter_async_context(running(name, command, folder / f"{number}.log"))
            for number, (name, command) in enumerate(starting.items())
        ]
        print(f"{'request':>16} {'router':>20} {'req/CPU-s':>10} {'spread':>15} {'req/s':>8} {'p50 ms at 1':>12}")
        told = []
        for load in LOADS:
            rounds: dict[str, list[Figures]] = {router.name: [] for router in routers}
            for _ in range(args.rounds):
                for router in routers:
                    rounds[router.name].append(await one_round(router, load, args.connections, args.seconds))
            for name, figures in rounds.items():
                told.append(row(load.name, name, figures))
                print(told[-1].line, flush=True)
        if args.json:
            args.json.write_text(json.dumps([one.value for one in told], indent=1) + "\n")


@dataclass(frozen=True)
class Row:
    line: str
    value: dict[str, object]


def row(load: str, name: str, figures: list[Figures]) -> Row:
    per_cpu = sorted(figure.per_cpu_s for figure in figures)
    middle = statistics.median(per_cpu)
    rate = statistics.median(figure.per_s for figure in figures)
    p50 = statistics.median(figure.p50_ms for figure in figures)
    spread = f"{per_cpu[0]:,.0f}-{per_cpu[-1]:,.0f}"
    value: dict[str, object] = {"load": load, "router": name, "per_cpu_s": per_cpu, "per_s": rate, "p50_ms": p50}
    return Row(f"{load:>16} {name:>20} {middle:>10,.0f} {spread:>15} {rate:>8,.0f} {p50:>12.3f}", value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rivals", type=Path, help="folder of the rivals' programs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="length of one measurement")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--json", type=Path, help="write every round's figures there")
    uvloop.run(compare(parser.parse_args()))


if __name__ == "__main__":
    main()
