"""One request that a server's handler answers: in calls that do not wait for as long as its course goes so, then in a
task.
"""

import asyncio
import logging
from typing import Final, Protocol

from kinference.wire.exchange import Course, Exchange

_log: Final = logging.getLogger(__name__)


class Visit(Exchange, Protocol):
    """An exchange of one of the server's connections."""

    is_over: bool
    """Whether the answer was finished or broken off, after which nobody cancels the handler."""
    is_started: bool

    @property
    def is_gone(self) -> bool:
        """Whether nobody is there any more to take the answer."""
        ...

    def give_up(self, status: int) -> None:
        """Answer with a bare status where the head has not gone and somebody listens, else break off."""
        ...

    def break_off(self) -> None:
        """End it for a handler that was cancelled."""
        ...


class Handling(Protocol):
    """What runs a request: a task, or its work until it needs one."""

    def cancel(self) -> object:
        """End it; what it leaves open is closed by itself."""
        ...


class Host(Protocol):
    """The server of a request."""

    def attend(self, work: "OwnWork") -> asyncio.Task[None]:
        """Await its course, in a task."""
        ...

    def leave(self, handling: Handling) -> None:
        """It is over."""
        ...


class OwnWork:
    """A `Work`. Counts as one that runs until its host has let it go."""

    __slots__ = ("_host", "_is_cancelled", "_is_running", "_task", "course", "exchange")

    def __init__(self, host: Host, exchange: Visit, course: Course) -> None:
        self._host, self.exchange = host, exchange
        self.course: Course | None = course
        self._task: asyncio.Task[None] | None = None
        self._is_running = self._is_cancelled = False

    def begin(self) -> None:
        """Set out."""
        if self.course is not None and not self.course.begin(self):
            self.wait()

    def over(self) -> None:
        self.end()
        finish(self.exchange)

    def end(self) -> None:
        """Nothing of it is left to be done. Its connection may keep it until the next request, and what it holds with
        it.
        """
        self.course = None
        self._host.leave(self)

    def wait(self) -> None:
        self._task = self._host.attend(self)

    def run(self) -> None:
        """The task has begun. One that were cancelled before would not get to close what its course has open."""
        self._is_running = True
        if self._is_cancelled and self._task is not None:
            self._task.cancel()

    def cancel(self) -> None:
        """End it, in a task of its own: there is more to a request's end than can be done here."""
        if self.course is None:
            return
        if self._task is None:
            self.course.stop()
        elif self._is_running:
            self._task.cancel()
        else:
            self._is_cancelled = True


def finish(exchange: Visit) -> None:
    """Its handler has come to its end, and so should the answer. One that found its client gone owes none: it may have
    come to its end before it could be cancelled for that.
    """
    if not (exchange.is_over or exchange.is_gone):
        _log.error("handler left its answer unfinished: %s %s", exchange.method, exchange.path)
        exchange.give_up(500)
