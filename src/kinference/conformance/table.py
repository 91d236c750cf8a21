"""Results for people: a table of clauses, and below it what failed and what was skipped."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kinference.conformance.case import Case
from kinference.conformance.clauses import CLAUSES, Clause
from kinference.conformance.reporting import count
from kinference.conformance.runner import Result, Verdict

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
    totals = ", ".join(f"{count(results, verdict)} {verdict.value}" for verdict in Verdict)
    console.print(f"{len(results)} cases: {totals}")


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
