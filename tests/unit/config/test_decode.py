"""The decoder: strict, bounded, and every problem told with its path, its line and the fix."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import pytest
import yaml

from kinference.config.decode import BROKEN, NODES_MAX, PROBLEMS_MAX, Decoder, compose, is_clean, join, shown
from kinference.config.keys import about
from kinference.config.problems import InvalidConfig
from kinference.config.scalars import scalars
from kinference.config.values import Secret, Size, Unreadable


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Leaf:
    name: str = field(metadata=about("Its name.", shorthand=True))
    size: Size = field(default=Size(1), metadata=about("Its size."))


@dataclass(frozen=True, slots=True)
class Tree:
    leaves: tuple[Leaf, ...] = field(default=(), metadata=about("Its leaves."))
    labels: Mapping[str, str] = field(default_factory=dict, metadata=about("Its labels."))
    colour: Colour = field(default=Colour.RED, metadata=about("Its colour."))
    password: Secret | None = field(default=None, metadata=about("Its password."))
    height: int | None = field(default=None, metadata=about("Its height.", name="tall"))


def read_no_secret(text: str) -> Secret:
    raise Unreadable("not a reference", "write ${NAME}")


def decode(text: str) -> tuple[object, list[str]]:
    decoder = Decoder(scalars(read_no_secret))
    node = compose(text)
    assert node is not None
    value = decoder.decode(Tree, node, "")
    return value, [str(problem) for problem in decoder.problems]


def problems(text: str) -> list[str]:
    value, found = decode(text)
    assert found or value is not BROKEN
    return found


def test_a_whole_tree_is_read() -> None:
    value, found = decode("leaves: [oak, {name: elm, size: 2KiB}]\nlabels: {a: b}\ncolour: blue\ntall: 7\n")
    assert found == []
    assert value == Tree((Leaf("oak"), Leaf("elm", Size(2048))), {"a": "b"}, Colour.BLUE, None, 7)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("leafs: []", "line 1: leafs: no such key; did you mean 'leaves'?"),
        ("\n\nzzz: 1", "line 3: zzz: no such key; known: leaves, labels, colour, password, tall"),
        (
            "leaves: oak",
            "line 1: leaves: must be a list, found a single value; begin each item with a dash, or write []",
        ),
        ("leaves:\n- size: 1", "line 2: leaves[0].name: missing; add it: Its name."),
        ("leaves: [{name: a, size: big}]", "line 1: leaves[0].size: not a size, found 'big'; write bytes as"),
        ("leaves: [1.0]", "line 1: leaves[0]: must be text, and '1.0' means something else in YAML; put it in quotes"),
        ("leaves: [no]", "line 1: leaves[0]: must be text, and 'no' means something else in YAML; put it in quotes"),
        ("leaves: [[a]]", "line 1: leaves[0]: must be a mapping, found a list; keys: name, size"),
        ("leaves: [null]", "line 1: leaves[0]: must be a mapping, found nothing"),
        ("labels: [a]", "line 1: labels: must be a mapping, found a list"),
        ("labels: {a: {b: c}}", "line 1: labels.a: must be a text, found a mapping"),
        ("labels: {1: a}", "line 1: labels: a key that is not text: a single value; put it in quotes"),
        ("labels: {? [a] : b}", "line 1: labels: a key that is not text: a list"),
        ("labels:\n  a: b\n  a: c", "line 3: labels.a: given twice; keep one of them"),
        ("colour: red\ncolour: blue", "line 2: colour: given twice; keep one of them"),
        ("colour: blu", "line 1: colour: no such choice: 'blu'; did you mean 'blue'?"),
        ("colour:", "line 1: colour: must be one of a choice, found nothing; leave the key out, or"),
        ("colour: [red]", "line 1: colour: must be one of a choice, found a list"),
        ("tall: 1:30", "line 1: tall: not a whole number, found '1:30'"),
        ("tall: !!python/object:os.system 7", "line 1: tall: must be a whole number"),
        ("<<: {tall: 7}", "line 1: the file: a key that is not text"),
        ('labels: {a: "b\\r\\nc"}', "line 1: labels.a: control characters, found 'b\\r\\nc'; take them out"),
        ('"ta\\nll": 7', "line 1: the file: a key that is not text: a single value"),
        ("- a", "line 1: the file: must be a mapping, found a list; keys: leaves"),
    ],
)
def test_a_mistake_is_told_with_its_line_its_path_and_the_fix(text: str, problem: str) -> None:
    found = problems(text)
    assert len(found) == 1
    assert found[0].startswith(problem)


@pytest.mark.parametrize(
    "text", ["password: hunter2", "password: 12345678", "password: [hunter2]", 'password: "hunter2\\n"']
)
def test_a_secret_in_the_file_is_never_repeated(text: str) -> None:
    (problem,) = problems(text)
    assert "hunter2" not in problem
    assert "1234" not in problem


def test_all_problems_are_told_at_once() -> None:
    assert len(problems("leaves: [{size: 1}, [], 7]\ncolour: pink\nfoo: 1\n")) == 5


def test_the_number_of_problems_is_bounded() -> None:
    assert len(problems(f"leaves: [{'[], ' * 500}]")) == PROBLEMS_MAX


def test_a_hostile_key_is_shortened_and_escaped() -> None:
    (problem,) = problems(f'? "\u202e{"x" * 5000}"\n: 1')
    assert len(problem) < 300
    assert "\u202e" not in problem


@pytest.mark.parametrize(
    "text",
    [
        "a: [", "a: b: c", "\ta: 1", "a: *nothing", "a: 1\n---\nb: 2", '"\\UFFFFFFFF": 1', "a: \x00", "%YAML 9.9\n--- a",
        "[" * 5000, "{a: " * 5000, "a: &a [*a", "a: 'b",
    ],
)  # fmt: skip
def test_what_is_not_yaml_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfig) as refusal:
        compose(text)
    assert refusal.value.path == "yaml"


@pytest.mark.parametrize("has_libyaml", [True, False])
def test_what_libyaml_refuses_is_read_as_without_it(monkeypatch: pytest.MonkeyPatch, has_libyaml: bool) -> None:
    """It takes no colon before a comma."""
    monkeypatch.setattr(yaml, "__with_libyaml__", has_libyaml)
    node = compose("[elm:, oak]")
    assert isinstance(node, yaml.SequenceNode)
    assert [type(item) for item in node.value] == [yaml.MappingNode, yaml.ScalarNode]


@pytest.mark.parametrize("has_libyaml", [True, False])
def test_what_nests_too_deep_is_refused_with_its_line(monkeypatch: pytest.MonkeyPatch, has_libyaml: bool) -> None:
    monkeypatch.setattr(yaml, "__with_libyaml__", has_libyaml)
    with pytest.raises(InvalidConfig, match="line 2: yaml: nested deeper than 16"):
        compose("a:\n " + "[" * 100_000)


def test_a_syntax_error_names_its_line() -> None:
    with pytest.raises(InvalidConfig) as refusal:
        compose("a: 1\nb: [\n")
    assert refusal.value.line == 3


def test_nothing_is_nothing() -> None:
    assert compose("") is None
    assert compose("# only a comment\n") is None


def test_an_alias_is_what_it_stands_for() -> None:
    value, _ = decode("leaves:\n- &oak {name: oak}\n- *oak\n")
    assert value == Tree((Leaf("oak"), Leaf("oak")))


def test_a_bomb_of_aliases_is_refused_before_it_goes_off() -> None:
    labels = "{" + ", ".join(f"k{place}: v" for place in range(1000)) + "}"
    decoder = Decoder(scalars(read_no_secret))
    node = compose(f"- &a {labels}\n" + "- *a\n" * (NODES_MAX // 1000 + 1))
    assert node is not None
    with pytest.raises(InvalidConfig, match="aliases count each time"):
        decoder.decode(tuple[Mapping[str, str], ...], node, "")


def test_an_alias_to_itself_ends() -> None:
    assert problems("leaves: &a [*a]")


def test_every_path_has_its_line() -> None:
    decoder = Decoder(scalars(read_no_secret))
    node = compose("leaves:\n- oak\n-\n  name: elm\n")
    assert node is not None
    decoder.decode(Tree, node, "")
    assert decoder.lines == {"": 1, "leaves": 2, "leaves[0]": 2, "leaves[1]": 4, "leaves[1].name": 4}


def test_a_path_quotes_a_step_that_would_confuse() -> None:
    assert join("", "a") == "a"
    assert join("a", "b_c-1") == "a.b_c-1"
    assert join("a", "b.c") == "a.'b.c'"


def test_what_is_shown_is_bounded() -> None:
    assert shown("a'b\n") == '"a\'b\\n"'
    assert len(shown("x" * 1000)) < 70


@pytest.mark.parametrize("char", ["\n", "\r", "\0", "\x7f", "\x85", "\u2028", "\ud800"])
def test_j7_control_characters_are_not_clean(char: str) -> None:
    assert is_clean("naïve 模型")
    assert not is_clean(f"a{char}b")
