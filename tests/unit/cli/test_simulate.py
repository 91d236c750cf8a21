"""`kinference simulate`: what it prints and what it refuses."""

import json
from pathlib import Path

import pytest

from kinference.cli import main

SMALL = ["simulate", "--requests", "60", "--endpoints", "2", "--policy", "lmetric,round_robin", "--jobs", "1"]


def test_a_table_names_each_policy_and_the_report_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SMALL, "--html", str(tmp_path / "report.html")]) == 0
    shown = capsys.readouterr().out
    assert "lmetric" in shown
    assert "round_robin" in shown
    assert "<svg" in (tmp_path / "report.html").read_text()


def test_json_has_every_combination(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--load", "0.5,0.8", "--seeds", "2", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["place"]["load"], row["policy"], len(row["seeds"])) for row in rows] == [
        (0.5, "lmetric", 2),
        (0.5, "round_robin", 2),
        (0.8, "lmetric", 2),
        (0.8, "round_robin", 2),
    ]


def test_all_is_every_workload(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL[:3], *SMALL[3:], "--workload", "all", "--json"]) == 0
    assert len({row["place"]["workload"] for row in json.loads(capsys.readouterr().out)}) >= 6


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--policy", "fastest"], "no 'fastest'; choose from expected_latency"),
        (["--workload", "chat"], "no 'chat'; choose from"),
        (["--load", "0"], "greater than 0"),
        (["--endpoints", "4,x"], "whole number"),
    ],
)
def test_what_is_unknown_is_said(flags: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["simulate", *flags])
    assert complaint in capsys.readouterr().err


def test_a_trace_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--trace", "missing.jsonl", "--jobs", "1"]) == 1
    assert "missing.jsonl: cannot be read" in capsys.readouterr().err
