"""`kinference explain`: the table, and what it refuses."""

import json
from pathlib import Path

import pytest

from kinference.cli import main

CONFIG = """\
pools:
  - name: p
    endpoints:
      - url: http://a:8000
      - url: http://b:8000
"""


@pytest.fixture
def flags(tmp_path: Path) -> list[str]:
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "body.json").write_text('{"model": "m", "messages": [{"role": "user", "content": "hello"}]}')
    return ["explain", "--config", str(tmp_path / "config.yaml"), "--request", str(tmp_path / "body.json")]


def test_the_table_shows_every_candidate_and_the_pick(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(flags) == 0
    shown = capsys.readouterr().out
    for text in ("default/p/a:8000", "default/p/b:8000", "picked", "next", "prefill", "OK: expect"):
        assert text in shown


def test_a_state_that_leaves_nobody_is_refused_with_the_reason(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    endpoints = [{"pool": "default/p", "address": f"{host}:8000", "ready": False, "models": ["m"]} for host in "ab"]
    (tmp_path / "state.json").write_text(json.dumps({"endpoints": endpoints}))
    assert main([*flags, "--state", str(tmp_path / "state.json"), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["outcome"] == "NO_WORKERS"
    assert {one["verdict"] for one in told["explanation"]["rejected"]} == {"not ready"}


def test_what_cannot_be_read_is_one_line(flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*flags, "--state", str(tmp_path / "missing.json")]) == 1
    assert "missing.json: cannot be read" in capsys.readouterr().err
    (tmp_path / "state.json").write_text('{"no": "list"}')
    assert main([*flags, "--state", str(tmp_path / "state.json")]) == 1
    assert "holds no endpoints" in capsys.readouterr().err
    (tmp_path / "config.yaml").write_text("pool: []")
    assert main(flags) == 1
    assert "config.yaml" in capsys.readouterr().err
