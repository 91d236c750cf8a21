"""Our own source as the architecture tests read it: parsed, never imported."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import TypeAlias

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src/kinference"
GENERATED = "wire/proto/"

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Module:
    """One file of the package; `path` is relative to it, as in `core/pick.py`."""

    path: str
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        """The dotted name, `kinference.core.pick`."""
        return ".".join(("kinference", *self.path.removesuffix(".py").removesuffix("/__init__").split("/")))

    @property
    def part(self) -> str:
        """The package or file directly under `kinference` that it belongs to."""
        return self.path.split("/")[0].removesuffix(".py")

    def line(self, node: ast.stmt | ast.expr | ast.excepthandler) -> str:
        return self.text.splitlines()[node.lineno - 1]

    def at(self, node: ast.stmt | ast.expr | ast.excepthandler, what: str) -> str:
        """A finding as a test prints it."""
        return f"{self.path}:{node.lineno}: {what}"


def parsed(text: str, path: str = "core/example.py") -> Module:
    """A module out of a snippet, for the tests of the checkers."""
    text = dedent(text)
    return Module(path, text, ast.parse(text))


@cache
def source_modules() -> tuple[Module, ...]:
    """Every file of the package, generated ones left out."""
    files = {file.relative_to(PACKAGE).as_posix(): file for file in sorted(PACKAGE.rglob("*.py"))}
    return tuple(parsed(file.read_text(), path) for path, file in files.items() if not path.startswith(GENERATED))


def functions(tree: ast.AST) -> Iterator[FunctionNode]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def imports(tree: ast.AST) -> Iterator[tuple[ast.Import | ast.ImportFrom, str]]:
    """Each import with the dotted names it may bring in: `from a import b` yields `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name
        elif isinstance(node, ast.ImportFrom):
            prefix = "." * node.level + (node.module or "")
            for alias in node.names:
                yield node, f"{prefix}.{alias.name}"


def report(findings: Iterable[str]) -> str:
    """Findings, one a line, for the message of a failed assertion."""
    return "\n  ".join(["", *findings])
