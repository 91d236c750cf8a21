"""Waiting with a limit costs a timer, and a shield costs a task: here only where there is something to wait for.

Within one process most of what is awaited ends without ever waiting, so each coroutine is first run as far as it goes.
"""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

from kinference.ids import Seconds

T = TypeVar("T")
Work = Coroutine[Any, Any, T]


class Begun(Generic[T]):
    """A coroutine that has been run as far as it goes by itself.

    Where another task than the one that began it goes on with it, it may not open a timeout or a task group before its
    first wait: those belong to one task.
    """

    __slots__ = ("_rest", "_result", "is_done")

    def __init__(self, work: Work[T]) -> None:
        self._rest: _Rest[T] | None = None
        self._result: T | None = None
        self.is_done = False
        """Whether there was nothing to wait for."""
        try:
            self._rest = _Rest(work, work.send(None))
        except StopIteration as finished:
            self._result = finished.value
            self.is_done = True

    @property
    def result(self) -> T:
        """What it returned, where it is done."""
        return self._result  # type: ignore[return-value] # T may be None

    async def wait(self) -> T:
        """What it returns in the end."""
        return self.result if self._rest is None else await self._rest

    async def within(self, patience: Seconds) -> T:
        """What it returns in the end. Raises TimeoutError when that takes longer."""
        if self.is_done:
            return self.result
        async with asyncio.timeout(patience):
            return await self.wait()


class _Rest(Generator[Any, Any, T]):
    """What is left of a coroutine that has been stepped once: first what it waits for, then the coroutine itself."""

    __slots__ = ("_is_first", "_waited_for", "_work")

    def __init__(self, work: Work[T], waited_for: object) -> None:
        self._work, self._waited_for, self._is_first = work, waited_for, True

    def __await__(self) -> Generator[Any, Any, T]:
        return self

    def send(self, value: object) -> object:
        if self._is_first:
            self._is_first = False
            return self._waited_for
        return self._work.send(value)

    def throw(self, *error: Any) -> object:  # noqa: ANN401 - the interface's own
        return self._work.throw(*error)
