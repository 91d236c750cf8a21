import pytest

from kinference.ids import ResponseId
from kinference.picker.inter_token import UPPER_EDGES_MS, InterTokenGaps, is_usable
from kinference.ports import FinalTokenReport


def report(counts: tuple[int, ...], layout: int) -> FinalTokenReport:
    return FinalTokenReport(ResponseId(1), "m", 1, 1, None, counts, layout)


def test_layout_one_with_fifteen_counts_is_usable() -> None:
    assert is_usable(report((0,) * 15, 1))


@pytest.mark.parametrize(("length", "layout"), [(14, 1), (16, 1), (0, 1), (15, 0), (15, 2)])
def test_nothing_else_is(length: int, layout: int) -> None:
    assert not is_usable(report((1,) * length, layout))


def test_counts_add_up_by_destination_and_are_taken_once() -> None:
    gaps = InterTokenGaps()
    for _ in range(2):
        gaps.merge("here", report((3, *(0,) * 13, 2**32 - 1), 1))
    gaps.merge("there", report((0, 1, *(0,) * 13), 1))
    assert list(gaps.take()) == [("here", "5", 6), ("here", "+Inf", 2**33 - 2), ("there", "10", 1)]
    assert list(gaps.take()) == []


def test_the_layout_has_fifteen_edges() -> None:
    assert len(UPPER_EDGES_MS) == 15
