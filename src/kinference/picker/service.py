"""The Picker service over gRPC, on whichever carrier serves the seam `wire.rpc`."""

from collections.abc import Callable
from typing import TypeAlias

from kinference.errors import ClientGone, Draining, IdleTimeout, KinferenceError
from kinference.ids import ResponseId, StreamId
from kinference.picker import convert
from kinference.picker.desk import Desk
from kinference.picker.held import HeldPick
from kinference.picker.tickets import Ticket
from kinference.ports import PickResult
from kinference.vocabulary import AbortReason, Role
from kinference.wire.access import Access
from kinference.wire.proto import picker_pb2 as pb
from kinference.wire.rpc import Call, Left, RpcError, RpcHandler, RpcReply, RpcService, replying

SERVICE = "kinference.v1.Picker"
ACKNOWLEDGED = {said: pb.ReportFinalTokenResponse(acknowledged=said).SerializeToString() for said in (False, True)}
"""Of either report: both say it alike."""
RELEASED = {said: pb.AbortResponse(released=said).SerializeToString() for said in (False, True)}


def picker_service(desk: Desk, access: Access | None = None) -> RpcService:
    """The six methods of the contract; without an `access` nobody is asked for a token."""
    methods, guard = PickerMethods(desk), access or Access()
    replies: dict[str, RpcReply] = {
        "Pick": methods.pick,
        "PullBody": methods.pull_body,
        "ReportFirstToken": methods.report_first_token,
        "ReportFinalToken": methods.report_final_token,
        "Abort": methods.abort,
    }
    handlers = {"PushBody": methods.push_body, **{name: replying(reply) for name, reply in replies.items()}}
    replies["PushBody"] = methods.push_whole_body
    return RpcService(
        SERVICE,
        {name: _guarded(handler, guard, desk.note_refusal) for name, handler in handlers.items()},
        inline=True,
        replies={name: _guarded_reply(reply, guard, desk.note_refusal) for name, reply in replies.items()},
    )


class PickerMethods:
    """Each method reads a call's messages, asks the desk, and writes the answer."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._reports = desk, desk.reports

    async def push_body(self, call: Call) -> None:
        """Takes a body in. It is committed only once the reply is written: a reset may look like a clean end."""
        stream_id = self._desk.open(self._declared(call))
        try:
            await self._receive(call, stream_id)
            await call.send(convert.push_response(self._desk.finish(stream_id)))
            self._desk.commit(stream_id)
        finally:
            self._desk.discard(stream_id)

    def push_whole_body(self, message: bytes | None, call: Call) -> bytes:
        """The same where the push is all there, and was not reset: nothing is left that could break it off."""
        declared = self._declared(call)
        return convert.push_response(self._desk.push(declared, None if message is None else convert.chunk(message)))

    def _declared(self, call: Call) -> int | None:
        """The length of a push that may begin."""
        if self._desk.is_draining:
            raise Draining("the server is shutting down: push to another instance")
        return convert.declared_length(call.metadata)

    async def _receive(self, call: Call, stream_id: StreamId) -> None:
        """Take in all chunks. The clock runs only while we are willing to read."""
        budget = self._desk.limits.push_idle_timeout
        try:
            while (message := await call.receive(budget)) is not None:
                self._desk.append(stream_id, convert.chunk(message))
        except TimeoutError:
            raise IdleTimeout(f"no chunk arrived for {budget:g} seconds") from None

    def pick(self, message: bytes | None, call: Call) -> bytes | Left:
        arguments = convert.pick_arguments(message, call.metadata, self._desk.limits.name_max_chars)
        result = self._desk.pick(arguments, call.wake, remote=True)
        if isinstance(result, HeldPick):
            return self._held(call, result)
        answer = _picked(call, result)
        return answer if call.takes(answer) else self._tell(call, result, answer)

    async def _held(self, call: Call, held: HeldPick[PickResult]) -> None:
        result: PickResult | HeldPick[PickResult] = held
        while isinstance(result, HeldPick):
            try:
                await call.rest()
            except BaseException:
                self._desk.give_up(result)
                raise
            result = self._desk.resume(result)
        await self._tell(call, result, _picked(call, result))

    async def _tell(self, call: Call, result: PickResult, answer: bytes) -> None:
        try:
            await call.send(answer)
        except BaseException:
            self._reports.abort(result.response_id, AbortReason.NOT_DISPATCHED, "its caller left before the answer")
            raise

    def pull_body(self, message: bytes | None, call: Call) -> bytes | Left:
        """Hands a body back. A pull that is cut from our side may be waiting for its reader, so it is woken."""
        response_id = ResponseId(convert.decode(pb.PullBodyRequest, message).response_id)
        ticket = self._desk.unpulled(response_id)
        if len(ticket.pieces) == 1:
            whole = convert.body_chunk(ticket.pieces[0])
            if call.takes(whole):
                self._desk.pulled(ticket)
                return whole
        return self._pull(call, self._desk.claim(response_id, call.cut))

    async def _pull(self, call: Call, ticket: Ticket) -> None:
        try:
            while (piece := self._desk.next_piece(ticket)) is not None:
                await call.send(convert.body_chunk(piece))
                self._desk.piece_sent(ticket)
        except ClientGone:
            self._desk.next_piece(ticket)  # raises why, where it was cut from our side
            raise
        finally:
            self._desk.end_pull(ticket)

    def report_first_token(self, message: bytes | None, _call: Call) -> bytes:
        return ACKNOWLEDGED[self._reports.first_token(convert.first_token_report(message))]

    def report_final_token(self, message: bytes | None, call: Call) -> bytes:
        return ACKNOWLEDGED[self._reports.final_token(convert.final_token_report(message, call.metadata))]

    def abort(self, message: bytes | None, _call: Call) -> bytes:
        return RELEASED[self._reports.abort(*convert.abort_arguments(message))]


def _picked(call: Call, result: PickResult) -> bytes:
    """The answer to a Pick, and beside it what its message has no place for."""
    for name, value in convert.pick_fields(result):
        call.tell(name, value)
    return convert.pick_response(result)


Note: TypeAlias = Callable[[KinferenceError], None]


def _guarded(handler: RpcHandler, access: Access, note: Note) -> RpcHandler:
    """Let in only callers of the picker, before anything is read; and translate our failures, once."""

    async def handle(call: Call) -> None:
        try:
            if access.asks:
                access.check(call.metadata, Role.PICKER, names=call.peer_names)
            await handler(call)
        except KinferenceError as error:
            if not _is_told(error, note):
                raise
            raise _told(error) from error

    return handle


def _guarded_reply(reply: RpcReply, access: Access, note: Note) -> RpcReply:
    """The same for a plain reply, and for what it leaves to do."""

    async def finish(left: Left) -> None:
        try:
            await left
        except KinferenceError as error:
            if not _is_told(error, note):
                raise
            raise _told(error) from error

    def answer(message: bytes | None, call: Call) -> bytes | Left:
        try:
            if access.asks:
                access.check(call.metadata, Role.PICKER, names=call.peer_names)
            answered = reply(message, call)
        except KinferenceError as error:
            if not _is_told(error, note):
                raise
            raise _told(error) from error
        return answered if isinstance(answered, bytes) else finish(answered)

    return answer


def _is_told(error: KinferenceError, note: Note) -> bool:
    """Note a failure. Returns whether its caller is told of it, which is not of our own faults."""
    note(error)
    return type(error) in convert.STATUS


def _told(error: KinferenceError) -> RpcError:
    """To be raised where it is made: a local that held it would close a ring with its traceback, the ticket within."""
    return RpcError(convert.STATUS[type(error)], str(error))
