"""Alarms that first let in what has come while the process stood still.

A process may be stopped for longer than any patience: a virtual machine that is moved, a debugger, a starved host. When
it goes on, event loops run what is due before they read what has long arrived, and would blame peers for their own
silence. So an alarm that rings late waits once more, as long again as it was late, before it means it.
"""

import asyncio
from collections.abc import Callable

from kinference.ids import Seconds

STOOD_STILL: Seconds = 0.05
"""Later than this is no delay of a loop that has much to do."""
REPRIEVE_MAX: Seconds = 5.0
"""However long it stood still: what has come is read in a moment, what was lost on the way is sent again."""


def reprieve(late: Seconds) -> Seconds:
    """How much longer to wait for what should have come by now, when it was noticed so late; 0: no longer."""
    return min(late, REPRIEVE_MAX) if late > STOOD_STILL else 0.0


class Alarm:
    """Rings once, after so many seconds in which there was a chance to hear something."""

    __slots__ = ("_due", "_loop", "_ring", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: Seconds, ring: Callable[[], None]) -> None:
        self._loop, self._ring = loop, ring
        self._due = loop.time() + seconds
        self._timer = loop.call_later(seconds, self._end)

    def cancel(self) -> None:
        """Never mind. Harmless once it has rung."""
        self._timer.cancel()

    def _end(self) -> None:
        longer = reprieve(self._loop.time() - self._due)
        if longer:
            self._timer = self._loop.call_later(longer, self._ring)
        else:
            self._ring()
