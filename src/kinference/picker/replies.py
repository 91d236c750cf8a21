"""What the Picker's methods answer where the whole request is there: plain functions, as nearly every call ends in one.

What has to wait, for its turn or for its reader, is left to `service.py`.
"""

from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

from kinference.errors import Draining, KinferenceError
from kinference.ids import ResponseId
from kinference.picker import convert
from kinference.picker.desk import Desk
from kinference.picker.held import HeldPick
from kinference.picker.tickets import Ticket
from kinference.ports import PickResult
from kinference.vocabulary import Role
from kinference.wire.access import Access
from kinference.wire.proto import picker_pb2 as pb
from kinference.wire.rpc import Call, Left, RpcError, RpcReply

PICKER: Final = Role.PICKER
"""By a name of its own: reaching the member of an enumeration costs ten times as much."""
ACKNOWLEDGED: Final = {
    said: pb.ReportFinalTokenResponse(acknowledged=said).SerializeToString() for said in (False, True)
}
"""Of either report: both say it alike."""
RELEASED: Final = {said: pb.AbortResponse(released=said).SerializeToString() for said in (False, True)}

Note: TypeAlias = Callable[[KinferenceError], None]
Finish: TypeAlias = Callable[[Left], Left]


class Waiting(Protocol):
    """What is left to do where a method cannot answer at once."""

    def held(self, call: Call, held: HeldPick[PickResult]) -> Left:
        """Answer a Pick when its time has come."""

    def tell(self, call: Call, result: PickResult, answer: bytes) -> Left:
        """Answer a Pick whose caller may have left."""

    def pull(self, call: Call, ticket: Ticket) -> Left:
        """Hand a body back as its reader takes it."""


class PickerReplies:
    """Each reads its message, asks the desk, and makes the answer."""

    def __init__(self, desk: Desk, waiting: Waiting) -> None:
        self._desk, self._reports, self._waiting = desk, desk.reports, waiting

    def push_whole_body(self, message: bytes | None, call: Call) -> bytes:
        """A push that is all there, and was not reset: nothing is left that could break it off."""
        declared = declared_length(self._desk, call)
        return convert.push_response(self._desk.push(declared, None if message is None else convert.chunk(message)))

    def pick(self, message: bytes | None, call: Call) -> bytes | Left:
        arguments = convert.pick_arguments(message, call.metadata, self._desk.limits.name_max_chars)
        result = self._desk.pick(arguments, call.wake, remote=True)
        if isinstance(result, HeldPick):
            return self._waiting.held(call, result)
        answer = picked(call, result)
        return answer if call.takes(answer) else self._waiting.tell(call, result, answer)

    def pull_body(self, message: bytes | None, call: Call) -> bytes | Left:
        """Hands a body back. A pull that is cut from our side may be waiting for its reader, so it is woken."""
        response_id = ResponseId(convert.decode(pb.PullBodyRequest, message).response_id)
        ticket = self._desk.unpulled(response_id)
        if len(ticket.pieces) == 1:
            whole = convert.body_chunk(ticket.pieces[0])
            if call.takes(whole):
                self._desk.pulled(ticket)
                return whole
        return self._waiting.pull(call, self._desk.claim(response_id, call.cut))

    def report_first_token(self, message: bytes | None, _call: Call) -> bytes:
        return ACKNOWLEDGED[self._reports.first_token(convert.first_token_report(message))]

    def report_final_token(self, message: bytes | None, call: Call) -> bytes:
        return ACKNOWLEDGED[self._reports.final_token(convert.final_token_report(message, call.metadata))]

    def abort(self, message: bytes | None, _call: Call) -> bytes:
        return RELEASED[self._reports.abort(*convert.abort_arguments(message))]


def declared_length(desk: Desk, call: Call) -> int | None:
    """The length of a push that may begin."""
    if desk.is_draining:
        raise Draining("the server is shutting down: push to another instance")
    return convert.declared_length(call.metadata)


def picked(call: Call, result: PickResult) -> bytes:
    """The answer to a Pick, and beside it what its message has no place for."""
    for name, value in convert.pick_fields(result):
        call.tell(name, value)
    return convert.pick_response(result)


def guarded_reply(reply: RpcReply, access: Access, note: Note, finish: Finish) -> RpcReply:
    """Let in only callers of the picker, before anything is read; translate our failures, once, and have what is left
    to do finished in the same way.
    """

    def answer(message: bytes | None, call: Call) -> bytes | Left:
        try:
            if access.asks:
                access.check(call.metadata, PICKER, names=call.peer_names)
            answered = reply(message, call)
        except KinferenceError as error:
            if not is_told(error, note):
                raise
            raise told(error) from error
        return answered if isinstance(answered, bytes) else finish(answered)

    return answer


def is_told(error: KinferenceError, note: Note) -> bool:
    """Note a failure. Returns whether its caller is told of it, which is not of our own faults."""
    note(error)
    return type(error) in convert.STATUS


def told(error: KinferenceError) -> RpcError:
    """To be raised where it is made: a local that held it would close a ring with its traceback, the ticket within."""
    return RpcError(convert.STATUS[type(error)], str(error))
