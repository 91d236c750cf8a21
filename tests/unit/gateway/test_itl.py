import pytest

from kinference.gateway.itl import EDGES_MS, InterTokenGaps


@pytest.mark.parametrize(
    ("gap_ms", "bucket"),
    [
        *((0, 0), (5, 0), (5.001, 1), (10, 1), (15, 2), (20, 3), (30, 4), (40, 5), (50, 6), (75, 7), (100, 8)),
        *((150, 9), (200, 10), (300, 11), (500, 12), (1000, 13), (1000.5, 14), (1e9, 14)),
    ],
)
def test_a_gap_goes_into_the_first_bucket_whose_upper_edge_reaches_it(gap_ms: float, bucket: int) -> None:
    gaps = InterTokenGaps()
    gaps.add(gap_ms)
    counts = gaps.counts()
    assert len(counts) == len(EDGES_MS) + 1 == 15
    assert counts.index(1) == bucket
    assert sum(counts) == 1


def test_no_gap_means_no_counts_at_all() -> None:
    assert InterTokenGaps().counts() == ()


def test_what_comes_together_has_no_gap_and_what_comes_first_has_none_before_it() -> None:
    gaps = InterTokenGaps()
    gaps.came(1, 100.0)
    assert gaps.counts() == ()
    gaps.came(3, 100.012)
    assert gaps.counts()[:3] == (2, 0, 1)
