"""The system's own time, behind `ports.Clock`."""

import time


class SystemClock:
    """Monotonic seconds for decisions, wall seconds for people. Asked a dozen times a request, so not by way of methods
    of its own.
    """

    now = staticmethod(time.monotonic)
    wall = staticmethod(time.time)
