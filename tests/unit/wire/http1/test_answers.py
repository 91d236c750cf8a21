"""Heads and framing, byte for byte."""

import pytest

from kinference.wire.http1 import answers


def test_a_head_ends_in_our_own_lines_and_an_empty_one() -> None:
    raw = answers.head(200, ((b"a", b"1"), (b"b", b"2")), b"date: now\r\n")
    assert raw == b"HTTP/1.1 200 OK\r\na: 1\r\nb: 2\r\ndate: now\r\n\r\n"


def test_a_status_without_a_name_has_a_head_too() -> None:
    assert answers.head(529, (), b"").startswith(b"HTTP/1.1 529 Status\r\n")


@pytest.mark.parametrize("field", [(b"a", b"1\r\nb: 2"), (b"a", b"1\n"), (b"a\r", b"1")])
def test_a_line_break_inside_a_field_is_refused(field: tuple[bytes, bytes]) -> None:
    with pytest.raises(ValueError, match="line break"):
        answers.head(200, (field,), b"")


@pytest.mark.parametrize("size", [1, 15, 16 * 1024, 16 * 1024 + 1])
def test_a_chunk_has_its_size_in_hexadecimal(size: int) -> None:
    assert b"".join(answers.chunk(b"x" * size)) == f"{size:x}\r\n".encode() + b"x" * size + b"\r\n"


def test_a_large_chunk_is_not_copied() -> None:
    large = b"x" * 100_000
    assert any(piece is large for piece in answers.chunk(large))


def test_only_some_answers_have_a_body() -> None:
    assert answers.has_body("GET", 200)
    assert not answers.has_body("HEAD", 200)
    assert not answers.has_body("GET", 204)
    assert not answers.has_body("GET", 304)


def test_the_date_is_made_once_a_second() -> None:
    date = answers.DateLine()
    line = date.at(0.5)
    assert line == b"date: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
    assert date.at(0.9) is line
    assert date.at(1.0) == b"date: Thu, 01 Jan 1970 00:00:01 GMT\r\n"
