"""`kinference simulate`: routing policies compared on a simulated fleet, in virtual time."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from textwrap import fill

from rich.box import SIMPLE
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from kinference.cli.arguments import Verbs, at_least_one, positive
from kinference.core.policies import POLICIES
from kinference.sim.cluster.grid import Cell, Result, Traffic, run_grid
from kinference.sim.cluster.report import best, html_report, json_report
from kinference.sim.cluster.run import CLAIRVOYANT
from kinference.sim.cluster.scenarios import SCENARIOS
from kinference.sim.cluster.table import COLUMNS, Line, Place, put_together
from kinference.sim.trace import read_trace
from kinference.sim.workloads.catalogue import WORKLOADS

KNOWN = (*POLICIES, CLAIRVOYANT)
WIDTH_MIN = 152
"""What the table needs; a narrower terminal wraps its lines."""
EXAMPLE = """\
examples:
  kinference simulate
  kinference simulate --policy expected_latency,lmetric,llmd_sticky --workload chats,agents --load 0.8,0.95 --seeds 5
  kinference simulate --policy all --trace mooncake.jsonl --endpoints 4,16 --html report.html
  kinference simulate --trace AzureLLMInferenceTrace_conv.csv   times and token counts: no prefixes, so no cache hits
"""


def add(verbs: Verbs) -> None:
    """Declare the verb and its flags."""
    parser = verbs.add_parser(
        "simulate",
        help="compare routing policies on a simulated fleet",
        description="Runs the decision core against simulated engines in virtual time: the same seed gives the same\n"
        "requests and the same figures. Lists are separated by commas; every combination is run.",
        epilog=EXAMPLE + "\n" + _known(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--policy",
        type=_names(KNOWN),
        default=["expected_latency", "llmd_sticky", "lmetric", "least_request", CLAIRVOYANT],
        metavar="NAMES",
        help="policies, or `all`",
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--workload",
        type=_names(tuple(WORKLOADS)),
        default=["chats"],
        metavar="NAMES",
        help="what is asked, or `all`; default chats",
    )
    source.add_argument("--trace", type=Path, metavar="FILE", help="requests to replay: Mooncake, Azure or BurstGPT")
    parser.add_argument(
        "--scenario",
        type=_names(tuple(SCENARIOS)),
        default=["steady"],
        metavar="NAMES",
        help="what happens to the fleet, or `all`; default steady",
    )
    parser.add_argument("--endpoints", type=_each(at_least_one), default=[8], metavar="N", help="default 8")
    parser.add_argument(
        "--load", type=_each(positive), default=[0.8], metavar="X", help="share of capacity, default 0.8"
    )
    parser.add_argument("--seeds", type=at_least_one, default=1, metavar="N", help="runs of each, default 1")
    parser.add_argument("--requests", type=at_least_one, default=10_000, metavar="N", help="in a run, default 10000")
    parser.add_argument("--jobs", type=at_least_one, default=os.cpu_count(), metavar="N", help="default: all cores")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a report with plots, one file")
    parser.add_argument("--json", action="store_true", help="print every seed's figures as JSON instead of tables")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the grid, and show it."""
    if args.trace:
        read_trace(args.trace, args.requests)  # what is wrong with it is said once, and not by every process
    cells = list(_cells(args))
    table = put_together(_watched(cells, args.jobs), cells)
    if args.html:
        args.html.write_text(html_report(table), encoding="utf-8")
    if args.json:
        sys.stdout.buffer.write(json_report(table))
    else:
        console = Console(width=max(WIDTH_MIN, Console().width))
        for place, lines in table.items():
            console.print(_shown(place, lines))
    return 0


def _cells(args: argparse.Namespace) -> Iterator[Cell]:
    traffics = [Traffic(name, args.trace, args.requests) for name in ([""] if args.trace else args.workload)]
    seeds = range(1, args.seeds + 1)
    for cell in product(traffics, args.scenario, args.endpoints, args.load, args.policy, seeds):
        yield Cell(*cell)


def _watched(cells: Sequence[Cell], jobs: int) -> Iterator[Result]:
    """The results, with a bar on stderr while a person watches."""
    with Progress(console=Console(stderr=True), transient=True) as progress:
        yield from progress.track(run_grid(cells, jobs), total=len(cells), description="runs")


def _shown(place: Place, lines: Sequence[Line]) -> Table:
    table = Table(title=str(place), title_justify="left", box=SIMPLE)
    table.add_column("policy", no_wrap=True)
    for column in COLUMNS:
        table.add_column(column.head, justify="right")
    for line in lines:
        values = [format(line.mean(column.value), column.form) for column in COLUMNS]
        bests = [format(best(column, lines), column.form) for column in COLUMNS]
        marked = [f"[bold]{value}[/]" if value == one else value for value, one in zip(values, bests, strict=True)]
        table.add_row(line.policy, *marked)
    return table


def _names(known: Sequence[str]) -> Callable[[str], list[str]]:
    """A list of known names, or `all` of them."""

    def names(text: str) -> list[str]:
        if text == "all":
            return list(known)
        wanted = text.split(",")
        for name in wanted:
            if name not in known:
                raise argparse.ArgumentTypeError(f"no {name!r}; choose from {', '.join(known)}, or all")
        return wanted

    return names


def _each(kind: Callable[[str], float]) -> Callable[[str], list[float]]:
    """A list of numbers."""

    def each(text: str) -> list[float]:
        return [kind(part) for part in text.split(",")]

    return each


def _known() -> str:
    workloads = "\n".join(f"  {name:<16}{kind.__doc__}" for name, kind in WORKLOADS.items())
    scenarios = "\n".join(f"  {name:<16}{scenario.help}" for name, scenario in SCENARIOS.items())
    policies = fill(", ".join(KNOWN), 110, initial_indent="  ", subsequent_indent="  ")
    return f"policies:\n{policies}\n\nworkloads:\n{workloads}\n\nscenarios:\n{scenarios}\n"
