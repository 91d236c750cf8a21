"""The inter-token histogram of a report, in layout 1 of the contract."""

from bisect import bisect_left
from typing import Final

from kinference.ids import Milliseconds, Seconds

LAYOUT: Final = 1
EDGES_MS: Final[tuple[int, ...]] = (5, 10, 15, 20, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1000)
"""Upper-inclusive edges; what is over the last lies in the fifteenth bucket."""


class InterTokenGaps:
    """Counts of arrival gaps by bucket."""

    def __init__(self) -> None:
        self._counts = [0] * (len(EDGES_MS) + 1)
        self._last: Seconds | None = None

    def came(self, events: int, now: Seconds) -> None:
        """So many events with content came at once."""
        last, self._last = self._last, now
        if last is not None:
            self._counts[bisect_left(EDGES_MS, (now - last) * 1000)] += 1
        if events > 1:
            self.add(0.0, events - 1)

    def add(self, gap_ms: Milliseconds, times: int = 1) -> None:
        """A gap between two chunks, so many times."""
        self._counts[bisect_left(EDGES_MS, gap_ms)] += times

    def counts(self) -> tuple[int, ...]:
        """All fifteen, or none when there was no gap to record."""
        return tuple(self._counts) if any(self._counts) else ()
