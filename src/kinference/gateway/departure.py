"""The end of the process as requests meet it whose answer has not begun: they are told, and can ask elsewhere."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from kinference.errors import Draining

Answer = TypeVar("Answer")


class Departure:
    """Every piece of work for an answer that no client has heard of yet."""

    def __init__(self) -> None:
        self._working: set[asyncio.Task[Any]] = set()
        self._ended: set[asyncio.Task[Any]] = set()
        self._is_over = False

    async def unless_over(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Do the work. Raises Draining once time is up."""
        if self._is_over:
            work.close()
            raise _draining()
        task = asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"
        self._working.add(task)
        try:
            return await work
        except asyncio.CancelledError:
            if task not in self._ended or task.uncancel():  # its client has gone as well
                raise
            raise _draining() from None
        finally:
            self._working.discard(task)
            self._ended.discard(task)

    def end(self) -> None:
        """Time is up."""
        self._is_over = True
        self._ended |= self._working
        for task in self._ended:
            task.cancel()


def _draining() -> Draining:
    return Draining("the server is shutting down: try again, another instance may answer")
