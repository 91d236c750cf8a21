"""Inter-token histograms of final reports: layout 1 of the contract, and which reports are usable."""

from collections.abc import Iterator

from kinference.ports import FinalTokenReport

LAYOUT = 1
UPPER_EDGES_MS = ("5", "10", "15", "20", "30", "40", "50", "75", "100", "150", "200", "300", "500", "1000", "+Inf")
"""Upper-inclusive edges of layout 1, in milliseconds."""


def is_usable(report: FinalTokenReport) -> bool:
    """Whether the counts can be merged. Any other layout is not guessed at."""
    return report.itl_bucket_layout == LAYOUT and len(report.itl_bucket_counts) == len(UPPER_EDGES_MS)


def filled_buckets(report: FinalTokenReport) -> Iterator[tuple[str, int]]:
    """The upper edge and the count of each bucket that holds something."""
    return ((edge, count) for edge, count in zip(UPPER_EDGES_MS, report.itl_bucket_counts, strict=True) if count)
