"""No acknowledged write is lost, at whatever instruction the process dies."""

import re
import subprocess
import sys
from pathlib import Path

KILLS = 200
SEED = 7


def test_200_kills_during_writes_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    script = Path(__file__).with_name("killed_writer.py")
    command = [sys.executable, str(script), str(tmp_path / "control.db"), str(KILLS), str(SEED)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert ended.returncode == 0, ended.stderr
    counted = re.fullmatch(r"200 kills, (\d+) writes, none lost\n", ended.stdout)
    assert counted is not None
    assert int(counted[1]) > KILLS
