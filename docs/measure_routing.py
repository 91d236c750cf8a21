"""Measures the tables and the plot of docs/explanation/routing.md anew: the goal's whole grid, or a part with --quick.

Every run's figures are kept as they come, so that `--resume` goes on where a run was stopped, and `--kept` writes the
page from those seeds of each fleet that are whole; the figures of other code than the present one are to be deleted
first.
"""  # noqa: INP001 - a script, no package

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import msgspec
from rich.progress import Progress

from kinference.sim.cluster.grid import Cell, Result, Traffic, run_grid
from kinference.sim.cluster.plot import curves
from kinference.sim.cluster.report import best
from kinference.sim.cluster.run import CLAIRVOYANT
from kinference.sim.cluster.table import COLUMNS, Column, Line, Place, put_together

PAGE = Path(__file__).parent / "explanation/routing.md"
PLOT = PAGE.with_suffix(".svg")
KEPT = Path(__file__).parent.parent / "build/routing.jsonl"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
OURS = "expected_latency"
RIVALS = ("llmd_sticky", "llmd_weighted", "lmetric", "preble", "mooncake", "dynamo", "sglang_cache_aware", "aibrix")
"""Those that look at caches and load; the others are far behind wherever prompts share anything."""
WORKLOADS = ("chats", "agents", "documents", "tenants")
BEHIND, AHEAD_TTFT, AHEAD_GOODPUT, OF_BOUND = 1.03, 0.7, 1.15, 1.15
"""What the goal asks for: see the page."""
BUSY, MODERATE = 0.95, 0.8
LARGE = 16
"""Fleets of more engines take by far the longest: they come last."""
FIRST_SEED = 21
"""Of those that nothing was chosen by."""
PLOTTED = Place("tenants", "steady", 16, 0.95)


@dataclass(frozen=True, slots=True)
class Grid:
    """What is run."""

    fleets: tuple[int, ...]
    loads: tuple[float, ...]
    seeds: int
    requests: int
    """In a run on few engines; large fleets get more."""
    requests_per_endpoint: int = 50

    def cells(self) -> list[Cell]:
        """Every run. Of the clairvoyant's those that the page shows."""
        grid = product(WORKLOADS, self.fleets, self.loads, (OURS, *RIVALS, CLAIRVOYANT), range(self.seeds))
        return [
            Cell(Traffic(workload, requests=self.size(fleet)), "steady", fleet, load, policy, FIRST_SEED + seed)
            for workload, fleet, load, policy, seed in grid
            if policy != CLAIRVOYANT or load in (MODERATE, PLOTTED.load)
        ]

    def size(self, fleet: int) -> int:
        """Requests of a run on so many engines."""
        return max(self.requests, self.requests_per_endpoint * fleet)


FULL = Grid((4, 16, 64), (0.5, 0.8, 0.95, 1.1, 1.5), seeds=5, requests=1_200)
QUICK = Grid((4, 16), (0.8, 0.95, 1.1, 1.5), seeds=1, requests=800)
JUDGED = {
    "TTFT mean": COLUMNS[0],
    "TTFT p99": COLUMNS[2],
    "slow-down p50": COLUMNS[3],
    "slow-down p90": COLUMNS[4],
    "slow-down p99": COLUMNS[5],
    "gap p99": COLUMNS[7],
    "goodput": COLUMNS[8],
}


def main() -> None:
    """Run the grid and put its tables between the marks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small fleets, few requests, one seed: some minutes")
    parser.add_argument("--resume", action="store_true", help=f"keep what {KEPT.name} holds of an earlier run")
    parser.add_argument("--kept", action="store_true", help="run nothing: write the page from what is kept")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    grid = QUICK if args.quick else FULL
    found = list(results(grid.cells(), Run(args.jobs, resume=args.resume or args.kept, is_done=args.kept)))
    cells = whole(grid, found)
    wanted = set(cells)
    table = put_together([result for result in found if result.cell in wanted], cells)
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{described(grid, cells)}\n\n{measured(table)}\n{END}{after}", encoding="utf-8")
    plotted = {line.policy: line.summaries[0].ttft_s_curve for line in table[PLOTTED]}
    shown = (OURS, "llmd_sticky", "lmetric", "dynamo", "sglang_cache_aware", CLAIRVOYANT)
    PLOT.write_text(curves("time to first token, s", {name: plotted[name] for name in shown}) + "\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Run:
    """How the grid is run."""

    jobs: int
    resume: bool
    """Keep what an earlier run has left."""
    is_done: bool
    """There is no more to come."""


def results(cells: Sequence[Cell], run: Run) -> Iterator[Result]:
    """Every run's result: those that are kept, then the others as they end, seed by seed, large fleets last."""
    kept: dict[Cell, Result] = {}
    if run.resume and KEPT.exists():
        lines = KEPT.read_bytes().splitlines()
        kept = {one.cell: one for one in (msgspec.json.decode(line, type=Result) for line in lines)}
    else:
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_bytes(b"")
    yield from (kept[cell] for cell in cells if cell in kept)
    if run.is_done:
        return
    left = sorted(
        (cell for cell in cells if cell not in kept),
        key=lambda cell: (cell.endpoints > LARGE, cell.seed, -cell.endpoints),
    )
    with KEPT.open("ab", buffering=0) as file, Progress() as progress:
        for result in progress.track(run_grid(left, run.jobs), total=len(left), description="runs"):
            file.write(msgspec.json.encode(result) + b"\n")
            yield result


def whole(grid: Grid, found: Sequence[Result]) -> list[Cell]:
    """The runs of those seeds of each fleet of which none is missing."""
    there, cells = {result.cell for result in found}, grid.cells()
    missing = {(cell.endpoints, cell.seed) for cell in cells if cell not in there}
    return [cell for cell in cells if (cell.endpoints, cell.seed) not in missing]


def described(grid: Grid, cells: Sequence[Cell]) -> str:
    """What was run, in a sentence."""
    seeds = {fleet: len({cell.seed for cell in cells if cell.endpoints == fleet}) for fleet in grid.fleets}
    runs = ", ".join(
        f"{grid.size(fleet):,} on {fleet} engines ({count} seed{'s' if count > 1 else ''})"
        for fleet, count in seeds.items()
        if count
    )
    spread = "; averages, with the least and the greatest in brackets" if max(seeds.values()) > 1 else ""
    return f"Requests in a run: {runs}{spread}."


def goal(table: Mapping[Place, Sequence[Line]]) -> list[str]:
    """How much of the goal is reached."""
    ttft, p99, goodput = JUDGED["TTFT mean"], JUDGED["TTFT p99"], JUDGED["goodput"]
    asked = [column for head, column in JUDGED.items() if column not in (ttft, p99)]
    near = ahead = more = bound = busy = moderate = 0
    for place, lines in table.items():
        (ours,), rivals = (
            [line for line in lines if line.policy == OURS],
            [one for one in lines if one.policy in RIVALS],
        )
        near += sum(ratio(column, ours, rivals) <= BEHIND for column in asked)
        if place.load >= BUSY:
            busy += 1
            ahead += ratio(ttft, ours, rivals) <= AHEAD_TTFT and ratio(p99, ours, rivals) <= 1.0
            more += ratio(goodput, ours, rivals) <= 1.0 / AHEAD_GOODPUT
        if place.load == MODERATE:
            moderate += 1
            bound += ratio(ttft, ours, [line for line in lines if line.policy == CLAIRVOYANT]) <= OF_BOUND
    return [
        "| goal | reached |",
        "|---|---|",
        (
            "| slow-down p50, p90, p99, gap p99 and goodput at most 3% behind the best other | "
            f"{near} of {len(asked) * len(table)} |"
        ),
        f"| from 95% on: mean TTFT at least 30% lower, p99 no worse | {ahead} of {busy} places |",
        f"| from 95% on: at least 15% more goodput | {more} of {busy} places |",
        f"| at 80%: mean TTFT within 15% of the clairvoyant | {bound} of {moderate} places |",
    ]


def measured(table: Mapping[Place, Sequence[Line]]) -> str:
    """How often we are ahead, and every cell: ours, the best of all others by that figure, and whose it is."""
    heads = " | ".join(JUDGED)
    rows = [f"| workload, endpoints, load | {heads} |", "|---|" + "---|" * len(JUDGED)]
    standing = {head: [0, 0, 0] for head in JUDGED}
    for place, lines in table.items():
        (ours,) = (line for line in lines if line.policy == OURS)
        rivals = [line for line in lines if line.policy in RIVALS]
        cells = []
        for head, column in JUDGED.items():
            behind = ratio(column, ours, rivals)
            verdict = 0 if behind < 1.0 else 1 if behind <= BEHIND else 2
            standing[head][verdict] += 1
            top = best(column, rivals)
            whose = next(line.policy for line in rivals if line.mean(column.value) == top)
            text = f"{_shown(column, ours)} / {top:{column.form}} {whose}"
            cells.append(f"**{text}**" if verdict == 0 else text if verdict == 1 else f"{text} (-)")
        rows.append(f"| {place.workload}, {place.endpoints}, {place.load:.0%} | {' | '.join(cells)} |")
    totals = ["| figure | ahead | within 3% | behind |", "|---|---|---|---|"]
    totals += [f"| {head} | {ahead} | {near} | {behind} |" for head, (ahead, near, behind) in standing.items()]
    return "\n".join([*goal(table), "", *totals, "", *rows, ""])


def _shown(column: Column, line: Line) -> str:
    value = f"{line.mean(column.value):{column.form}}"
    if len(line.summaries) == 1:
        return value
    least, most = line.spread(column.value)
    return f"{value} ({least:{column.form}} to {most:{column.form}})"


def ratio(column: Column, ours: Line, rivals: Sequence[Line]) -> float:
    """Ours over the best of the others by this figure; over 1 is behind, also where more is better."""
    mine, top = ours.mean(column.value), best(column, rivals)
    return (top + 1e-9) / (mine + 1e-9) if column.more_is_better else (mine + 1e-9) / (top + 1e-9)


if __name__ == "__main__":
    main()
