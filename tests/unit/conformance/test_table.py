from io import StringIO

from rich.console import Console

from kinference.conformance.case import Case, Probe
from kinference.conformance.cases import CASES
from kinference.conformance.clauses import CLAUSES
from kinference.conformance.runner import Result, Verdict
from kinference.conformance.table import clause_verdict, print_cases, print_results, shared_cause


async def nothing(_probe: Probe) -> None: ...


def result(verdict: Verdict, detail: str = "", *clauses: str) -> Result:
    return Result(Case("group.name", clauses or ("P1",), (), nothing), verdict, detail)


def printed(results: list[Result]) -> str:
    console = Console(file=StringIO(), width=200)
    print_results(console, results)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_a_report_has_the_clauses_the_failures_and_the_totals() -> None:
    text = printed(
        [result(Verdict.PASSED), result(Verdict.FAILED, "no [/] luck", "K1"), result(Verdict.SKIPPED, "needs X")]
    )
    assert CLAUSES["P1"].text in text
    assert CLAUSES["K2"].text not in text
    assert "failed group.name (K1): no [/] luck" in text
    assert "skipped, needs X: group.name" in text
    assert "3 cases: 1 passed, 1 failed, 1 skipped" in text


def test_a_clause_is_as_bad_as_its_worst_case_that_ran() -> None:
    passed, failed, skipped = (result(verdict) for verdict in Verdict)
    clause = CLAUSES["P1"]
    assert clause_verdict([passed, failed, skipped], clause) is Verdict.FAILED
    assert clause_verdict([skipped, passed], clause) is Verdict.PASSED
    assert clause_verdict([skipped], clause) is Verdict.SKIPPED
    assert clause_verdict([passed], CLAUSES["K1"]) is None


def test_the_list_names_each_case_and_what_it_needs() -> None:
    console = Console(file=StringIO(), width=40)
    print_cases(console, CASES)
    assert isinstance(console.file, StringIO)
    lines = console.file.getvalue().splitlines()
    assert len(lines) == len(CASES)
    assert any(line.endswith("an-idle-push-exceeds-its-deadline  needs --push-idle under 10s") for line in lines)


def test_what_most_failures_come_to_is_said_once() -> None:
    why = "no worker for model 'x': 3 without the model"
    details = ["no destination", "later", f"no destination for model 'x': {why}", f"no answer: {why}", why]
    assert shared_cause(details) == why
    assert shared_cause(details[1:3]) == shared_cause([]) == ""
    text = printed([result(Verdict.FAILED, detail) for detail in details])
    assert f"one cause of most that failed: {why}" in text
    assert "one cause" not in printed([result(Verdict.FAILED, detail) for detail in details[:3]])
