"""The service on the seam, without a carrier: a call is a script of messages and a list of answers."""

import asyncio
import json
from collections.abc import Callable, Sequence

import pytest

from kinference.errors import ClientGone
from kinference.observe.metrics import Metrics
from kinference.picker.desk import Desk
from kinference.picker.limits import PickerLimits
from kinference.picker.service import picker_service
from kinference.vocabulary import Role
from kinference.wire.access import Access, Certificate, Token
from kinference.wire.proto import picker_pb2 as pb
from kinference.wire.rpc import RpcError, Status

CHAT = json.dumps({"model": "llama", "messages": [{"role": "user", "content": "hello " * 200}]}).encode()
CHUNKS = tuple(pb.BodyChunk(chunk=CHAT[start : start + 500]).SerializeToString() for start in range(0, len(CHAT), 500))
METHODS = tuple(method.name for method in pb.DESCRIPTOR.services_by_name["Picker"].methods)

Message = (
    pb.PickRequest | pb.PullBodyRequest | pb.ReportFirstTokenRequest | pb.ReportFinalTokenRequest | pb.AbortRequest
)


class ScriptedCall:
    """Stands in for a carrier's call: `messages` come in, then a clean end, silence, or an exception."""

    def __init__(
        self,
        *messages: bytes,
        metadata: Sequence[tuple[str, str | bytes]] = (),
        then: Exception | None = None,
        silent: bool = False,
    ) -> None:
        self.metadata = metadata
        self.peer_names: Sequence[str] = ()
        self._messages, self._then, self._silent = list(messages), then, silent
        self.sent: list[bytes] = []
        self.told: dict[str, str] = {}
        self.before_send: Callable[[], None] = lambda: None
        self.is_cut = self.takes_all = False
        self.sending, self.woken = asyncio.Event(), asyncio.Event()
        self.writable = asyncio.Event()
        self.writable.set()

    def tell(self, name: str, value: str) -> None:
        self.told[name] = value

    async def receive(self, timeout: float | None = None) -> bytes | None:
        if self._messages:
            return self._messages.pop(0)
        if self._silent:
            async with asyncio.timeout(timeout):
                await asyncio.Event().wait()
        if self._then is not None:
            raise self._then
        return None

    def takes(self, message: bytes) -> bool:
        return self.takes_all

    async def send(self, message: bytes) -> None:
        self.before_send()
        self.sent.append(message)
        self.sending.set()
        await self.writable.wait()
        if self.is_cut:
            raise ClientGone("cut")

    async def rest(self) -> None:
        await self.woken.wait()
        self.woken.clear()

    def wake(self) -> None:
        self.woken.set()

    def cut(self) -> None:
        self.is_cut = True
        self.writable.set()


@pytest.fixture
def limits() -> PickerLimits:
    return PickerLimits(push_idle_timeout=0.02, chunk_max_bytes=2048, pull_chunk_max_bytes=512, buffer_max_bytes=5000)


async def run(desk: Desk, method: str, call: ScriptedCall) -> ScriptedCall:
    await picker_service(desk).methods[method](call)
    return call


async def ask(desk: Desk, method: str, message: Message) -> bytes:
    return (await run(desk, method, ScriptedCall(message.SerializeToString()))).sent[0]


async def fails(desk: Desk, method: str, call: ScriptedCall) -> Status:
    with pytest.raises(RpcError) as caught:
        await run(desk, method, call)
    return caught.value.status


async def push(desk: Desk, *chunks: bytes) -> int:
    call = await run(desk, "PushBody", ScriptedCall(*(chunks or CHUNKS)))
    return pb.PushBodyResponse.FromString(call.sent[0]).stream_id


async def pick(desk: Desk) -> pb.PickResponse:
    request = pb.PickRequest(body_stream_id=await push(desk), tenant="acme")
    return pb.PickResponse.FromString(await ask(desk, "Pick", request))


def test_the_service_is_the_contracts(desk: Desk) -> None:
    service = picker_service(desk)
    assert service.name == "kinference.v1.Picker"
    assert set(service.methods) == set(METHODS)


async def test_a_whole_flow(desk: Desk) -> None:
    picked = await pick(desk)
    assert (picked.outcome, picked.body_total_bytes) == (pb.PickResponse.OK, len(CHAT))
    pulled = await run(
        desk, "PullBody", ScriptedCall(pb.PullBodyRequest(response_id=picked.response_id).SerializeToString())
    )
    assert b"".join(pb.BodyChunk.FromString(message).chunk for message in pulled.sent) == CHAT
    first = pb.ReportFirstTokenRequest(response_id=picked.response_id, observed_ttft_ms=5, upstream_status=200)
    assert pb.ReportFirstTokenResponse.FromString(await ask(desk, "ReportFirstToken", first)).acknowledged
    final = pb.ReportFinalTokenRequest(response_id=picked.response_id, prompt_tokens=5)
    assert pb.ReportFinalTokenResponse.FromString(await ask(desk, "ReportFinalToken", final)).acknowledged
    assert not pb.ReportFinalTokenResponse.FromString(await ask(desk, "ReportFinalToken", final)).acknowledged
    abort = pb.AbortRequest(response_id=picked.response_id)
    assert not pb.AbortResponse.FromString(await ask(desk, "Abort", abort)).released
    assert desk.is_idle


def at_once(desk: Desk, method: str, message: bytes | None, metadata: Sequence[tuple[str, str]] = ()) -> bytes:
    """The answer of a call whose request is all there, and whose peer takes all."""
    call = ScriptedCall(metadata=metadata)
    call.takes_all = True
    answer = picker_service(desk).replies[method](message, call)
    assert isinstance(answer, bytes)
    assert call.sent == []
    return answer


def test_a_flow_of_calls_that_are_all_there_waits_for_nothing(desk: Desk) -> None:
    pushed = pb.PushBodyResponse.FromString(at_once(desk, "PushBody", CHUNKS[0]))
    assert pushed.total_bytes == 500
    request = pb.PickRequest(body_stream_id=pushed.stream_id, tenant="acme")
    empty = pb.PushBodyResponse.FromString(at_once(desk, "PushBody", None))
    assert empty.total_bytes == 0
    with pytest.raises(RpcError, match="declared"):
        at_once(desk, "PushBody", CHUNKS[0], [("kinference-declared-length", "499")])
    assert desk.buffered_bytes == 500
    refused = pb.PickResponse.FromString(at_once(desk, "Pick", request.SerializeToString()))
    assert refused.outcome != pb.PickResponse.OK, "half a body is no request"
    chat = json.dumps({"model": "llama", "messages": [{"role": "user", "content": "hi"}]}).encode()
    pushed = pb.PushBodyResponse.FromString(at_once(desk, "PushBody", pb.BodyChunk(chunk=chat).SerializeToString()))
    request.body_stream_id = pushed.stream_id
    picked = pb.PickResponse.FromString(at_once(desk, "Pick", request.SerializeToString()))
    assert picked.outcome == pb.PickResponse.OK
    pull = pb.PullBodyRequest(response_id=picked.response_id).SerializeToString()
    assert pb.BodyChunk.FromString(at_once(desk, "PullBody", pull)).chunk == chat
    assert desk.buffered_bytes == 0
    with pytest.raises(RpcError, match="no body waits"):
        at_once(desk, "PullBody", pull)
    desk.drain()
    with pytest.raises(RpcError, match="shutting down"):
        at_once(desk, "PushBody", CHUNKS[0])


async def test_a_body_is_pickable_while_its_reply_is_being_written(desk: Desk) -> None:
    call = ScriptedCall(*CHUNKS)
    call.writable.clear()
    push = asyncio.ensure_future(run(desk, "PushBody", call))
    await call.sending.wait()
    reply = pb.PushBodyResponse.FromString(call.sent[0])
    picked = await ask(desk, "Pick", pb.PickRequest(body_stream_id=reply.stream_id))
    call.writable.set()
    await push
    assert pb.PickResponse.FromString(picked).body_total_bytes == desk.buffered_bytes == len(CHAT)


@pytest.mark.parametrize("moment", ["reading", "replying", "cancelled"])
async def test_a_push_whose_caller_goes_leaves_nothing(desk: Desk, moment: str) -> None:
    def gone() -> None:
        raise asyncio.CancelledError if moment == "cancelled" else ClientGone("gone")

    call = ScriptedCall(*CHUNKS, then=ClientGone("gone") if moment == "reading" else None)
    if moment != "reading":
        call.before_send = gone
    with pytest.raises((RpcError, asyncio.CancelledError)):
        await run(desk, "PushBody", call)
    assert (desk.buffered_bytes, desk.is_idle) == (0, True)


async def test_a_push_that_idles_is_cut(desk: Desk) -> None:
    assert await fails(desk, "PushBody", ScriptedCall(CHUNKS[0], silent=True)) is Status.DEADLINE_EXCEEDED
    assert desk.is_idle


@pytest.mark.parametrize(
    ("declared", "status"),
    [("7", Status.INVALID_ARGUMENT), ("9999", Status.RESOURCE_EXHAUSTED), ("x", Status.INVALID_ARGUMENT)],
)
async def test_a_declared_length_is_held_against_the_bytes(desk: Desk, declared: str, status: Status) -> None:
    call = ScriptedCall(*CHUNKS, metadata=[("kinference-declared-length", declared)])
    assert await fails(desk, "PushBody", call) is status
    assert desk.is_idle


async def test_a_malformed_chunk_is_an_invalid_argument(desk: Desk) -> None:
    assert await fails(desk, "PushBody", ScriptedCall(CHUNKS[0], b"\x0a\x09abc")) is Status.INVALID_ARGUMENT
    assert desk.is_idle


async def test_an_oversized_chunk_exhausts_its_budget(desk: Desk) -> None:
    chunk = pb.BodyChunk(chunk=b"x" * 2049).SerializeToString()
    assert await fails(desk, "PushBody", ScriptedCall(chunk)) is Status.RESOURCE_EXHAUSTED


async def test_a_draining_server_is_unavailable_to_new_pushes(desk: Desk) -> None:
    desk.drain()
    assert await fails(desk, "PushBody", ScriptedCall(*CHUNKS)) is Status.UNAVAILABLE


@pytest.mark.parametrize("method", ["Pick", "PullBody", "ReportFirstToken", "ReportFinalToken", "Abort"])
@pytest.mark.parametrize("messages", [(), (b"\xff",)])
async def test_a_call_without_its_message_is_an_invalid_argument(
    desk: Desk, method: str, messages: tuple[bytes, ...]
) -> None:
    assert await fails(desk, method, ScriptedCall(*messages)) is Status.INVALID_ARGUMENT


async def test_pick_of_ids_that_name_nothing(desk: Desk) -> None:
    assert await fails(desk, "Pick", ScriptedCall(b"")) is Status.INVALID_ARGUMENT
    unknown = pb.PickRequest(body_stream_id=5).SerializeToString()
    assert await fails(desk, "Pick", ScriptedCall(unknown)) is Status.NOT_FOUND
    consumed = pb.PickRequest(body_stream_id=await push(desk)).SerializeToString()
    await run(desk, "Pick", ScriptedCall(consumed))
    assert await fails(desk, "Pick", ScriptedCall(consumed)) is Status.FAILED_PRECONDITION


async def test_a_pick_whose_caller_left_before_the_answer_holds_nothing(desk: Desk) -> None:
    def gone() -> None:
        raise ClientGone("gone")

    call = ScriptedCall(pb.PickRequest(body_stream_id=await push(desk)).SerializeToString())
    call.before_send = gone
    assert await fails(desk, "Pick", call) is Status.CANCELLED
    assert (desk.buffered_bytes, desk.is_idle) == (0, True)


async def test_a_second_pull_finds_nothing(desk: Desk) -> None:
    request = pb.PullBodyRequest(response_id=(await pick(desk)).response_id).SerializeToString()
    await run(desk, "PullBody", ScriptedCall(request))
    assert await fails(desk, "PullBody", ScriptedCall(request)) is Status.NOT_FOUND
    assert await fails(desk, "PullBody", ScriptedCall(b"")) is Status.NOT_FOUND


async def test_an_abort_ends_a_pull_whose_reader_takes_nothing(desk: Desk) -> None:
    picked = await pick(desk)
    call = ScriptedCall(pb.PullBodyRequest(response_id=picked.response_id).SerializeToString())
    call.writable.clear()
    pull = asyncio.ensure_future(fails(desk, "PullBody", call))
    await call.sending.wait()
    abort = pb.AbortRequest(response_id=picked.response_id)
    assert pb.AbortResponse.FromString(await ask(desk, "Abort", abort)).released
    assert await pull is Status.NOT_FOUND
    assert desk.is_idle


async def test_a_cancelled_pull_releases_the_rest_and_its_ticket_lives_on(desk: Desk) -> None:
    picked = await pick(desk)
    call = ScriptedCall(pb.PullBodyRequest(response_id=picked.response_id).SerializeToString())
    call.writable.clear()
    pull = asyncio.ensure_future(run(desk, "PullBody", call))
    await call.sending.wait()
    pull.cancel()
    await asyncio.gather(pull, return_exceptions=True)
    assert desk.buffered_bytes == 0
    abort = pb.AbortRequest(response_id=picked.response_id, reason=pb.AbortRequest.PULL_FAILED)
    assert pb.AbortResponse.FromString(await ask(desk, "Abort", abort)).released


@pytest.mark.parametrize("method", METHODS)
async def test_only_a_caller_of_the_picker_is_let_in(desk: Desk, method: str) -> None:
    access = Access([Token("mesh", Role.PICKER, "picker-token"), Token("ops", Role.ADMIN, "admin-token")])
    statuses = []
    for token in ("", "wrong", "admin-token"):
        call = ScriptedCall(metadata=[("authorization", f"Bearer {token}")], then=AssertionError("it was read"))
        with pytest.raises(RpcError) as caught:
            await picker_service(desk, access).methods[method](call)
        statuses.append(caught.value.status)
    assert statuses == [Status.UNAUTHENTICATED, Status.UNAUTHENTICATED, Status.PERMISSION_DENIED]


async def test_a_callers_token_opens_the_picker(desk: Desk) -> None:
    access = Access([Token("mesh", Role.PICKER, "picker-token")])
    call = ScriptedCall(*CHUNKS, metadata=[("authorization", "Bearer picker-token")])
    await picker_service(desk, access).methods["PushBody"](call)
    assert pb.PushBodyResponse.FromString(call.sent[0]).total_bytes == len(CHAT)


REPLIES = ("ReportFirstToken", "ReportFinalToken", "Abort")


@pytest.mark.parametrize("method", REPLIES)
async def test_a_plain_reply_asks_like_the_rest_and_knows_callers_by_certificate(desk: Desk, method: str) -> None:
    access = Access([Token("ops", Role.ADMIN, "admin-token")], [Certificate("mesh-*", Role.PICKER)])
    service = picker_service(desk, access)
    assert set(service.replies) == set(service.methods)
    for metadata, names, status in (
        ((), (), Status.UNAUTHENTICATED),
        ([("authorization", "Bearer admin-token")], (), Status.PERMISSION_DENIED),
        ((), ("mesh-1",), None),
    ):
        call = ScriptedCall(b"", metadata=metadata)
        call.peer_names = names
        if status is None:
            assert service.replies[method](b"", call) == b""
            await service.methods[method](call)
            assert call.sent == [b""]
        else:
            with pytest.raises(RpcError) as caught:
                service.replies[method](b"", call)
            assert caught.value.status is status


async def test_pushes_that_are_refused_at_a_limit_are_counted_by_its_key(desk: Desk, metrics: Metrics) -> None:
    full = [pb.BodyChunk(chunk=b"x" * 2000).SerializeToString()] * 3
    too_long = ScriptedCall(metadata=(("kinference-declared-length", str(1 << 40)),))
    refused = (
        ("chunk_max_bytes", ScriptedCall(pb.BodyChunk(chunk=b"x" * 2049).SerializeToString())),
        ("buffer_max_bytes", ScriptedCall(*full)),
        ("body_max_bytes", too_long),
        ("push_idle_timeout", ScriptedCall(silent=True)),
        ("", ScriptedCall(CHUNKS[0], metadata=(("kinference-declared-length", "7"),))),
    )
    for _, call in refused:
        await fails(desk, "PushBody", call)
    shown = {line for line in metrics.exposition().decode().splitlines() if "bodies_refused_total{" in line}
    assert shown == {f'kinference_bodies_refused_total{{limit="{limit}"}} 1.0' for limit, _ in refused if limit}
