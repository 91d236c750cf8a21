"""The clock and the timers of an event loop that goes on when a test says so, and may stand still in between."""

import asyncio
from collections.abc import Callable


class SteppedLoop:
    """Runs what is due when it is told how late it is."""

    def __init__(self) -> None:
        self.seconds = 100.0
        self._timers: list[tuple[float, asyncio.TimerHandle, Callable[..., None]]] = []

    def time(self) -> float:
        return self.seconds

    def call_later(self, delay: float, callback: Callable[..., None]) -> asyncio.TimerHandle:
        return self.call_at(self.seconds + delay, callback)

    def call_at(self, when: float, callback: Callable[..., None]) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, (), self)  # type: ignore[arg-type] # all of a loop that is used
        self._timers.append((when, handle, callback))
        return handle

    def _timer_handle_cancelled(self, _handle: asyncio.TimerHandle) -> None: ...
    def get_debug(self) -> bool:
        return False

    def pass_by(self, seconds: float) -> None:
        """So much later, all at once."""
        self.seconds += seconds
        due = [timer for timer in self._timers if timer[0] <= self.seconds]
        self._timers = [timer for timer in self._timers if timer[0] > self.seconds]
        for _, handle, callback in due:
            if not handle.cancelled():
                callback()
