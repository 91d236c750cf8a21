"""Traces, good and bad, by whatever format they are in."""

from pathlib import Path

import pytest

from kinference.errors import ConfigError
from kinference.sim.trace import LINE_BYTES_MAX, read_trace

LINE = '{"timestamp": %d, "input_length": 1100, "output_length": 7, "hash_ids": [4, 5, 6]}'
TABLE = "TIMESTAMP,ContextTokens,GeneratedTokens\n"


def written(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "trace"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_requests_come_in_order_of_time(tmp_path: Path) -> None:
    first, second = read_trace(written(tmp_path, "\n".join(LINE % at for at in (2_500, 500))))
    assert (first.at, second.at) == (0.5, 2.5)


def test_a_table_is_told_from_json_lines(tmp_path: Path) -> None:
    (row,) = read_trace(written(tmp_path, TABLE + "0,1100,7\n"))
    (line,) = read_trace(written(tmp_path, LINE % 0))
    assert (row.prompt_tokens, row.output_tokens) == (line.prompt_tokens, line.output_tokens) == (1_100, 7)


def test_a_byte_order_mark_empty_lines_and_either_end_of_line_are_no_matter(tmp_path: Path) -> None:
    for content in (f"\n{LINE % 1}\r\n\r\n{LINE % 2}", f"{TABLE}\r\n0,1100,7\r\n\n1,2,3"):
        assert len(read_trace(written(tmp_path, b"\xef\xbb\xbf" + content.encode()))) == 2


def test_no_more_is_read_than_asked_for(tmp_path: Path) -> None:
    assert len(read_trace(written(tmp_path, "\n".join([LINE % 1, LINE % 2, "nonsense"])), 2)) == 2


@pytest.mark.parametrize("content", ["", "\n\n", TABLE])
def test_a_trace_without_requests_is_none(content: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no request"):
        read_trace(written(tmp_path, content))


@pytest.mark.parametrize("content", [b"\x00" * (LINE_BYTES_MAX + 1), b"{" + b" " * LINE_BYTES_MAX, b'"' * 2**22])
def test_a_line_without_end_is_not_read_to_its_end(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f":1: is longer than {LINE_BYTES_MAX} bytes"):
        read_trace(written(tmp_path, content))


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_trace(tmp_path / "missing.jsonl")
