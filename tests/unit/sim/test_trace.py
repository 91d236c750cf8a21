"""Traces, good and bad."""

from pathlib import Path

import pytest

from kinference.errors import ConfigError
from kinference.sim.trace import read_trace

LINE = '{"timestamp": %d, "input_length": 1100, "output_length": 7, "hash_ids": [4, 5, 6]}'


def test_a_line_is_a_request_with_its_full_blocks_in_order_of_time(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join(LINE % at for at in (2_500, 500)))
    first, second = read_trace(path)
    assert (first.at, second.at) == (0.5, 2.5)
    assert (first.prompt_tokens, first.output_tokens, first.blocks) == (1_100, 7, (4, 5))


def test_no_more_is_read_than_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join([LINE % 1, LINE % 2, "nonsense"]))
    assert len(read_trace(path, 2)) == 2


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "holds no request"),
        ("nonsense", r":1: is no line of a trace"),
        ('{"timestamp": 1, "input_length": 0, "output_length": 7, "hash_ids": []}', "lengths go from 1"),
        ('{"timestamp": 1, "input_length": 600, "output_length": 7, "hash_ids": [-1]}', "hash_ids go from 0"),
        ('{"timestamp": 1, "input_length": 1100, "output_length": 7, "hash_ids": [1, 1]}', "no name comes twice"),
    ],
)
def test_what_is_no_trace_is_said_with_its_place(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(text)
    with pytest.raises(ConfigError, match=complaint):
        read_trace(path)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_trace(tmp_path / "missing.jsonl")
