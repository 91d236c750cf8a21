import re
from pathlib import Path
from types import ModuleType

import pytest

import kinference
from kinference import __version__
from kinference.cli import main
from kinference.cli.main import BUILD, VERBS


def name_of(verb: ModuleType) -> str:
    return verb.__name__.rpartition(".")[2].replace("_", "-")


def test_help_teaches_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    for verb in VERBS:
        assert re.search(rf"\n    {name_of(verb)}\s", text)
    assert "kinference serve --engine" in text


@pytest.mark.parametrize("verb", [name_of(verb) for verb in VERBS])
def test_help_of_each_verb_has_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([verb, "--help"])
    assert f"kinference {verb}" in capsys.readouterr().out.partition("example")[2]


@pytest.mark.parametrize("verb", [name_of(verb) for verb in VERBS])
def test_help_of_each_verb_fits_a_terminal(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([verb, "--help"])
    assert max(len(line) for line in capsys.readouterr().out.splitlines()) <= 120


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"kinference {__version__}{BUILD}\n"


def test_the_version_tells_a_compiled_build() -> None:
    compiled = any(Path(kinference.__file__).parent.glob("core/pick.*.so"))
    assert (" (compiled)" if compiled else "") == BUILD


@pytest.mark.parametrize("arguments", [[], ["nope"], ["serve"], ["--nope"]])
def test_usage_errors_end_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
