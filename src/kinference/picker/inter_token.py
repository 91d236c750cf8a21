"""Inter-token histograms of final reports: layout 1 of the contract, merged by destination."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from kinference.ports import FinalTokenReport

LAYOUT: Final = 1
UPPER_EDGES_MS: Final[tuple[str, ...]] = (
    "5",
    "10",
    "15",
    "20",
    "30",
    "40",
    "50",
    "75",
    "100",
    "150",
    "200",
    "300",
    "500",
    "1000",
    "+Inf",
)
"""Upper-inclusive edges of layout 1, in milliseconds."""


class Bucket(NamedTuple):
    """One bucket of one destination's histogram, named by its upper edge."""

    destination: str
    upper_edge_ms: str
    gaps: int


class InterTokenGaps:
    """Counts by destination, added up until they are taken: a report comes often, a scrape seldom."""

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = {}

    def merge(self, destination: str, report: FinalTokenReport) -> None:
        """Add a usable report's counts."""
        merged = self._counts.setdefault(destination, [0] * len(UPPER_EDGES_MS))
        for bucket, count in enumerate(report.itl_bucket_counts):
            merged[bucket] += count

    def take(self) -> Iterator[Bucket]:
        """What came in since the last time; empty buckets are left out."""
        taken, self._counts = self._counts, {}
        for destination, counts in taken.items():
            for edge, count in zip(UPPER_EDGES_MS, counts, strict=True):
                if count:
                    yield Bucket(destination, edge, count)


def is_usable(report: FinalTokenReport) -> bool:
    """Whether the counts can be merged. Any other layout is not guessed at."""
    return report.itl_bucket_layout == LAYOUT and len(report.itl_bucket_counts) == len(UPPER_EDGES_MS)
