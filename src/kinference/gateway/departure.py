"""The end of the process as requests meet it whose answer has not begun: they are told, and can ask elsewhere."""

import asyncio
from types import TracebackType
from typing import Any, Protocol

from kinference.errors import Draining


class Traveller(Protocol):
    """Work that no task does."""

    def turn_back(self, why: Draining) -> None:
        """Time is up: it is to end with this."""
        ...


class Departure:
    """Every piece of work for an answer that no client has heard of yet: each is done within a `with` of this, which
    raises Draining once time is up.
    """

    def __init__(self) -> None:
        self._working: set[asyncio.Task[Any]] = set()
        self._ended: set[asyncio.Task[Any]] = set()
        self._travelling: set[Traveller] = set()
        self._is_over = False

    def __enter__(self) -> None:
        if self._is_over:
            raise _draining()
        self._working.add(_this_task())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task = _this_task()
        was_ended = task in self._ended
        self._working.discard(task)
        self._ended.discard(task)
        if was_ended and isinstance(error, asyncio.CancelledError) and not task.uncancel():  # else its client has gone
            raise _draining() from None

    def join(self, work: Traveller) -> None:
        """As `with` begins, for work that no task does. Raises Draining."""
        if self._is_over:
            raise _draining()
        self._travelling.add(work)

    def leave(self, work: Traveller) -> None:
        """As `with` ends, for such work; harmless when it has not begun."""
        self._travelling.discard(work)

    def end(self) -> None:
        """Time is up."""
        self._is_over = True
        for work in tuple(self._travelling):
            work.turn_back(_draining())
        self._ended |= self._working
        for task in self._ended:
            task.cancel()


def _this_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None, "a coroutine runs in a task"
    return task


def _draining() -> Draining:
    return Draining("the server is shutting down: try again, another instance may answer")
