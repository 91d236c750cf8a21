import sys

from hypothesis import given
from hypothesis import strategies as st

from kinference.wire.pieces import COALESCE_BELOW, Pieces, cut, join

PIECE_MAX = 256 * 1024


def of(chunks: list[bytes], piece_max: int = PIECE_MAX) -> Pieces:
    pieces = Pieces(piece_max)
    for chunk in chunks:
        pieces.append(chunk)
    return pieces


@given(st.lists(st.integers(0, 40_000), max_size=20), st.integers(20_000, 100_000))
def test_however_a_body_is_cut_it_comes_back_whole_and_in_small_pieces(lengths: list[int], piece_max: int) -> None:
    chunks = [bytes([index % 251]) * length for index, length in enumerate(lengths)]
    pieces = of(chunks, piece_max)
    assert join(pieces.pieces()) == b"".join(chunks)
    assert pieces.size == sum(lengths)
    assert all(0 < len(piece) <= piece_max for piece in pieces.pieces())


def test_a_million_single_bytes_become_a_few_pieces() -> None:
    pieces = of([b"x"] * 1_000_000)
    held = pieces.pieces()
    assert sum(map(sys.getsizeof, held)) < 1_010_000
    assert len(held) < 20


def test_small_chunks_between_large_ones_leave_no_run_of_small_pieces() -> None:
    held = of([b"x", b"y" * COALESCE_BELOW] * 50).pieces()
    assert len(held) == 100


def test_a_large_chunk_is_kept_without_a_copy() -> None:
    chunk = b"z" * 100_000
    assert of([chunk]).pieces()[0] is chunk


def test_a_chunk_over_the_piece_size_is_cut() -> None:
    assert [len(piece) for piece in of([b"z" * 600_000]).pieces()] == [262144, 262144, 75712]


def test_a_body_of_one_piece_is_joined_without_a_copy() -> None:
    body = b"one piece"
    assert join((body,)) is body


def test_cutting_nothing_yields_nothing() -> None:
    assert list(cut(b"", 10)) == []


def test_a_small_body_of_one_chunk_is_kept_without_a_copy() -> None:
    chunk = b"z" * 100
    assert of([chunk]).pieces()[0] is chunk
