"""The picker by direct call, for a gateway in the same process."""

from kinference.ids import ResponseId
from kinference.picker.choosing import Pending
from kinference.picker.desk import Desk
from kinference.picker.late import Late
from kinference.ports import FinalTokenReport, FirstTokenReport, PickArguments, Placed, Placing
from kinference.vocabulary import AbortReason


class InProcessPicker:
    """`ports.Picker` on a desk. How slow and how long an upload may be is for its caller to say."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._reports = desk, desk.reports
        self.make_room, self.hold, self.let_go = desk.make_room, desk.hold, desk.let_go

    def place(self, body: bytes, arguments: PickArguments) -> Placed | Placing:
        placed = self._desk.place(body, arguments)
        return Late(self._desk, placed) if isinstance(placed, Pending) else placed

    def report_first_token(self, report: FirstTokenReport) -> None:
        self._reports.first_token(report)

    def report_final_token(self, report: FinalTokenReport) -> None:
        self._reports.final_token(report)

    def abort(self, response_id: ResponseId, reason: AbortReason, detail: str = "") -> None:
        self._reports.abort(response_id, reason, detail)
