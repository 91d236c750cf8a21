"""The picker by direct call, for a gateway in the same process."""

from collections.abc import AsyncIterator

from kinference.ids import ResponseId
from kinference.picker.desk import Desk
from kinference.ports import (
    FinalTokenReport,
    FirstTokenReport,
    PickArguments,
    PickResult,
    PushedBody,
    PushMetadata,
)
from kinference.vocabulary import AbortReason
from kinference.wire.pieces import cut


class InProcessPicker:
    """`ports.Picker` on a desk. How long a push may idle is for whoever feeds it to say, and a chunk has no limit of
    its own, since no message carries it.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def push_body(self, chunks: AsyncIterator[bytes], metadata: PushMetadata) -> PushedBody:
        stream_id = self._desk.open(metadata.declared_length)
        try:
            async for chunk in chunks:
                for piece in cut(chunk, self._desk.limits.chunk_max_bytes):
                    self._desk.append(stream_id, piece)
            pushed = self._desk.finish(stream_id)
            self._desk.commit(stream_id)
        finally:
            self._desk.discard(stream_id)
        return pushed

    async def pick(self, arguments: PickArguments) -> PickResult:
        return self._desk.pick(arguments)

    async def pull_body(self, response_id: ResponseId) -> AsyncIterator[bytes]:
        ticket = self._desk.claim(response_id)
        try:
            while (piece := self._desk.next_piece(ticket)) is not None:
                self._desk.piece_sent(ticket)
                yield piece
        finally:
            self._desk.end_pull(ticket)

    async def report_first_token(self, report: FirstTokenReport) -> bool:
        return self._desk.first_token(report)

    async def report_final_token(self, report: FinalTokenReport) -> bool:
        return self._desk.final_token(report)

    async def abort(
        self,
        response_id: ResponseId,
        reason: AbortReason,
        detail: str = "",
        client_request_id: str = "",  # noqa: ARG002 - the flow has known it since Pick
    ) -> bool:
        return self._desk.abort(response_id, reason, detail)
