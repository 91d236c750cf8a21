"""Results put together."""

from dataclasses import replace

import pytest

from kinference.sim.cluster.grid import Cell, Result, Traffic
from kinference.sim.cluster.run import Played
from kinference.sim.cluster.scenarios import ENGINE
from kinference.sim.cluster.summary import summarize
from kinference.sim.cluster.table import COLUMNS, Place, put_together

CELL = Cell(Traffic("chats"), "steady", 2, 0.5, "b", seed=1)


def test_seeds_become_one_line_in_the_order_asked_for(played: Played) -> None:
    summary = summarize(played, (ENGINE,) * 2)
    cells = [replace(CELL, policy=policy, seed=seed) for policy in ("b", "a") for seed in (1, 2)]
    results = [Result(cell, replace(summary, ttft_s_mean=float(cell.seed))) for cell in reversed(cells)]
    ((place, lines),) = put_together(results, cells).items()
    assert place == Place("chats", "steady", 2, 0.5)
    assert str(place) == "chats, steady, 2 endpoints at 50% load"
    assert [line.policy for line in lines] == ["b", "a"]
    assert lines[0].mean(COLUMNS[0].value) == pytest.approx(1.5)
    assert lines[0].spread(COLUMNS[0].value) == (1.0, 2.0)
