"""A picked request as the gateway answers for it: told once how it began, and closed exactly once."""

from kinference.ids import ResponseId, Seconds
from kinference.ports import FinalTokenReport, FirstTokenReport, Picker
from kinference.vocabulary import AbortReason


class Ticket:
    """One response id."""

    def __init__(self, picker: Picker, response_id: ResponseId) -> None:
        self._picker = picker
        self.response_id = response_id
        self.is_dispatched = False
        self._is_open = True

    def began(self, ttft: Seconds, upstream_status: int) -> None:
        """The first byte of the answer arrived, or the destination failed with this status."""
        report = FirstTokenReport(self.response_id, max(round(ttft * 1000), 0), upstream_status)
        self._picker.report_first_token(report)

    def complete(self, report: FinalTokenReport) -> None:
        """The answer is over, in full or as far as it came."""
        if self._is_open:
            self._is_open = False
            self._picker.report_final_token(report)

    def abort(self, reason: AbortReason, detail: str) -> None:
        """The request ended without an answer to account for."""
        if self._is_open:
            self._is_open = False
            self._picker.abort(self.response_id, reason, detail)

    def abandon(self) -> None:
        """Whatever became of the request, it is over; does nothing when that has been told already."""
        if self._is_open:
            reason = AbortReason.UNSPECIFIED if self.is_dispatched else AbortReason.NOT_DISPATCHED
            self.abort(reason, "the client went away")
