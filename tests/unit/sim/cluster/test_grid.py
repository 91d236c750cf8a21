"""Many runs."""

from dataclasses import replace
from pathlib import Path

from kinference.sim.cluster.grid import Cell, Traffic, run_cell, run_grid

CELL = Cell(Traffic("chats", requests=60), "steady", 2, 0.5, "lmetric", seed=1)


def test_a_grid_is_its_cells_whatever_process_runs_them() -> None:
    cells = [CELL, replace(CELL, seed=2)]
    results = sorted(run_grid(cells, jobs=2), key=lambda result: result.cell.seed)
    assert results == [run_cell(cell) for cell in cells]
    assert results[0].summary != results[1].summary


def test_a_trace_is_shifted_a_little_by_each_seed(tmp_path: Path) -> None:
    trace = tmp_path / "small.jsonl"
    line = '{"timestamp": %d, "input_length": 1100, "output_length": 7, "hash_ids": [%d, %d, 0]}\n'
    trace.write_text("".join(line % (1_000 * number, number % 3, 100 + number) for number in range(60)))
    cell = replace(CELL, traffic=Traffic(trace=trace))
    first, second = run_cell(cell).summary, run_cell(replace(cell, seed=2)).summary
    assert first != second
    assert abs(first.hit_rate - second.hit_rate) < 0.1
    assert cell.traffic.name == "small"
