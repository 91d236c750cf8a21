"""A picked request as the gateway answers for it: told once how it began, and closed exactly once."""

import asyncio
import logging

from kinference.errors import KinferenceError
from kinference.gateway.patience import Begun, Work
from kinference.ids import ResponseId, Seconds
from kinference.ports import FinalTokenReport, FirstTokenReport, Picker
from kinference.vocabulary import AbortReason

_log = logging.getLogger(__name__)

REPORT_PATIENCE: Seconds = 5.0
"""A report that takes longer is given up: the picker's own timer closes the ticket."""


class Ticket:
    """One response id. No failure to report ever reaches the client, whose answer does not depend on it."""

    def __init__(self, picker: Picker, response_id: ResponseId) -> None:
        self._picker = picker
        self.response_id = response_id
        self.is_dispatched = False
        self._is_open = True

    async def began(self, ttft: Seconds, upstream_status: int) -> None:
        """The first byte of the answer arrived, or the destination failed with this status."""
        report = FirstTokenReport(self.response_id, max(round(ttft * 1000), 0), upstream_status)
        await self._tell(self._picker.report_first_token(report))

    async def complete(self, report: FinalTokenReport) -> None:
        """The answer is over, in full or as far as it came."""
        if self._is_open:
            self._is_open = False
            await self._tell(self._picker.report_final_token(report), shielded=True)

    async def abort(self, reason: AbortReason, detail: str) -> None:
        """The request ended without an answer to account for."""
        if self._is_open:
            self._is_open = False
            await self._tell(self._picker.abort(self.response_id, reason, detail), shielded=True)

    async def abandon(self) -> None:
        """Whatever became of the request, it is over; does nothing when that has been told already."""
        reason = AbortReason.UNSPECIFIED if self.is_dispatched else AbortReason.NOT_DISPATCHED
        await self.abort(reason, "the client went away")

    async def _tell(self, report: Work[bool], *, shielded: bool = False) -> None:
        told = Begun(self._told(report))
        if told.is_done:
            return
        waiting = self._limited(told)
        await (asyncio.shield(waiting) if shielded else waiting)

    async def _told(self, report: Work[bool]) -> None:
        try:
            await report
        except KinferenceError as error:
            _log.warning("a report did not reach the picker: %s", error)

    async def _limited(self, told: Begun[None]) -> None:
        try:
            await told.within(REPORT_PATIENCE)
        except TimeoutError:
            _log.warning("a report did not reach the picker: timed out")
