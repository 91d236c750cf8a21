"""One timer for many connections: who is due is found when it rings, so that moving a deadline costs an assignment."""

import asyncio
from typing import Final, Protocol

from kinference.ids import Seconds
from kinference.wire.alarm import reprieve

NEVER: Final = float("inf")
_PAUSE: Final[Seconds] = 0.25
"""Between two rounds, so that many deadlines close together cost a few rounds and not one each."""
_EARLY: Final[Seconds] = 0.001
"""Event loops count in milliseconds, and may ring just before the time."""


class Waiting(Protocol):
    """Something that will not wait for ever."""

    deadline: Seconds

    def expire(self) -> None:
        """The deadline has passed."""
        ...


class Deadlines:
    """Watches deadlines by the event loop's clock. A deadline is met at once, or within a quarter of a second."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._watched: set[Waiting] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = NEVER
        self._is_late = False
        """It rang late, and waits once more for what has come meanwhile."""

    def watch(self, waiting: Waiting) -> None:
        """Begin to watch."""
        self._watched.add(waiting)

    def forget(self, waiting: Waiting) -> None:
        """Stop watching; harmless for what is not watched."""
        self._watched.discard(waiting)

    def give(self, waiting: Waiting, patience: Seconds) -> None:
        """Let it wait for so long from now on."""
        waiting.deadline = deadline = self._loop.time() + patience
        if deadline < self._rings_at:
            self._ring_at(deadline)

    def close(self) -> None:
        """Ring no more."""
        self._watched.clear()
        self._ring_at(NEVER)

    def _ring_at(self, when: Seconds) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._rings_at = when
        self._timer = None if when == NEVER else self._loop.call_at(when, self._ring)

    def _ring(self) -> None:
        now = self._loop.time() + _EARLY
        longer = 0.0 if self._is_late else reprieve(now - self._rings_at)
        self._is_late = longer > 0
        if longer:
            self._ring_at(now + longer)
            return
        self._timer, self._rings_at = None, NEVER
        for waiting in [waiting for waiting in self._watched if waiting.deadline <= now]:
            waiting.deadline = NEVER
            waiting.expire()
        earliest = min((waiting.deadline for waiting in self._watched), default=NEVER)
        if earliest < self._rings_at:
            self._ring_at(max(earliest, now + _PAUSE) if earliest != NEVER else NEVER)
