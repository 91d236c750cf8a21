"""The Picker service over gRPC, on whichever carrier serves the seam `wire.rpc`."""

from collections.abc import Callable

from kinference.errors import ClientGone, Draining, IdleTimeout, KinferenceError
from kinference.ids import ResponseId, StreamId
from kinference.picker import convert
from kinference.picker.desk import Desk
from kinference.picker.held import HeldPick
from kinference.vocabulary import AbortReason, Role
from kinference.wire.access import Access
from kinference.wire.proto import picker_pb2 as pb
from kinference.wire.rpc import Call, RpcError, RpcHandler, RpcReply, RpcService, replying

SERVICE = "kinference.v1.Picker"
ACKNOWLEDGED = {said: pb.ReportFinalTokenResponse(acknowledged=said).SerializeToString() for said in (False, True)}
"""Of either report: both say it alike."""
RELEASED = {said: pb.AbortResponse(released=said).SerializeToString() for said in (False, True)}


def picker_service(desk: Desk, access: Access | None = None) -> RpcService:
    """The six methods of the contract; without an `access` nobody is asked for a token."""
    methods, guard = PickerMethods(desk), access or Access()
    replies: dict[str, RpcReply] = {
        "ReportFirstToken": methods.report_first_token,
        "ReportFinalToken": methods.report_final_token,
        "Abort": methods.abort,
    }
    handlers: dict[str, RpcHandler] = {
        "PushBody": methods.push_body,
        "Pick": methods.pick,
        "PullBody": methods.pull_body,
        **{name: replying(reply) for name, reply in replies.items()},
    }
    return RpcService(
        SERVICE,
        {name: _guarded(handler, guard, desk.note_refusal) for name, handler in handlers.items()},
        inline=True,
        replies={name: _guarded_reply(reply, guard) for name, reply in replies.items()},
    )


class PickerMethods:
    """Each method reads a call's messages, asks the desk, and writes the answer."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def push_body(self, call: Call) -> None:
        """Takes a body in. It is committed only once the reply is written: a reset may look like a clean end."""
        if self._desk.is_draining:
            raise Draining("the server is shutting down: push to another instance")
        stream_id = self._desk.open(convert.declared_length(call.metadata))
        try:
            await self._receive(call, stream_id)
            pushed = self._desk.finish(stream_id)
            reply = pb.PushBodyResponse(stream_id=pushed.stream_id, total_bytes=pushed.total_bytes)
            await call.send(reply.SerializeToString())
            self._desk.commit(stream_id)
        finally:
            self._desk.discard(stream_id)

    async def _receive(self, call: Call, stream_id: StreamId) -> None:
        """Take in all chunks. The clock runs only while we are willing to read."""
        budget = self._desk.limits.push_idle_timeout
        try:
            while (message := await call.receive(budget)) is not None:
                self._desk.append(stream_id, convert.decode(pb.BodyChunk, message).chunk)
        except TimeoutError:
            raise IdleTimeout(f"no chunk arrived for {budget:g} seconds") from None

    async def pick(self, call: Call) -> None:
        message = await call.receive()
        arguments = convert.pick_arguments(message, call.metadata, self._desk.limits.name_max_chars)
        result = self._desk.pick(arguments, call.wake, remote=True)
        while isinstance(result, HeldPick):
            try:
                await call.rest()
            except BaseException:
                self._desk.give_up(result)
                raise
            result = self._desk.resume(result)
        for name, value in convert.pick_fields(result):
            call.tell(name, value)
        try:
            await call.send(convert.pick_response(result))
        except BaseException:
            self._desk.abort(result.response_id, AbortReason.NOT_DISPATCHED, "its caller left before the answer")
            raise

    async def pull_body(self, call: Call) -> None:
        """Hands a body back. A pull that is cut from our side may be waiting for its reader, so it is woken."""
        response_id = convert.decode(pb.PullBodyRequest, await call.receive()).response_id
        ticket = self._desk.claim(ResponseId(response_id), call.cut)
        try:
            while (piece := self._desk.next_piece(ticket)) is not None:
                await call.send(pb.BodyChunk(chunk=piece).SerializeToString())
                self._desk.piece_sent(ticket)
        except ClientGone:
            self._desk.next_piece(ticket)  # raises why, where it was cut from our side
            raise
        finally:
            self._desk.end_pull(ticket)

    def report_first_token(self, message: bytes | None, _call: Call) -> bytes:
        return ACKNOWLEDGED[self._desk.first_token(convert.first_token_report(message))]

    def report_final_token(self, message: bytes | None, call: Call) -> bytes:
        return ACKNOWLEDGED[self._desk.final_token(convert.final_token_report(message, call.metadata))]

    def abort(self, message: bytes | None, _call: Call) -> bytes:
        return RELEASED[self._desk.abort(*convert.abort_arguments(message))]


def _guarded(handler: RpcHandler, access: Access, note: Callable[[KinferenceError], None]) -> RpcHandler:
    """Let in only callers of the picker, before anything is read; and translate our failures, once."""

    async def handle(call: Call) -> None:
        try:
            if access.asks:
                access.check(call.metadata, Role.PICKER, names=call.peer_names)
            await handler(call)
        except KinferenceError as error:
            note(error)
            if type(error) not in convert.STATUS:
                raise
            raise _told(error) from error

    return handle


def _guarded_reply(reply: RpcReply, access: Access) -> RpcReply:
    """The same for a plain reply."""

    def answer(message: bytes | None, call: Call) -> bytes:
        try:
            if access.asks:
                access.check(call.metadata, Role.PICKER, names=call.peer_names)
            return reply(message, call)
        except KinferenceError as error:
            if type(error) not in convert.STATUS:
                raise
            raise _told(error) from error

    return answer


def _told(error: KinferenceError) -> RpcError:
    """A failure as its caller is told of it."""
    return RpcError(convert.STATUS[type(error)], str(error))
