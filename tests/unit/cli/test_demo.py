import argparse
import sys

import pytest

from kinference.cli import demo, main


def test_flags_have_the_defaults_that_help_tells() -> None:
    root = argparse.ArgumentParser()
    demo.add(root.add_subparsers())
    args = root.parse_args(["demo"])
    assert (args.once, args.engines, args.speed, args.seed) == (False, 3, 4.0, 1)
    assert root.parse_args(["demo", "--once", "--engines", "2"]).engines == 2


def test_without_the_openai_package_nothing_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    assert main(["demo", "--once"]) == 1
    told = capsys.readouterr()
    assert told.err == (
        "kinference: the demo's clients are the openai package, which is not installed: pip install openai\n"
    )
    assert told.out == ""
