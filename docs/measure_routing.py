"""Measures the tables and the plot of docs/explanation/routing.md anew; takes some minutes on all cores."""  # noqa: INP001 - a script, no package

import os
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

from kinference.sim.cluster.grid import Cell, Traffic, run_grid
from kinference.sim.cluster.plot import curves
from kinference.sim.cluster.report import best
from kinference.sim.cluster.run import CLAIRVOYANT
from kinference.sim.cluster.table import COLUMNS, Column, Line, Place, put_together

PAGE = Path(__file__).parent / "explanation/routing.md"
PLOT = PAGE.with_suffix(".svg")
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
OURS = "expected_latency"
RIVALS = ("llmd_sticky", "llmd_weighted", "lmetric", "preble", "mooncake", "dynamo", "sglang_cache_aware", "aibrix")
"""Those that look at caches and load; the others are far behind wherever prompts share anything."""
WORKLOADS = ("chats", "agents", "documents", "tenants")
FLEETS, LOADS, SEEDS, REQUESTS = (4, 16), (0.5, 0.8, 0.95, 1.2), (1,), 1_500
BEHIND = 1.03
PLOTTED = Place("tenants", "steady", 16, 0.95)
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
    cells = [
        Cell(Traffic(workload, requests=REQUESTS), "steady", fleet, load, policy, seed)
        for workload, fleet, load, policy, seed in product(
            WORKLOADS, FLEETS, LOADS, (OURS, *RIVALS, CLAIRVOYANT), SEEDS
        )
    ]
    table = put_together(run_grid(cells, os.cpu_count() or 1), cells)
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{measured(table)}\n{END}{after}", encoding="utf-8")
    plotted = {line.policy: line.summaries[0].ttft_s_curve for line in table[PLOTTED]}
    shown = (OURS, "llmd_sticky", "lmetric", "dynamo", "sglang_cache_aware", CLAIRVOYANT)
    PLOT.write_text(curves("time to first token, s", {name: plotted[name] for name in shown}) + "\n", encoding="utf-8")


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
            verdict = _verdict(column, ours, rivals)
            standing[head][verdict] += 1
            value = ours.mean(column.value)
            top = best(column, rivals)
            whose = next(line.policy for line in rivals if line.mean(column.value) == top)
            text = f"{value:{column.form}} / {top:{column.form}} {whose}"
            cells.append(f"**{text}**" if verdict == 0 else text if verdict == 1 else f"{text} (-)")
        rows.append(f"| {place.workload}, {place.endpoints}, {place.load:.0%} | {' | '.join(cells)} |")
    totals = ["| figure | ahead | within 3% | behind |", "|---|---|---|---|"]
    totals += [f"| {head} | {ahead} | {near} | {behind} |" for head, (ahead, near, behind) in standing.items()]
    return "\n".join([*totals, "", *rows, ""])


def _verdict(column: Column, ours: Line, rivals: Sequence[Line]) -> int:
    """0 ahead of the best rival of this cell and figure, 1 within three per cent of it, 2 behind."""
    mine, top = ours.mean(column.value), best(column, rivals)
    ratio = (top + 1e-9) / (mine + 1e-9) if column.more_is_better else (mine + 1e-9) / (top + 1e-9)
    return 0 if ratio < 1.0 else 1 if ratio <= BEHIND else 2


if __name__ == "__main__":
    main()
