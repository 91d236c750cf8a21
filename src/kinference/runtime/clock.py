"""The system's own time, behind `ports.Clock`."""

import time

from kinference.ids import Seconds


class SystemClock:
    """Monotonic seconds for decisions, wall seconds for people."""

    def now(self) -> Seconds:
        return time.monotonic()

    def wall(self) -> Seconds:
        return time.time()
