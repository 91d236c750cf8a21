"""The committed messages are what `proto/` generates, and `proto/` passes its lint."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "src/kinference/wire/proto"


def generated(folder: Path) -> dict[str, str]:
    """Every generated file by name; `__init__` is ours."""
    return {path.name: path.read_text() for path in folder.glob("*_pb2.py*") if path.is_file()}


def test_generated_code_is_current(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "proto/generate.py", tmp_path], check=True)
    fresh, committed = generated(tmp_path), generated(COMMITTED)
    names = [f"{name}_pb2.{kind}" for name in ("control", "inference", "picker") for kind in ("py", "pyi")]
    assert sorted(fresh) == names
    stale = sorted(name for name in fresh | committed if fresh.get(name) != committed.get(name))
    assert not stale, f"{stale} in {COMMITTED.relative_to(ROOT)} differ from what proto/ says; run `make proto`"


def test_the_contracts_pass_their_lint() -> None:
    buf = Path(sys.executable).with_name("buf")
    lint = subprocess.run([buf, "lint", ROOT / "proto"], capture_output=True, text=True, check=False)
    assert lint.returncode == 0, lint.stdout + lint.stderr
