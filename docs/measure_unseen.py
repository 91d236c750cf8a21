"""Measures policies on workloads and fleets drawn from wide ranges by a number, that nothing was chosen by.

Prints ours over the best other, figure by figure, for each draw and in sum. Those from TRAINING on are there to choose
by; the page's are the first ones. Virtual time does not notice what else the machine does. With `--resume` what an
earlier run left is kept, and is to be deleted when the code has changed.
"""  # noqa: INP001 - a script, no package

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from math import exp, log
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean

import msgspec
from rich.progress import Progress

from kinference.sim.cluster.run import ClusterRun
from kinference.sim.cluster.summary import Summary, summarize
from kinference.sim.cluster.table import COLUMNS, Column
from kinference.sim.workloads.drawn import draw

PAGE = Path(__file__).parent / "explanation/routing.md"
BEGIN, END = "<!-- unseen: begin -->", "<!-- unseen: end -->"
KEPT = Path(__file__).parent.parent / "build/unseen.jsonl"
OURS = "expected_latency"
RIVALS = ("llmd_sticky", "llmd_weighted", "lmetric", "preble", "mooncake", "dynamo", "sglang_cache_aware", "aibrix")
TRAINING = 1_001
"""Draws from this number on are for choosing."""
DRAWS, QUICK_DRAWS = 200, 60
JUDGED = {
    "TTFT mean": COLUMNS[0],
    "TTFT p99": COLUMNS[2],
    "slow-down p99": COLUMNS[5],
    "gap p99": COLUMNS[7],
}
GOODPUT, FAILED = COLUMNS[8], COLUMNS[12]
NEAR, FAR = 1.03, 1.25
WORST = 10
"""So many draws are named in which the mean is furthest behind."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One policy on one draw."""

    number: int
    policy: str
    summary: Summary


def main() -> None:
    """Run the draws, print how each went, and put the sum between the page's marks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_DRAWS} draws of {DRAWS}: some ten minutes")
    parser.add_argument("--training", action="store_true", help=f"the draws from {TRAINING} on; the page is left alone")
    parser.add_argument("--resume", action="store_true", help=f"keep what {KEPT.name} holds of an earlier run")
    parser.add_argument("--only", default="", help="these policies alone, divided by commas")
    parser.add_argument("--kept", type=Path, default=KEPT, help="where each run's figures go")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    first = TRAINING if args.training else 1
    numbers = range(first, first + (QUICK_DRAWS if args.quick else DRAWS))
    policies = tuple(args.only.split(",")) if args.only else (OURS, *RIVALS)
    table: dict[int, dict[str, Summary]] = {number: {} for number in numbers}
    for ran in results([(number, policy) for number in numbers for policy in policies], args):
        table[ran.number][ran.policy] = ran.summary
    if set(policies) < {OURS, *RIVALS}:
        return
    for number, summaries in table.items():
        show(line(number, summaries))
    told = in_sum(table)
    show(told)
    if not (args.quick or args.training):
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n\n{told}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")


def show(text: str) -> None:
    """To whoever runs it."""
    sys.stdout.write(f"{text}\n")


def results(wanted: Sequence[tuple[int, str]], args: argparse.Namespace) -> Iterator[Ran]:
    """Every run: those that are kept, then the others as they end."""
    kept: dict[tuple[int, str], Ran] = {}
    args.kept.parent.mkdir(exist_ok=True)
    if args.resume and args.kept.exists():
        lines = args.kept.read_bytes().splitlines()
        kept = {(one.number, one.policy): one for one in (msgspec.json.decode(text, type=Ran) for text in lines)}
    else:
        args.kept.write_bytes(b"")
    yield from (kept[one] for one in wanted if one in kept)
    left = [one for one in wanted if one not in kept]
    with (
        ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool,
        args.kept.open("ab", buffering=0) as file,
        Progress() as progress,
    ):
        futures = [pool.submit(run, number, policy) for number, policy in left]
        for future in progress.track(as_completed(futures), total=len(futures), description="runs"):
            file.write(msgspec.json.encode(future.result()) + b"\n")
            yield future.result()


def run(number: int, policy: str) -> Ran:
    """One policy on one draw: the same whatever ran before it."""
    drawn = draw(number)
    arrivals = drawn.arrivals()
    played = ClusterRun(drawn.fleet(policy, arrivals[-1].at)).play(arrivals)
    return Ran(number, policy, summarize(played, drawn.engines))


def ratio(column: Column, summaries: Mapping[str, Summary]) -> float:
    """Ours over the best other by this figure."""
    return _over(column.value(summaries[OURS]), min(column.value(summaries[rival]) for rival in RIVALS))


def _over(ours: float, other: float) -> float:
    return (ours + 1e-3) / (other + 1e-3)


def more_good(summaries: Mapping[str, Summary]) -> float:
    """Our goodput less the best other's."""
    return GOODPUT.value(summaries[OURS]) - max(GOODPUT.value(summaries[rival]) for rival in RIVALS)


def line(number: int, summaries: Mapping[str, Summary]) -> str:
    """One draw: each figure of ours, and over the best other's."""
    figures = [
        f"{head} {column.value(summaries[OURS]):{column.form}} ({ratio(column, summaries):.2f})"
        for head, column in JUDGED.items()
    ]
    good = f"goodput {GOODPUT.value(summaries[OURS]):.0%} ({more_good(summaries):+.0%})"
    failed = [FAILED.value(summaries[policy]) for policy in (OURS, *RIVALS)]
    return f"{draw(number)}: {', '.join(figures)}, {good}, failed {failed[0]:.0f} (others from {min(failed[1:]):.0f})"


def in_sum(table: Mapping[int, Mapping[str, Summary]]) -> str:
    """How often we are ahead and by how much, against the best other of each draw and against each of them."""
    rows = [
        f"{len(table)} draws. Ours over the best other of each draw and figure, geometric mean and how often:",
        "",
        "| figure | over the best other | ahead | within 3% | behind | by more than 25% |",
        "|---|---|---|---|---|---|",
    ]
    for head, column in JUDGED.items():
        ratios = [ratio(column, summaries) for summaries in table.values()]
        rows.append(f"| {head} | {_mean(ratios):.2f} | {_counted(ratios)} | {sum(one > FAR for one in ratios)} |")
    good = [more_good(summaries) for summaries in table.values()]
    counted = _counted([1.0 - one for one in good])
    rows.append(f"| goodput | {fmean(good) * 100:+.1f} points | {counted} | {sum(one < 1.0 - FAR for one in good)} |")
    heads = " | ".join(JUDGED)
    rows += ["", "Ours over each of the others, over all draws:", "", f"| policy | {heads} | goodput, points more |"]
    rows.append("|---|" + "---|" * (len(JUDGED) + 1))
    for rival in RIVALS:
        over = [
            _mean([_over(column.value(one[OURS]), column.value(one[rival])) for one in table.values()])
            for column in JUDGED.values()
        ]
        more = fmean(GOODPUT.value(one[OURS]) - GOODPUT.value(one[rival]) for one in table.values())
        rows.append(f"| `{rival}` | {' | '.join(f'{one:.2f}' for one in over)} | {more * 100:+.1f} |")
    mean = JUDGED["TTFT mean"]
    worst = sorted(table.items(), key=lambda item: -ratio(mean, item[1]))[:WORST]
    rows += ["", "Where the mean is furthest behind:", ""]
    rows += [f"- {draw(number)}: {ratio(mean, summaries):.2f}" for number, summaries in worst]
    return "\n".join(rows)


def _mean(ratios: Sequence[float]) -> float:
    return exp(fmean(map(log, ratios)))


def _counted(ratios: Sequence[float]) -> str:
    ahead, near = sum(one < 1.0 for one in ratios), sum(1.0 <= one <= NEAR for one in ratios)
    return f"{ahead} | {near} | {len(ratios) - ahead - near}"


if __name__ == "__main__":
    main()
