"""Results of equal cells put together over their seeds, and the columns that tables show."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from kinference.sim.cluster.grid import Cell, Result
from kinference.sim.cluster.summary import Summary


@dataclass(frozen=True, slots=True)
class Place:
    """Where policies compete: everything of a cell but the policy and the seed."""

    workload: str
    scenario: str
    endpoints: int
    load: float

    def __str__(self) -> str:
        return f"{self.workload}, {self.scenario}, {self.endpoints} endpoints at {self.load:.0%} load"


@dataclass(frozen=True, slots=True)
class Line:
    """One policy at one place, over all seeds."""

    policy: str
    summaries: Sequence[Summary]

    def mean(self, value: Callable[[Summary], float]) -> float:
        """A value on the average of the seeds."""
        return fmean(value(one) for one in self.summaries)

    def spread(self, value: Callable[[Summary], float]) -> tuple[float, float]:
        """Its least and its greatest value."""
        values = [value(one) for one in self.summaries]
        return min(values), max(values)


@dataclass(frozen=True, slots=True)
class Column:
    """One figure: its head, how to get it, how to write it, and whether more is better."""

    head: str
    value: Callable[[Summary], float]
    form: str
    more_is_better: bool = False


COLUMNS = (
    Column("TTFT mean s", lambda one: one.ttft_s_mean, ".2f"),
    Column("p50", lambda one: one.ttft_s_p50, ".2f"),
    Column("p99", lambda one: one.ttft_s_p99, ".2f"),
    Column("slow-down p50", lambda one: one.slowdown_p50, ".2f"),
    Column("p90", lambda one: one.slowdown_p90, ".1f"),
    Column("p99", lambda one: one.slowdown_p99, ".1f"),
    Column("gap ms p50", lambda one: one.gap_ms_p50, ".0f"),
    Column("p99", lambda one: one.gap_ms_p99, ".0f"),
    Column("goodput", lambda one: one.goodput, ".1%", more_is_better=True),
    Column("hits", lambda one: one.hit_rate, ".1%", more_is_better=True),
    Column("imbalance", lambda one: one.imbalance, ".2f"),
    Column("fairness", lambda one: one.fairness, ".2f", more_is_better=True),
    Column("failed", lambda one: one.failed, ".0f"),
)


def place_of(cell: Cell) -> Place:
    """The place of a cell."""
    return Place(cell.traffic.name, cell.scenario, cell.endpoints, cell.load)


def put_together(results: Iterable[Result], order: Sequence[Cell]) -> dict[Place, list[Line]]:
    """The results in the order of the cells, whatever order they came in."""
    found: dict[tuple[Place, str], dict[int, Summary]] = defaultdict(dict)
    for result in results:
        found[place_of(result.cell), result.cell.policy][result.cell.seed] = result.summary
    table: dict[Place, list[Line]] = {}
    for place, policy in dict.fromkeys((place_of(cell), cell.policy) for cell in order):
        by_seed = found[place, policy]
        table.setdefault(place, []).append(Line(policy, [by_seed[seed] for seed in sorted(by_seed)]))
    return table
