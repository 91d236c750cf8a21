"""The picker of another process as a gateway wants it: a body goes out whole, and reports are told beside all else."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from types import TracebackType
from typing import Any, Self

import msgspec

from kinference.errors import KinferenceError
from kinference.ids import ResponseId, Seconds
from kinference.picker.remote import RemotePicker
from kinference.ports import FinalTokenReport, FirstTokenReport, PickArguments, Placed, PushMetadata
from kinference.vocabulary import AbortReason
from kinference.wire.patience import Patience

_log = logging.getLogger(__name__)

REPORT_PATIENCE: Seconds = 5.0
"""A report that takes longer is given up: the picker's own timer closes the ticket."""


class PickerApart:
    """`ports.Picker` on the calls of the contract. Reports are told for as long as its context is open."""

    def __init__(self, calls: RemotePicker) -> None:
        self._calls = calls
        self._tasks = asyncio.TaskGroup()
        self._telling: dict[ResponseId, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._tasks.__aexit__(kind, error, trace)

    def make_room(self, size: int) -> None:
        """It refuses what it has no room for when that is pushed."""

    def hold(self, size: int) -> None:
        """It counts what it was sent."""

    def let_go(self, size: int) -> None:
        """As above."""

    async def place(self, body: bytes, arguments: PickArguments) -> Placed:
        """What is lost between Pick and Pull is picked anew, once."""
        try:
            return await self._place(body, arguments)
        except _PullFailed:
            pass
        try:
            return await self._place(body, arguments)
        except _PullFailed as failed:
            raise failed.why from None

    async def _place(self, body: bytes, arguments: PickArguments) -> Placed:
        pushed = await self._calls.push_body(_once(body), PushMetadata(arguments.client_request_id, len(body)))
        picked = await self._calls.pick(msgspec.structs.replace(arguments, stream_id=pushed.stream_id))
        if picked.destination is None:
            return Placed(picked)
        try:
            pieces = [piece async for piece in self._calls.pull_body(picked.response_id)]
        except KinferenceError as error:
            self.abort(picked.response_id, AbortReason.PULL_FAILED, type(error).__name__)
            raise _PullFailed(error) from error
        except BaseException:
            self.abort(picked.response_id, AbortReason.NOT_DISPATCHED, "the client went away")
            raise
        return Placed(picked, pieces[0] if len(pieces) == 1 else b"".join(pieces))

    def report_first_token(self, report: FirstTokenReport) -> None:
        self._tell(report.response_id, lambda: self._calls.report_first_token(report))

    def report_final_token(self, report: FinalTokenReport) -> None:
        self._tell(report.response_id, lambda: self._calls.report_final_token(report))

    def abort(self, response_id: ResponseId, reason: AbortReason, detail: str = "") -> None:
        self._tell(response_id, lambda: self._calls.abort(response_id, reason, detail))

    def _tell(self, response_id: ResponseId, report: Callable[[], Coroutine[Any, Any, bool]]) -> None:
        """Each report of a request after the one before it."""
        telling = self._tasks.create_task(_told(report, self._telling.get(response_id)))
        self._telling[response_id] = telling
        telling.add_done_callback(lambda done: self._forget(response_id, done))

    def _forget(self, response_id: ResponseId, done: asyncio.Task[None]) -> None:
        if self._telling.get(response_id) is done:
            del self._telling[response_id]


class _PullFailed(Exception):
    """What was picked could not be had."""

    def __init__(self, why: KinferenceError) -> None:
        self.why = why
        super().__init__(str(why))


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def _told(report: Callable[[], Coroutine[Any, Any, bool]], earlier: asyncio.Task[None] | None) -> None:
    if earlier is not None:
        await asyncio.wait((earlier,))
    try:
        async with Patience(REPORT_PATIENCE):
            await report()
    except TimeoutError:
        _log.warning("a report did not reach the picker: timed out")
    except KinferenceError as error:
        _log.warning("a report did not reach the picker: %s", error)
