"""`kinference store`: what it reports, and what it refuses."""

import argparse
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from kinference.cli import store
from kinference.control.errors import StoreFailed

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(*words: str) -> str:
        parser = argparse.ArgumentParser()
        store.add(parser.add_subparsers())
        assert store.run(parser.parse_args(["store", *words])) == 0
        return capsys.readouterr().out

    return run


def test_a_backup_is_its_owners_and_can_be_restored(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    assert run("backup", str(file)) == f"Wrote 0 records of {tmp_path}/state/kinference/control.db to {file}\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert run("restore", str(file)) == "Restored 0 records\n"


def test_no_file_is_overwritten(run: Run, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    with pytest.raises(StoreFailed, match="precious cannot be written: File exists"):
        run("backup", str(tmp_path / "precious"))


def test_a_missing_file_restores_nothing(run: Run, tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match="nowhere cannot be read"):
        run("restore", str(tmp_path / "nowhere"))


def test_the_key_is_rotated(run: Run, tmp_path: Path) -> None:
    assert run("rotate-key") == "Rotated the key of 0 providers\n"
    assert len((tmp_path / "state/kinference/secret.key").read_text().split()) == 2


def test_the_store_is_where_the_configuration_says(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "kinference.yaml"
    config.write_text(f"control: {{store: 'sqlite:///{tmp_path}/elsewhere.db'}}")
    run("backup", str(tmp_path / "records"), "--config", str(config))
    assert (tmp_path / "elsewhere.db").exists()
