"""What our code does not do, each ban with the reason and what to do instead."""

import ast
import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

from tests.arch.source import Module, functions, parsed, report, source_modules

Check: TypeAlias = Callable[[Module], Iterator[str]]

ENVIRONMENT_READERS = {"config/env.py"}
PRINTERS = ("cli/", "demo/")
BARE_TASKS: dict[str, str] = {
    "wire/grpc_session.py": "a protocol's callbacks run in no task that a group could belong to; the root logs errors",
    "gateway/opening.py": "a read that outlives the wait for it: whoever reads on awaits it, whoever closes cancels it",
}
"""Files that may start a task outside a TaskGroup, each with the reason."""

STATE_MAKERS = {
    *("dict", "list", "set", "bytearray", "defaultdict", "deque", "Counter", "OrderedDict", "count", "cycle", "Random"),
    *("ContextVar", "Lock", "Event", "Queue", "Semaphore", "Condition", "WeakValueDictionary", "SimpleNamespace"),
}
MUTATORS = {"append", "add", "update", "extend", "insert", "pop", "popitem", "remove", "discard", "clear", "setdefault"}
CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*|__\w+__")
TYPE_NAME = re.compile(r"_?[A-Z]\w*")
TASK_ROOT = re.compile(r"#.*(task root|root of .*task)")
LOGGER = re.compile(r"_?log(ger)?")


def globals_rebound(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Global):
            yield module.at(
                node, "`global` makes state that nobody owns; keep it in an object that is passed to its users"
            )


def module_state(module: Module) -> Iterator[str]:
    constants = set()
    for statement in module.tree.body:
        for name, value in assignments(statement):
            constants.add(name)
            if not (CONSTANT.fullmatch(name) or TYPE_NAME.fullmatch(name) or is_logger(name, value)):
                yield module.at(
                    statement, f"module-level `{name}`; a constant is in capitals, an instance is built in runtime/"
                )
            elif makes_state(value):
                yield module.at(
                    statement, f"`{name}` is state that every caller shares; make it an attribute of an object"
                )
    yield from mutations(module, constants)


def assignments(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Name):
                yield target.id, statement.value
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
        yield statement.target.id, statement.value


def is_logger(name: str, value: ast.expr) -> bool:
    return bool(LOGGER.fullmatch(name)) and called(value) == "getLogger"


def makes_state(value: ast.expr) -> bool:
    """Whether it starts empty, to be filled later, or is a thing whose whole point is to change."""
    empty = (isinstance(value, ast.Dict) and not value.keys) or (isinstance(value, ast.List) and not value.elts)
    return empty or called(value) in STATE_MAKERS


def called(value: ast.expr) -> str:
    if not isinstance(value, ast.Call):
        return ""
    return value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")


def mutations(module: Module, names: set[str]) -> Iterator[str]:
    for node in ast.walk(module.tree):
        changed = mutated(node)
        if changed in names and isinstance(node, ast.expr):
            yield module.at(node, f"`{changed}` belongs to the module and is changed here; give the state an owner")


def mutated(node: ast.AST) -> str:
    target: ast.expr | None = None
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        target = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
        target = node.func.value
    return target.id if isinstance(target, ast.Name) else ""


def environment_reads(module: Module) -> Iterator[str]:
    if module.path in ENVIRONMENT_READERS:
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "environb", "getenv", "putenv"}:
            yield module.at(node, f"`{node.attr}` outside config/env.py; take the value from the configuration")
        elif isinstance(node, ast.ImportFrom) and node.module == "os":
            named = {alias.name for alias in node.names} & {"environ", "environb", "getenv", "putenv"}
            if named:
                yield module.at(node, f"`{named.pop()}` outside config/env.py; take the value from the configuration")


def blind_catches(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ExceptHandler) and catches_everything(node) and not may_catch_everything(module, node):
            yield module.at(
                node,
                "catches everything; name what can happen. Only where a task begins may it stand, as `# task root: why`",
            )


def catches_everything(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or getattr(kind, "id", "") in {"Exception", "BaseException"} for kind in kinds)


def may_catch_everything(module: Module, handler: ast.ExceptHandler) -> bool:
    """Where a task begins, and where the failure only passes through."""
    last = handler.body[-1]
    passes_on = isinstance(last, ast.Raise) and last.exc is None
    return passes_on or TASK_ROOT.search(module.line(handler)) is not None


def bare_tasks(module: Module) -> Iterator[str]:
    if module.path in BARE_TASKS:
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and starts_bare_task(node):
            yield module.at(node, "a task that nobody waits for loses its errors; start it in an asyncio.TaskGroup")


def starts_bare_task(call: ast.Call) -> bool:
    name = called(call)
    if name == "ensure_future":
        return True
    if name != "create_task":
        return False
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    return owner is None or called(owner).endswith("_loop") or getattr(owner, "id", "") in {"asyncio", "loop"}


def open_signatures(module: Module) -> Iterator[str]:
    for function in functions(module.tree):
        if function.args.kwarg is not None:
            yield module.at(
                function, f"{function.name}(**{function.args.kwarg.arg}) accepts anything; name what it takes"
            )


def prints(module: Module) -> Iterator[str]:
    if module.path.startswith(PRINTERS):
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            yield module.at(node, "print() outside the command line; log it, or return it to who can show it")


def unfinished(module: Module) -> Iterator[str]:
    for number, line in enumerate(module.text.splitlines(), start=1):
        if re.search(r"\b(TODO|FIXME|XXX|NotImplementedError)\b", line):
            yield f"{module.path}:{number}: left unfinished; finish it, or file an issue and take the mark out"


def shapeless_names(module: Module) -> Iterator[str]:
    named = set(module.path.removesuffix(".py").split("/"))
    for name in sorted(
        named & {"utils", "util", "helpers", "helper", "manager", "managers", "misc", "common", "tools"}
    ):
        yield f"{module.path}: `{name}` says nothing about what is in it; name it for the one idea that it holds"


def undocumented(module: Module) -> Iterator[str]:
    if module.tree.body and ast.get_docstring(module.tree) is None:
        yield f"{module.path}: opens without a docstring; say in one sentence what it is for"


CHECKS: tuple[Check, ...] = (
    globals_rebound,
    module_state,
    environment_reads,
    blind_catches,
    bare_tasks,
    open_signatures,
    prints,
    unfinished,
    shapeless_names,
    undocumented,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_nothing_that_is_banned_is_done(check: Check) -> None:
    findings = [finding for module in source_modules() for finding in check(module)]
    assert not findings, report(findings)


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (globals_rebound, "def f():\n    global x\n    x = 1"),
        (module_state, "cache = {}"),
        (module_state, "CACHE = {}"),
        (module_state, "CACHE: dict[str, int] = {}"),
        (module_state, "_SEEN = set()"),
        (module_state, "QUEUE = asyncio.Queue()"),
        (module_state, "picker = Picker()"),
        (module_state, "TABLE = {1: 2}\ndef f():\n    TABLE[3] = 4"),
        (module_state, "NAMES = ['a']\ndef f():\n    NAMES.append('b')"),
        (environment_reads, "import os\nx = os.environ['HOME']"),
        (environment_reads, "import os\nos.getenv('HOME')"),
        (environment_reads, "from os import environ"),
        (blind_catches, "try:\n    f()\nexcept Exception:\n    g()"),
        (blind_catches, "try:\n    f()\nexcept BaseException as error:\n    g()"),
        (blind_catches, "try:\n    f()\nexcept (ValueError, Exception):\n    g()"),
        (blind_catches, "try:\n    f()\nexcept:\n    g()"),
        (bare_tasks, "asyncio.create_task(f())"),
        (bare_tasks, "create_task(f())"),
        (bare_tasks, "asyncio.get_running_loop().create_task(f())"),
        (bare_tasks, "loop.create_task(f())"),
        (bare_tasks, "asyncio.ensure_future(f())"),
        (open_signatures, "def f(**options): ..."),
        (prints, "print('hello')"),
        (unfinished, "x = 1  # TODO: more"),
        (unfinished, "raise NotImplementedError"),
        (undocumented, "x = 1"),
    ],
)
def test_a_banned_thing_is_found(check: Check, text: str) -> None:
    assert len(list(check(parsed(text)))) == 1


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (module_state, "LIMIT = 3\nTABLE = {1: 2}\nPattern = re.compile('a')\nlogger = logging.getLogger(__name__)"),
        (module_state, "Alias: TypeAlias = dict[str, int]\n__version__ = '1'\n_CODES = {c: 1 for c in X}"),
        (module_state, "TABLE = {1: 2}\ndef f(table):\n    table[3] = 4"),
        (blind_catches, "try:\n    f()\nexcept Exception:  # task root: one call must not end the others\n    g()"),
        (blind_catches, "try:\n    f()\nexcept Exception:  # noqa: X - the root of a request's task\n    g()"),
        (blind_catches, "try:\n    f()\nexcept BaseException:\n    g()\n    raise"),
        (blind_catches, "try:\n    f()\nexcept ValueError:\n    g()"),
        (bare_tasks, "async with asyncio.TaskGroup() as tasks:\n    tasks.create_task(f())"),
        (open_signatures, "def f(*names, key=None): ..."),
        (undocumented, "'''What it is for.'''\nx = 1"),
        (undocumented, ""),
    ],
)
def test_what_is_allowed_passes(check: Check, text: str) -> None:
    if check is bare_tasks:
        text = "async def g():\n" + "".join(f"    {line}\n" for line in text.splitlines())
    assert list(check(parsed(text))) == []


@pytest.mark.parametrize("path", ["core/utils.py", "gateway/helpers/url.py", "wire/connection/manager.py"])
def test_a_shapeless_name_is_found(path: str) -> None:
    assert len(list(shapeless_names(parsed("", path)))) == 1


@pytest.mark.parametrize(
    ("check", "path", "text"),
    [(environment_reads, "config/env.py", "import os\nx = os.environ"), (prints, "cli/serve.py", "print(1)")],
)
def test_the_one_place_for_it_may_do_it(check: Check, path: str, text: str) -> None:
    assert list(check(parsed(text, path))) == []


def test_every_exemption_still_exists() -> None:
    """Under another name each of these files would be found."""
    modules = {module.path: module for module in source_modules()}
    for check, paths in ((environment_reads, ENVIRONMENT_READERS), (bare_tasks, BARE_TASKS)):
        for path in paths:
            assert list(check(parsed(modules[path].text, "elsewhere.py"))), f"{path} needs its exemption no more"
