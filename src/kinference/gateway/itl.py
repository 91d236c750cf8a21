"""The inter-token histogram of a report, in layout 1 of the contract."""

from bisect import bisect_left
from typing import Final

from kinference.ids import Milliseconds

LAYOUT: Final = 1
EDGES_MS: Final[tuple[int, ...]] = (5, 10, 15, 20, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1000)
"""Upper-inclusive edges; what is over the last lies in the fifteenth bucket."""


class InterTokenGaps:
    """Counts of arrival gaps by bucket."""

    def __init__(self) -> None:
        self._counts = [0] * (len(EDGES_MS) + 1)
        self._any = False

    def add(self, gap_ms: Milliseconds, times: int = 1) -> None:
        """A gap between two chunks, so many times."""
        self._counts[bisect_left(EDGES_MS, gap_ms)] += times
        self._any = True

    def counts(self) -> tuple[int, ...]:
        """All fifteen, or none when there was no gap to record."""
        return tuple(self._counts) if self._any else ()
