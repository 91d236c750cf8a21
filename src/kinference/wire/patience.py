"""`asyncio.timeout` for what a peer is to do in time: a time in which this process stood still is not the peer's."""

import asyncio
from types import TracebackType

from kinference.ids import Seconds
from kinference.wire.alarm import Alarm


class Patience:
    """Ends its block with TimeoutError once that has taken so many seconds; an `Alarm` says when."""

    __slots__ = ("_alarm", "_loop", "_seconds", "_timeout")

    def __init__(self, seconds: Seconds) -> None:
        self._seconds = seconds

    async def __aenter__(self) -> "Patience":
        self._loop = asyncio.get_running_loop()
        self._timeout = asyncio.timeout(None)
        await self._timeout.__aenter__()
        self._alarm = Alarm(self._loop, self._seconds, self._end)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._alarm.cancel()
        await self._timeout.__aexit__(kind, error, trace)

    def renew(self) -> None:
        """Begin anew: something has come."""
        self._alarm.cancel()
        self._alarm = Alarm(self._loop, self._seconds, self._end)

    def _end(self) -> None:
        self._timeout.reschedule(self._loop.time())
