"""Results for people: a table of clauses, and below it what failed and what was skipped."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kinference.conformance.case import Case
from kinference.conformance.clauses import CLAUSES, Clause
from kinference.conformance.reporting import count
from kinference.conformance.runner import Result, Verdict

SHARED_BY_LEAST = 3
"""Failures that have to say the same before it counts as the one cause of them."""

STYLES = {Verdict.PASSED: "green", Verdict.FAILED: "bold red", Verdict.SKIPPED: "yellow"}


def print_cases(console: Console, cases: Sequence[Case]) -> None:
    """What there is, with what each case needs."""
    for case in cases:
        needs = f"  needs {' and '.join(need.text for need in case.needs)}" if case.needs else ""
        console.print(f"{' '.join(case.clauses):4} {case.name}{needs}", soft_wrap=True, markup=False, highlight=False)


def print_results(console: Console, results: Sequence[Result]) -> None:
    """The whole report."""
    console.print(_clause_table(results))
    failed = [result for result in results if result.verdict is Verdict.FAILED]
    for result in failed:
        console.print(
            f"[bold red]failed[/] {result.case.name} ({' '.join(result.case.clauses)}): {escape(result.detail)}"
        )
    for lacking, names in _skipped(results):
        console.print(f"[yellow]skipped[/], {escape(lacking)}: {', '.join(names)}")
    if cause := shared_cause([result.detail for result in failed]):
        console.print(f"[bold red]one cause of most that failed[/]: {escape(cause)}")
    totals = ", ".join(f"{count(results, verdict)} {verdict.value}" for verdict in Verdict)
    console.print(f"{len(results)} cases: {totals}")


def shared_cause(details: Sequence[str]) -> str:
    """What more than half of the failures come to, in the longest words that they share; "" where they share none. Who
    names a model that is not served, or no token, has not thirty failures but one.
    """
    counted = Counter(ending for detail in details for ending in _endings(detail))
    shared = [ending for ending, times in counted.items() if times >= SHARED_BY_LEAST and 2 * times > len(details)]
    return max(shared, key=len, default="")


def _endings(detail: str) -> Iterator[str]:
    """It, and what is left of it behind each colon: what a server says comes behind what was expected of it."""
    rest, colon = detail, ": "
    while colon:
        yield rest
        _, colon, rest = rest.partition(": ")


def clause_verdict(results: Sequence[Result], clause: Clause) -> Verdict | None:
    """A clause fails with any of its cases, and passes with any that ran; None where no case of it was chosen."""
    verdicts = {result.verdict for result in results if clause.number in result.case.clauses}
    for verdict in (Verdict.FAILED, Verdict.PASSED, Verdict.SKIPPED):
        if verdict in verdicts:
            return verdict
    return None


def _clause_table(results: Sequence[Result]) -> Table:
    table = Table("", "", "verdict", "clause", box=None)
    for clause in CLAUSES.values():
        verdict = clause_verdict(results, clause)
        if verdict is not None:
            shown = f"[{STYLES[verdict]}]{verdict.value}[/]"
            table.add_row(clause.number, clause.strength.value, shown, escape(clause.text))
    return table


def _skipped(results: Sequence[Result]) -> Iterator[tuple[str, list[str]]]:
    names = defaultdict(list)
    for result in results:
        if result.verdict is Verdict.SKIPPED:
            names[result.detail].append(result.case.name)
    yield from sorted(names.items())
