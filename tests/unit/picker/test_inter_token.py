import pytest

from kinference.ids import ResponseId
from kinference.picker.inter_token import UPPER_EDGES_MS, filled_buckets, is_usable
from kinference.ports import FinalTokenReport


def report(counts: tuple[int, ...], layout: int) -> FinalTokenReport:
    return FinalTokenReport(ResponseId(1), "m", 1, 1, None, counts, layout)


def test_layout_one_with_fifteen_counts_is_usable() -> None:
    assert is_usable(report((0,) * 15, 1))


@pytest.mark.parametrize(("length", "layout"), [(14, 1), (16, 1), (0, 1), (15, 0), (15, 2)])
def test_nothing_else_is(length: int, layout: int) -> None:
    assert not is_usable(report((1,) * length, layout))


def test_only_filled_buckets_are_named_by_their_upper_edge() -> None:
    counts = (3, *(0,) * 13, 2**32 - 1)
    assert list(filled_buckets(report(counts, 1))) == [("5", 3), ("+Inf", 2**32 - 1)]


def test_the_layout_has_fifteen_edges() -> None:
    assert len(UPPER_EDGES_MS) == 15
