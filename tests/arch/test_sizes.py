"""Nothing grows until nobody can hold it in mind."""

import ast
from collections.abc import Iterator

from tests.arch.source import FunctionNode, Module, functions, parsed, report, source_modules

FILE_LINES = 500
FUNCTION_LINES = 70
COMPLEXITY = 15
NESTING = 4
PARAMETERS = 5

BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.comprehension, ast.match_case)
BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def oversized(module: Module) -> Iterator[str]:
    lines = module.text.count("\n")
    if lines > FILE_LINES:
        yield f"{module.path}: {lines} lines, {FILE_LINES} at most; it has more than one idea, give each a file"
    for function in functions(module.tree):
        yield from oversizes(module, function)


def oversizes(module: Module, function: FunctionNode) -> Iterator[str]:
    measures = (
        ("lines", lines_of(function), FUNCTION_LINES, "let it decide and leave the work to smaller ones"),
        ("of complexity", complexity(function), COMPLEXITY, "make a table of the cases, or a method of each"),
        ("levels of nesting", nesting(function.body), NESTING, "return early, or move the inner loop out"),
        ("parameters", parameters(function), PARAMETERS, "put what belongs together into one frozen dataclass"),
    )
    for what, measured, limit, remedy in measures:
        if measured > limit:
            yield module.at(function, f"{function.name}() has {measured} {what}, {limit} at most; {remedy}")


def lines_of(function: FunctionNode) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def complexity(function: FunctionNode) -> int:
    """McCabe, with conditional expressions and comprehensions: each place where the path divides."""
    return 1 + sum(isinstance(node, BRANCHES) for node in own_nodes(function))


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, SCOPES):
            yield child
            yield from own_nodes(child)


def nesting(body: list[ast.stmt]) -> int:
    return max((depth(statement) for statement in body), default=0)


def depth(statement: ast.stmt) -> int:
    if not isinstance(statement, BLOCKS):
        return 0
    inner = 1 + max((nesting(branch) for branch in branches(statement)), default=0)
    if isinstance(statement, ast.If) and is_elif(statement.orelse):
        return max(inner, depth(statement.orelse[0]))  # an elif stands beside its if, not inside it
    return inner


def is_elif(orelse: list[ast.stmt]) -> bool:
    return len(orelse) == 1 and isinstance(orelse[0], ast.If)


def branches(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    yield getattr(statement, "body", [])
    orelse = getattr(statement, "orelse", [])
    if not (isinstance(statement, ast.If) and is_elif(orelse)):
        yield orelse
    yield getattr(statement, "finalbody", [])
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def parameters(function: FunctionNode) -> int:
    named = [*function.args.posonlyargs, *function.args.args]
    if named and named[0].arg in {"self", "cls"}:
        named = named[1:]
    return len(named) + len(function.args.kwonlyargs)


def test_every_file_and_function_is_within_its_limits() -> None:
    findings = [finding for module in source_modules() for finding in oversized(module)]
    assert not findings, report(findings)


def first_finding(text: str) -> str:
    return next(oversized(parsed(text)), "")


def test_a_long_file_is_found() -> None:
    assert "501 lines" in first_finding("x = 1\n" * 501)
    assert first_finding("x = 1\n" * 500) == ""


def test_a_long_function_is_found() -> None:
    assert "71 lines" in first_finding("def f():\n" + "    x = 1\n" * 70)
    assert first_finding("def f():\n" + "    x = 1\n" * 69) == ""


def test_a_function_of_many_paths_is_found() -> None:
    assert "16 of complexity" in first_finding("def f(x):\n" + "    if x: pass\n" * 15)
    assert first_finding("def f(x):\n" + "    if x: pass\n" * 14) == ""


def test_deep_nesting_is_found() -> None:
    def nested(levels: int) -> str:
        ifs = [f"{'    ' * level}if x:\n" for level in range(1, levels + 1)]
        return "def f(x):\n" + "".join(ifs) + "    " * (levels + 1) + "pass\n"

    assert "5 levels of nesting" in first_finding(nested(5))
    assert first_finding(nested(4)) == ""


def test_a_chain_of_elifs_is_not_nesting() -> None:
    chain = "def f(x):\n    if x:\n        pass\n" + "    elif x:\n        pass\n" * 6
    assert first_finding(chain) == ""


def test_nesting_inside_a_handler_or_a_case_counts() -> None:
    text = """
        def f(x):
            for y in x:
                try:
                    pass
                except ValueError:
                    match y:
                        case 1:
                            if x:
                                while y:
                                    pass
    """
    assert "5 levels of nesting" in first_finding(text)


def test_many_parameters_are_found() -> None:
    assert "6 parameters" in first_finding("def f(a, b, c, /, d, *, e, f): ...")
    assert first_finding("class A:\n    def f(self, a, b, c, d, *, e): ...") == ""
