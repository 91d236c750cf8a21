"""What compiling gains: one decision, requests through the gateway, and requests of a simulation.

Measurements of the sources and of the compiled build alternate, so that the machine's drift falls on both alike.

    make native
    .venv/bin/python bench/native.py
"""

import argparse
import subprocess
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from itertools import product
from pathlib import Path

import uvloop
from gateway import LOADS, cpu_seconds, engine, gateway, measure  # type: ignore[import-not-found] # the script beside this one

from kinference.sim.workloads.catalogue import WORKLOADS

ROOT = Path(__file__).parents[1]
BUILDS = {"sources": Path(sys.executable).parent, "compiled": ROOT / ".native/bin"}
SIMULATION = """
import sys, time
from kinference.sim.cluster.grid import Cell, Traffic, run_cell
cell = Cell(Traffic(sys.argv[1], None, 5_000), "steady", int(sys.argv[2]), 0.8, "expected_latency", 1)
began = time.process_time()
run_cell(cell)
print((time.process_time() - began) / 5_000 * 1e6)
"""


def report(what: str, times: dict[str, list[float]]) -> None:
    """The least in microseconds, which other work disturbs least, and how many times as fast the compiled build is."""
    sources, compiled = (min(times[build]) for build in BUILDS)
    print(f"{what:>40} {sources:>10.1f} {compiled:>10.1f} {sources / compiled:>8.2f}", flush=True)


def decision(programs: Path, endpoints: int, tokens: int) -> float:
    """The tenth percentile, in microseconds."""
    script = [str(programs / "python"), str(ROOT / "bench/decide.py")]
    command = [*script, f"--endpoints={endpoints}", f"--prompt-tokens={tokens}"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(printed.splitlines()[-1].split()[1])


def simulated_request(programs: Path, workload: str, endpoints: int) -> float:
    """Microseconds of CPU a request of a run costs, with what draws it and what sums the run up."""
    command = [str(programs / "python"), "-c", SIMULATION, workload, str(endpoints)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def alternate(rounds: int, once: Callable[[Path], float]) -> dict[str, list[float]]:
    """What each build took, in turn."""
    times: dict[str, list[float]] = {build: [] for build in BUILDS}
    for _ in range(rounds):
        for build, programs in BUILDS.items():
            times[build].append(once(programs))
    return times


async def through_the_gateway(rounds: int, seconds: float) -> None:
    """CPU time of the gateway's process for each request, 32 at a time."""
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(engine())
        gateways = {
            build: await stack.enter_async_context(gateway("own", port, programs)) for build, programs in BUILDS.items()
        }
        for one in gateways.values():
            await measure(one.port, LOADS[0], 8, 1.0)
        for load in LOADS:
            times: dict[str, list[float]] = {build: [] for build in BUILDS}
            for _ in range(rounds):
                for build, one in gateways.items():
                    before = cpu_seconds(one.pid)
                    answered = await measure(one.port, load, 32, seconds)
                    times[build].append((cpu_seconds(one.pid) - before) / len(answered) * 1e6)
            report(f"gateway, {load.name}", times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="of each measurement; the least of each is printed")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of one measurement of the gateway")
    args = parser.parse_args()
    print(f"{'us':>40} {'sources':>10} {'compiled':>10} {'ratio':>8}")
    for endpoints, tokens in ((8, 256), (8, 8_192), (64, 256), (64, 8_192)):
        times = alternate(args.rounds, partial(decision, endpoints=endpoints, tokens=tokens))
        report(f"decision, {endpoints} endpoints, {tokens} tokens", times)
    for workload, endpoints in product(WORKLOADS, (4, 16, 64)):
        times = alternate(args.rounds, partial(simulated_request, workload=workload, endpoints=endpoints))
        report(f"simulated request, {workload}, {endpoints}", times)
    uvloop.run(through_the_gateway(args.rounds, args.seconds))


if __name__ == "__main__":
    main()
