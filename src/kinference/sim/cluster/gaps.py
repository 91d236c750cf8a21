"""How long the gaps between tokens were, counted in buckets of equal ratio."""

from collections import Counter
from math import exp, floor, log

from kinference.ids import Milliseconds, Seconds

RATIO = 1.02
_LOG_RATIO = log(RATIO)


class Gaps:
    """A histogram with an error of one per cent, whatever the range."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def add(self, gap_s: Seconds, count: int) -> None:
        """So many gaps of this length."""
        self._counts[floor(log(max(gap_s, 1e-6)) / _LOG_RATIO)] += count

    def percentile_ms(self, share: float) -> Milliseconds:
        """The length that this share of the gaps does not exceed; 0 without any."""
        left = share * self._counts.total()
        for bucket, count in sorted(self._counts.items()):
            left -= count
            if left <= 0:
                return exp((bucket + 0.5) * _LOG_RATIO) * 1e3
        return 0.0
