from pathlib import Path

import pytest

from kinference.cli import main


def test_every_problem_of_a_file_is_told_and_nothing_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("pools: [{nme: a}]\nlimits: {body_ttl: soon}\n")
    assert main(["serve", "--config", str(file)]) == 1
    told = capsys.readouterr().err.splitlines()
    assert all(line.startswith(f"kinference: {file}: line ") for line in told)
    assert any("nme" in line and "name" in line for line in told)
    assert any("limits.body_ttl" in line for line in told)


def test_an_exposed_port_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("KINFERENCE_LISTEN_ADMIN", "0.0.0.0:0")
    assert main(["serve", "--engine", "http://127.0.0.1:1"]) == 1
    assert "kinference: listen.admin: 0.0.0.0:0 can be reached from outside" in capsys.readouterr().err


def test_a_ports_file_in_no_folder_is_refused_before_anything_listens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "absent"
    assert main(["serve", "--engine", "http://127.0.0.1:1", "--ports-file", str(missing / "ports.json")]) == 1
    assert f"kinference: --ports-file: no folder {missing}; make it" in capsys.readouterr().err


def test_a_flag_is_never_taken_for_a_longer_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["serve", "--engine", "http://127.0.0.1:1", "--port", "80"])
    assert "unrecognized arguments: --port" in capsys.readouterr().err
