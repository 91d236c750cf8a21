"""A package imports itself or a lower level, at the top of the file."""

import ast
from collections.abc import Iterator

import pytest

from tests.arch.source import Module, functions, imports, parsed, report, source_modules

LEVELS = (
    {"ids", "errors", "packed", "vocabulary", "structs"},
    {"core", "shapes", "ports"},
    {"config", "wire", "observe"},
    {"fleet"},
    {"picker", "control", "gateway", "sim", "conformance"},
    {"dashboard", "sandbox"},
    {"runtime"},
    {"demo"},
    {"cli"},
)
LEVEL_OF = {part: level for level, parts in enumerate(LEVELS) for part in parts}


def imports_against_the_levels(module: Module) -> Iterator[str]:
    own = LEVEL_OF.get(module.part)
    for node, name in imports(module.tree):
        if name.startswith("."):
            yield module.at(node, "a relative import; write the full name, so that the level can be seen")
        part = name.split(".")[1] if name.startswith("kinference.") else ""
        level = LEVEL_OF.get(part)
        if own is None or level is None or part == module.part:
            continue
        if level > own:
            yield module.at(
                node, f"{module.part} (level {own}) imports {part} (level {level}); take it as a constructor argument"
            )
        elif level == own > 0:
            yield module.at(
                node,
                f"{module.part} imports its sibling {part}; put what they share one level down, or join them above",
            )


def imports_inside_functions(module: Module) -> Iterator[str]:
    for function in functions(module.tree):
        for node in ast.walk(function):
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield module.at(
                    node, f"import inside {function.name}(); imports stand at the top, a cycle needs another cut"
                )


def test_every_import_obeys_the_levels() -> None:
    findings = [finding for module in source_modules() for finding in imports_against_the_levels(module)]
    assert not findings, report(findings)


def test_no_function_imports() -> None:
    findings = [finding for module in source_modules() for finding in imports_inside_functions(module)]
    assert not findings, report(findings)


def test_every_part_has_its_level() -> None:
    parts = {module.part for module in source_modules()} - {"__init__", "__main__"}
    assert parts <= LEVEL_OF.keys(), (
        f"add to LEVELS, to [tool.importlinter] and to CONTRIBUTING: {parts - LEVEL_OF.keys()}"
    )
    assert LEVEL_OF.keys() <= parts, f"named in LEVELS but not there: {LEVEL_OF.keys() - parts}"


@pytest.mark.parametrize(
    ("path", "line", "complaint"),
    [
        ("core/pick.py", "from kinference.picker.desk import Desk", "core (level 1) imports picker (level 4)"),
        ("core/pick.py", "import kinference.wire.rpc", "core (level 1) imports wire (level 2)"),
        ("core/pick.py", "from kinference import ports", "core imports its sibling ports"),
        ("gateway/relay.py", "from kinference.picker import desk", "gateway imports its sibling picker"),
        ("gateway/relay.py", "from . import errors", "relative import"),
        ("ids.py", "from kinference.core.fleet import Fleet", "ids (level 0) imports core"),
    ],
)
def test_an_import_up_or_sideways_is_found(path: str, line: str, complaint: str) -> None:
    (finding,) = imports_against_the_levels(parsed(line, path))
    assert complaint in finding


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("core/pick.py", "from kinference.core.fleet import Fleet"),
        ("gateway/relay.py", "from kinference import __version__"),
        ("errors.py", "from kinference.ids import Seconds"),
        ("cli/serve.py", "from kinference.runtime.service import serve"),
        ("core/pick.py", "from dataclasses import dataclass"),
    ],
)
def test_an_import_of_itself_or_of_a_lower_level_is_fine(path: str, line: str) -> None:
    assert list(imports_against_the_levels(parsed(line, path))) == []


def test_an_import_inside_a_function_is_found() -> None:
    (finding,) = imports_inside_functions(parsed("async def late():\n    import json\n"))
    assert finding.startswith("core/example.py:2: import inside late()")
