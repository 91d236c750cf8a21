"""Each source file has its test file and somebody who uses it."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from tests.arch.source import ROOT, Module, imports, parsed, report, source_modules

UNIT = ROOT / "tests/unit"

DECLARATIONS = {
    "ids.py": "names and units, no behaviour",
    "vocabulary.py": "enumerations, held against the contract by tests/conformance",
    "errors.py": "exception classes, tested where they are raised and translated",
    "ports.py": "Protocols and the values that cross them",
    "control/errors.py": "exception classes, tested where they are raised and translated",
    "control/store/base.py": "a Protocol and its row",
    "fleet/discovery/source.py": "a Protocol and its failure",
    "core/request.py": "what routing knows of a request, fields only",
    "shapes/ir.py": "a request's values, read and written by each API's own module",
    "shapes/answers.py": "an answer's values, likewise",
    "shapes/dialects.py": "Protocols of what each API brings to translation",
    "conformance/cases/abort.py": "cases, held against our server and against its mutants by tests/conformance",
    "conformance/cases/access.py": "cases, held against our server and against its mutants by tests/conformance",
    "conformance/cases/budget.py": "cases, held against our server and against its mutants by tests/conformance",
    "conformance/cases/flow.py": "cases, held against our server and against its mutants by tests/conformance",
    "conformance/cases/length.py": "cases, held against our server and against its mutants by tests/conformance",
    "conformance/cases/pick.py": "cases, held against our server and against its mutants by tests/conformance",
    "conformance/cases/pull.py": "cases, held against our server and against its mutants by tests/conformance",
    "conformance/cases/push.py": "cases, held against our server and against its mutants by tests/conformance",
    "conformance/cases/report.py": "cases, held against our server and against its mutants by tests/conformance",
    "wire/http2/events.py": "values, tested by the connection that makes them",
    "wire/exchange.py": "a Protocol; the functions beside it are tested with the carrier",
    "wire/rpc.py": "a Protocol, tested with the carrier",
    "wire/server_options.py": "limits, fields only; tested with the carriers that keep them",
}
"""Files without a test file of their own, each with the reason."""

OTHER_USERS = ("docs/generate.py", "docs/measure_unseen.py")
"""Scripts of the repository that are part of the product's making, and of its proof."""


def untested(modules: Iterable[Module], tests: set[str]) -> Iterator[str]:
    for module in modules:
        test = unit_test_of(module.path)
        if PurePosixPath(module.path).name in {"__init__.py", "__main__.py"}:
            continue
        if module.path in DECLARATIONS:
            if test in tests:
                yield f"{module.path}: has its test file and stands in DECLARATIONS all the same; take it out there"
        elif test not in tests:
            yield f"{module.path}: no tests/unit/{test}; each file is tested by one of its own name"


def unit_test_of(path: str) -> str:
    """The test file of a source file, both relative."""
    file = PurePosixPath(path)
    return str(file.with_name(f"test_{file.name}"))


def orphans(modules: Iterable[Module], tests: set[str]) -> Iterator[str]:
    for test in sorted(tests - {unit_test_of(module.path) for module in modules}):
        yield f"tests/unit/{test}: tests no file of that name; rename it, or move it to another kind of test"


def unused(modules: Sequence[Module], others: Iterable[Module] = ()) -> Iterator[str]:
    used: set[str] = set()
    for module in (*modules, *others):
        for _, name in imports(module.tree):
            used |= {name, name.rpartition(".")[0]} - {module.name}
    for module in modules:
        if PurePosixPath(module.path).name not in {"__init__.py", "__main__.py"} and module.name not in used:
            yield f"{module.path}: nothing imports it; delete it, or let runtime/ use it"


def unit_tests() -> set[str]:
    return {file.relative_to(UNIT).as_posix() for file in UNIT.rglob("test_*.py")}


def test_every_file_has_its_unit_test() -> None:
    findings = list(untested(source_modules(), unit_tests()))
    assert not findings, report(findings)


def test_every_unit_test_has_its_file() -> None:
    findings = list(orphans(source_modules(), unit_tests()))
    assert not findings, report(findings)


def test_every_file_is_used() -> None:
    others = [parsed((ROOT / path).read_text(), path) for path in OTHER_USERS]
    findings = list(unused(source_modules(), others))
    assert not findings, report(findings)


def test_every_declaration_still_exists() -> None:
    assert {module.path for module in source_modules()} >= DECLARATIONS.keys()


def test_test_folders_are_no_packages() -> None:
    assert list((ROOT / "tests").rglob("__init__.py")) == []


def test_a_file_without_a_test_is_found() -> None:
    (finding,) = untested([parsed("x = 1", "core/pick.py"), parsed("", "core/__init__.py")], set())
    assert "no tests/unit/core/test_pick.py" in finding
    assert list(untested([parsed("x = 1", "core/pick.py")], {"core/test_pick.py"})) == []


def test_a_declaration_that_has_a_test_after_all_is_found() -> None:
    assert len(list(untested([parsed("", "ids.py")], {"test_ids.py"}))) == 1


def test_a_test_without_a_file_is_found() -> None:
    assert len(list(orphans([parsed("", "core/pick.py")], {"core/test_pick.py", "core/test_gone.py"}))) == 1


def test_a_file_that_nothing_imports_is_found() -> None:
    modules = [
        parsed("from kinference.core import fleet\nfrom kinference.ids import Seconds", "cli/__init__.py"),
        parsed("x = 1", "core/fleet.py"),
        parsed("Seconds = float", "ids.py"),
        parsed("from kinference.core import dead", "core/dead.py"),
    ]
    assert [finding.split(":")[0] for finding in unused(modules)] == ["core/dead.py"]
