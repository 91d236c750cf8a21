"""Problems told together."""

from pathlib import Path

from kinference.config.problems import InvalidConfig
from kinference.errors import ConfigError


def test_each_problem_has_its_line() -> None:
    error = InvalidConfig([ConfigError("a", "wrong", "write b", 3), ConfigError("c", "missing")])
    assert str(error) == "line 3: a: wrong; write b\nc: missing"


def test_the_first_problem_stands_for_all_where_one_is_asked_for() -> None:
    error = InvalidConfig([ConfigError("a", "wrong", "write b", 3), ConfigError("c", "missing")])
    assert isinstance(error, ConfigError)
    assert (error.path, error.problem, error.fix, error.line) == ("a", "wrong", "write b", 3)


def test_each_line_is_led_by_the_file_once() -> None:
    error = InvalidConfig([ConfigError("a.yaml", "cannot be read"), ConfigError("a", "wrong", line=3)])
    assert list(error.lines(Path("a.yaml"))) == ["a.yaml: cannot be read", "a.yaml: line 3: a: wrong"]
