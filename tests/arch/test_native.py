"""What mypyc takes without a word and means otherwise: no module on the list of those that are compiled has any of it."""

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence, Set

from tests.arch.source import PACKAGE, ROOT, Module, parsed, report, source_modules

CONSTANT = re.compile(r"_*[A-Z][A-Z0-9_]+")
WAITS = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)


def listed() -> list[str]:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    paths: list[str] = pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]["modules"]
    return paths


def compiled() -> list[Module]:
    paths = set(listed())
    return [module for module in source_modules() if module.path in paths]


def waiting(modules: Iterable[Module]) -> Iterator[str]:
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, WAITS):
                yield f"{module.path}:{node.lineno}: compiled, it does not end as it should when it is cancelled"


def options_of_classes(modules: Iterable[Module]) -> Iterator[str]:
    """Class lines with options of their own; `frozen=True` is for the type checker where a base has it already."""
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and node.keywords:
                line = ast.unparse(ast.ClassDef(node.name, node.bases, node.keywords, [ast.Pass()], []))
                if not line.startswith(f"class {node.name}(Frozen") or len(node.keywords) > 1:
                    yield module.at(node, "compiled, it loses these options; take them from a base in structs.py")


def looked_up(modules: Iterable[Module]) -> Iterator[str]:
    """Constants of a module that are not `Final`. A tuple may be: of floats mypyc loses it."""
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Tuple):
                names = [name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)]
                if any(CONSTANT.fullmatch(name) for name in names):
                    yield module.at(node, "compiled, it is looked up at each use; say `: Final`")


def fields_of_structs(modules: Iterable[Module]) -> Iterator[str]:
    """Defaults of msgspec's own making."""
    for module in modules:
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.AnnAssign) or node.value is None:
                continue
            if ast.unparse(node.value).startswith("msgspec.field("):
                yield module.at(node, "compiled, its class is not made: the default is not of the field's type")


def heirs(modules: Sequence[Module], compiled_paths: Set[str]) -> Iterator[str]:
    """Classes that run as Python and inherit from a compiled one."""
    native = {
        node.name
        for module in modules
        if module.path in compiled_paths
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    }
    for module in modules:
        if module.path in compiled_paths:
            continue
        own = {node.name for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)}
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and not native.isdisjoint({*map(ast.unparse, node.bases)} - own):
                yield module.at(
                    node, "its base is compiled, which takes no heirs from Python; where one is caught, it is not"
                )


def test_every_module_on_the_list_exists_and_is_there_once() -> None:
    paths = listed()
    assert paths == sorted(set(paths))
    assert [path for path in paths if not (PACKAGE / path).is_file()] == []


def test_nothing_compiled_waits() -> None:
    findings = list(waiting(compiled()))
    assert not findings, report(findings)


def test_no_compiled_class_has_options_of_its_own() -> None:
    findings = list(options_of_classes(compiled()))
    assert not findings, report(findings)


def test_constants_of_compiled_modules_are_final() -> None:
    findings = list(looked_up(compiled()))
    assert not findings, report(findings)


def test_no_field_of_a_compiled_struct_has_a_default_of_another_type() -> None:
    findings = list(fields_of_structs(compiled()))
    assert not findings, report(findings)


def test_fields_whose_default_is_made_are_found() -> None:
    lines = """
        class One(EntityLeaf):
            good: int = 0
            made: list[int] = field(default_factory=list)
            bad: Common = msgspec.field(default_factory=Common)
    """
    assert [line.split(":")[1] for line in fields_of_structs([parsed(lines)])] == ["5"]


def test_what_waits_is_found() -> None:
    lines = """
        async def wait(): ...
        def told(lines): return list(lines)
        async def ask(peer):
            return [line async for line in peer]
    """
    assert [line.split(":")[1] for line in waiting([parsed(lines)])] == ["2", "4"]


def test_options_of_a_class_are_found() -> None:
    lines = """
        class Good(Frozen, frozen=True): ...
        class Plain(EntityLeaf): ...
        class Bad(msgspec.Struct, frozen=True): ...
        class Half(FrozenLeaf, frozen=True, eq=False): ...
    """
    assert [line.split(":")[1] for line in options_of_classes([parsed(lines)])] == ["4", "5"]


def test_constants_that_are_looked_up_are_found() -> None:
    lines = """
        GOOD: Final = 1
        Key = TypeVar("Key")
        RANGE = (0.5, 32.0)
        BAD = 2
        _ONE, _TWO = b"12"
    """
    assert [line.split(":")[1] for line in looked_up([parsed(lines)])] == ["5", "6"]


def test_no_compiled_class_has_heirs_in_python() -> None:
    findings = list(heirs(list(source_modules()), set(listed())))
    assert not findings, report(findings)


def test_heirs_in_python_are_found() -> None:
    base = parsed("class TooLong(ValueError): ...", "shapes/sse.py")
    heir = parsed("class Bad(TooLong): ...", "shapes/frames.py")
    assert len(list(heirs([base, heir], {"shapes/sse.py"}))) == 1
    assert list(heirs([base, heir], {"shapes/sse.py", "shapes/frames.py"})) == []
