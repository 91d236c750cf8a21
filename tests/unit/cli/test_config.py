"""`kinference config`: exit codes, and what goes to which stream."""

import argparse
import json
from pathlib import Path

import pytest

from kinference.cli import config
from kinference.config.json_schema import json_schema

GOOD = "pools: [{name: p, endpoints: ['http://h:1', 'http://h:2']}]\n"


def kinference_config(*words: str) -> int:
    parser = argparse.ArgumentParser()
    config.add(parser.add_subparsers())
    return config.run(parser.parse_args(["config", *words]))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "kinference.yaml"


def test_a_good_file_is_ok_and_summed_up(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(GOOD)
    assert kinference_config("check", str(file)) == 0
    captured = capsys.readouterr()
    assert captured.out == f"{file}: ok: pools 1 (endpoints 2), backends 0, models 0, tenants 0, keys 0\n"
    assert captured.err == ""


def test_pools_that_are_discovered_are_counted(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("pools: [{name: p, discovery: {dns: {name: engines, port: 8000}}}]\n")
    assert kinference_config("check", str(file)) == 0
    assert ": ok: pools 1 (endpoints 0, discovered 1), backends 0" in capsys.readouterr().out


def test_every_problem_of_a_bad_file_is_a_line_on_stderr(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("pool: []\nlimits: {body_ttl: soon}\n")
    assert kinference_config("check", str(file)) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert lines[0] == f"{file}: line 1: pool: no such key; did you mean 'pools'?"
    assert lines[1].startswith(f"{file}: line 2: limits.body_ttl: not a time, found 'soon'; write seconds")
    assert len(lines) == 2


def test_a_file_that_is_not_there_is_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert kinference_config("check", str(file)) == 1
    assert capsys.readouterr().err.startswith(f"{file}: cannot be read: No such file")


def test_advice_is_a_warning(file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINFERENCE_NOTHING", "1")
    file.write_text(GOOD)
    assert kinference_config("check", str(file)) == 0
    assert capsys.readouterr().err == f"{file}: warning: KINFERENCE_NOTHING sets nothing\n"


def test_what_is_in_force_is_shown_without_secrets(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALICE", "hunter2")
    monkeypatch.setenv("KINFERENCE_LIMITS_BODY_TTL", "3m")
    file.write_text(GOOD + "gateway: {keys: [{key: '${ALICE}', tenant: alice}]}")
    assert kinference_config("show", str(file)) == 0
    out = capsys.readouterr().out
    shown = json.loads(out)
    assert "hunter2" not in out
    assert shown["gateway"]["keys"] == [{"key": "${ALICE}", "tenant": "alice", "class": "interactive"}]
    assert shown["limits"]["body_ttl"] == "3m"
    assert shown["pools"][0]["endpoints"][1]["url"] == "http://h:2"


def test_the_schema_is_json_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert kinference_config("schema") == 0
    assert json.loads(capsys.readouterr().out) == json_schema()


def test_a_verb_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        kinference_config()
    assert "VERB" in capsys.readouterr().err
