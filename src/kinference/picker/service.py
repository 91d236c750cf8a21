"""The Picker service over gRPC, on whichever carrier serves the seam `wire.rpc`; and of its methods what waits."""

from kinference.errors import ClientGone, IdleTimeout, KinferenceError
from kinference.ids import StreamId
from kinference.picker import convert
from kinference.picker.desk import Desk
from kinference.picker.held import HeldPick
from kinference.picker.replies import Note, PickerReplies, declared_length, guarded_reply, is_told, picked, told
from kinference.picker.tickets import Ticket
from kinference.ports import PickResult
from kinference.vocabulary import AbortReason, Role
from kinference.wire.access import Access
from kinference.wire.rpc import Call, Left, RpcHandler, RpcReply, RpcService, replying

SERVICE = "kinference.v1.Picker"


def picker_service(desk: Desk, access: Access | None = None) -> RpcService:
    """The six methods of the contract; without an `access` nobody is asked for a token."""
    methods, guard, note = PickerMethods(desk), access or Access(), desk.note_refusal
    answers = PickerReplies(desk, methods)
    replies: dict[str, RpcReply] = {
        "Pick": answers.pick,
        "PullBody": answers.pull_body,
        "ReportFirstToken": answers.report_first_token,
        "ReportFinalToken": answers.report_final_token,
        "Abort": answers.abort,
    }
    handlers = {"PushBody": methods.push_body, **{name: replying(reply) for name, reply in replies.items()}}
    replies["PushBody"] = answers.push_whole_body

    def finish(left: Left) -> Left:
        return _finished(left, note)

    return RpcService(
        SERVICE,
        {name: _guarded(handler, guard, note) for name, handler in handlers.items()},
        inline=True,
        replies={name: guarded_reply(reply, guard, note, finish) for name, reply in replies.items()},
    )


class PickerMethods:
    """What waits: a push for its chunks, a Pick for its turn, an answer for its reader."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._reports = desk, desk.reports

    async def push_body(self, call: Call) -> None:
        """Takes a body in. It is committed only once the reply is written: a reset may look like a clean end."""
        stream_id = self._desk.open(declared_length(self._desk, call))
        try:
            await self._receive(call, stream_id)
            await call.send(convert.push_response(self._desk.finish(stream_id)))
            self._desk.commit(stream_id)
        finally:
            self._desk.discard(stream_id)

    async def _receive(self, call: Call, stream_id: StreamId) -> None:
        """Take in all chunks. The clock runs only while we are willing to read."""
        budget = self._desk.limits.push_idle_timeout
        try:
            while (message := await call.receive(budget)) is not None:
                self._desk.append(stream_id, convert.chunk(message))
        except TimeoutError:
            raise IdleTimeout(f"no chunk arrived for {budget:g} seconds") from None

    async def held(self, call: Call, held: HeldPick[PickResult]) -> None:
        """Answer a Pick when its time has come."""
        result: PickResult | HeldPick[PickResult] = held
        while isinstance(result, HeldPick):
            try:
                await call.rest()
            except BaseException:
                self._desk.give_up(result)
                raise
            result = self._desk.resume(result)
        await self.tell(call, result, picked(call, result))

    async def tell(self, call: Call, result: PickResult, answer: bytes) -> None:
        """Answer a Pick whose caller may have left."""
        try:
            await call.send(answer)
        except BaseException:
            self._reports.abort(result.response_id, AbortReason.NOT_DISPATCHED, "its caller left before the answer")
            raise

    async def pull(self, call: Call, ticket: Ticket) -> None:
        """Hand a body back as its reader takes it."""
        try:
            while (piece := self._desk.next_piece(ticket)) is not None:
                await call.send(convert.body_chunk(piece))
                self._desk.piece_sent(ticket)
        except ClientGone:
            self._desk.next_piece(ticket)  # raises why, where it was cut from our side
            raise
        finally:
            self._desk.end_pull(ticket)


def _guarded(handler: RpcHandler, access: Access, note: Note) -> RpcHandler:
    """`guarded_reply` for what is no plain reply."""

    async def handle(call: Call) -> None:
        try:
            if access.asks:
                access.check(call.metadata, Role.PICKER, names=call.peer_names)
            await handler(call)
        except KinferenceError as error:
            if not is_told(error, note):
                raise
            raise told(error) from error

    return handle


async def _finished(left: Left, note: Note) -> None:
    """What a plain reply has left to do, its failures translated."""
    try:
        await left
    except KinferenceError as error:
        if not is_told(error, note):
            raise
        raise told(error) from error
