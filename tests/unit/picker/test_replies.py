"""Answers where the whole request is there."""

from collections.abc import Sequence

import pytest

from kinference.errors import KinferenceError, UnknownId
from kinference.ids import ResponseId
from kinference.picker import convert
from kinference.picker.desk import Desk
from kinference.picker.held import HeldPick
from kinference.picker.limits import PickerLimits
from kinference.picker.replies import PickerReplies, guarded_reply
from kinference.picker.tickets import Ticket
from kinference.ports import PickResult
from kinference.vocabulary import Role
from kinference.wire.access import Access, Token
from kinference.wire.proto import picker_pb2 as pb
from kinference.wire.rpc import Call, Left, RpcError, Status
from tests.unit.picker.steps import CHAT


class AtOnce:
    """A call that asks for nothing to wait; whether its peer takes an answer at once is for the test to say."""

    def __init__(self, metadata: Sequence[tuple[str, str | bytes]] = (), *, takes_all: bool = True) -> None:
        self.metadata, self.takes_all = metadata, takes_all
        self.peer_names: Sequence[str] = ()

    async def receive(self, timeout: float | None = None) -> bytes | None:
        raise NotImplementedError

    async def send(self, message: bytes) -> None:
        raise NotImplementedError

    def tell(self, name: str, value: str) -> None:
        raise NotImplementedError

    def takes(self, message: bytes) -> bool:
        return self.takes_all

    async def rest(self) -> None:
        raise NotImplementedError

    def wake(self) -> None:
        raise NotImplementedError

    def cut(self) -> None:
        pass


class Noting:
    """What is left to do, noted and done at once."""

    def __init__(self) -> None:
        self.left: list[object] = []

    async def held(self, call: Call, held: HeldPick[PickResult]) -> None:
        self.left.append(held)

    async def tell(self, call: Call, result: PickResult, answer: bytes) -> None:
        self.left.append(answer)

    async def pull(self, call: Call, ticket: Ticket) -> None:
        self.left.append(ticket)


@pytest.fixture
def limits() -> PickerLimits:
    return PickerLimits()


def pushed(replies: PickerReplies, call: Call) -> int:
    return pb.PushBodyResponse.FromString(replies.push_whole_body(convert.body_chunk(CHAT), call)).stream_id


async def test_what_cannot_go_at_once_is_left_to_wait(desk: Desk) -> None:
    waiting, call = Noting(), AtOnce(takes_all=False)
    replies = PickerReplies(desk, waiting)
    left = replies.pick(pb.PickRequest(body_stream_id=pushed(replies, call), tenant="acme").SerializeToString(), call)
    assert not isinstance(left, bytes)
    await left
    (answer,) = waiting.left
    assert isinstance(answer, bytes)
    picked = pb.PickResponse.FromString(answer)
    assert picked.body_total_bytes == len(CHAT)
    left = replies.pull_body(pb.PullBodyRequest(response_id=picked.response_id).SerializeToString(), call)
    assert not isinstance(left, bytes)
    await left
    assert isinstance(waiting.left[1], Ticket)
    with pytest.raises(UnknownId):
        desk.unpulled(ResponseId(picked.response_id))


async def test_what_can_go_at_once_is_the_answer(desk: Desk) -> None:
    waiting, call = Noting(), AtOnce()
    replies = PickerReplies(desk, waiting)
    answer = replies.pick(pb.PickRequest(body_stream_id=pushed(replies, call)).SerializeToString(), call)
    assert isinstance(answer, bytes)
    pull = pb.PullBodyRequest(response_id=pb.PickResponse.FromString(answer).response_id)
    assert replies.pull_body(pull.SerializeToString(), call) == convert.body_chunk(CHAT)
    assert waiting.left == []


async def test_a_guarded_reply_lets_in_pickers_alone_and_tells_failures_by_their_status() -> None:
    noted: list[KinferenceError] = []
    finished: list[Left] = []
    access = Access([Token("picker", Role.PICKER, "secret"), Token("other", Role.ADMIN, "another")])

    async def rest() -> None:
        raise NotImplementedError

    def reply(message: bytes | None, _call: Call) -> bytes | Left:
        if message is None:
            raise UnknownId("no such id")
        if message == b"fault":
            raise KinferenceError("our own")
        return message or rest()

    def finish(left: Left) -> Left:
        finished.append(left)
        return left

    answer = guarded_reply(reply, access, noted.append, finish)
    call = AtOnce([("authorization", "Bearer secret")])
    assert answer(b"said", call) == b"said"
    left = answer(b"", call)
    assert finished == [left]
    finished[0].close()
    for caller, message, status in (
        (AtOnce(), b"", Status.UNAUTHENTICATED),
        (AtOnce([("authorization", "Bearer another")]), b"", Status.PERMISSION_DENIED),
        (call, None, Status.NOT_FOUND),
    ):
        with pytest.raises(RpcError) as caught:
            answer(message, caller)
        assert caught.value.status is status
    with pytest.raises(KinferenceError, match="our own"):
        answer(b"fault", call)
    assert len(noted) == 4
