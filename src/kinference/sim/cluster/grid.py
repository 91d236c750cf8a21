"""Many runs at once: every policy against every load, fleet and seed, each run in a process of its own."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random

from msgspec.structs import replace

from kinference.sim.cluster.demand import at_load
from kinference.sim.cluster.job import Arrival
from kinference.sim.cluster.run import ClusterRun
from kinference.sim.cluster.scenarios import SCENARIOS
from kinference.sim.cluster.summary import Summary, summarize
from kinference.sim.trace import read_trace
from kinference.sim.workloads.catalogue import WORKLOADS

RATE_PER_ENGINE = 1.5
"""Requests a second and engine while a workload is drawn; the load then stretches the whole."""

SHIFT = 5.0
"""Of the mean time between two requests."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Which requests: a workload by its name, or a trace, and at most how many."""

    workload: str = ""
    trace: Path | None = None
    requests: int = 10_000

    @property
    def name(self) -> str:
        """What tables call it."""
        return self.trace.stem if self.trace is not None else self.workload


@dataclass(frozen=True, slots=True)
class Cell:
    """One run."""

    traffic: Traffic
    scenario: str
    endpoints: int
    load: float
    policy: str
    seed: int


@dataclass(frozen=True, slots=True)
class Result:
    """What a run came to."""

    cell: Cell
    summary: Summary


def run_grid(cells: Sequence[Cell], jobs: int) -> Iterator[Result]:
    """Every run's result, as they end."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(run_cell, cell) for cell in cells]):
            yield future.result()


def run_cell(cell: Cell) -> Result:
    """One run. The same cell gives the same result, whatever ran before it."""
    scenario = SCENARIOS[cell.scenario]
    engines = scenario.engines(cell.endpoints)
    arrivals = at_load(_drawn(cell.traffic, cell.endpoints, cell.seed), engines, cell.load)
    options = scenario.fleet(cell.endpoints, arrivals[-1].at, cell.policy, cell.seed)
    return Result(cell, summarize(ClusterRun(options).play(arrivals), engines))


def _drawn(traffic: Traffic, endpoints: int, seed: int) -> list[Arrival]:
    if traffic.trace is None:
        return WORKLOADS[traffic.workload](Random(seed), traffic.requests, RATE_PER_ENGINE * endpoints)
    return _shifted(read_trace(traffic.trace, traffic.requests), Random(seed))


def _shifted(arrivals: list[Arrival], rng: Random) -> list[Arrival]:
    """A trace under another seed: each request a little earlier or later, or every seed would be the same."""
    spread_s = SHIFT * (arrivals[-1].at - arrivals[0].at) / len(arrivals)
    return sorted(
        (replace(arrival, at=arrival.at + rng.random() * spread_s) for arrival in arrivals),
        key=lambda arrival: arrival.at,
    )
