"""One connection with its calls, over a transport that is a list."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from kinference.errors import ClientGone
from kinference.wire.grpc_call import Method
from kinference.wire.grpc_session import REFUSAL_GRACE, GrpcLimits, GrpcSession, Host
from kinference.wire.http2 import frames
from kinference.wire.http2.frames import ErrorCode, FrameType
from kinference.wire.http2.guard import Http2Limits
from kinference.wire.rpc import Call, RpcError, RpcHandler, RpcService, Status
from tests.unit.wire.http2.peer import HELLO, Frame, Talk, data, framed, split

GRPC = (("te", "trailers"), ("content-type", "application/grpc"))


class ListTransport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = self.aborted = False
        self.written_one: Callable[[], None] = lambda: None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)
        self.written_one()

    def is_closing(self) -> bool:
        return self.closed or self.aborted

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass


class Session:
    """A session, greeted, and the client's side of it."""

    def __init__(self, handler: RpcHandler, *, inline: bool, limits: GrpcLimits) -> None:
        service = RpcService("s", {"m": handler}, inline=inline)
        self.host = Host({"/s/m": Method(service, "s/m", handler, is_counted=True)}, limits)
        self.session, self.transport, self.talk = GrpcSession(self.host), ListTransport(), Talk()
        self.session.connection_made(self.transport)
        self.session.data_received(HELLO)
        self.sent()

    def receive(self, received: bytes) -> None:
        self.session.data_received(received)

    def call(self, stream_id: int, *more: tuple[str, str], end: bool = False) -> bytes:
        return self.talk.request(stream_id, *GRPC, *more, end=end)

    def sent(self) -> list[Frame]:
        """Since the last look, this turn of the event loop included."""
        self.host.turn.flush()
        written, self.transport.written = self.transport.written, b""
        return split(written)

    def fields(self, payload: bytes) -> dict[str, str]:
        return {str(name): str(value) for name, value in self.talk.decoder.decode(payload)}

    def status(self) -> str:
        """Of the only call that has ended since the last look."""
        (ended,) = (payload for kind, flags, _, payload in self.sent() if kind == 1 and flags & 1)
        return self.fields(ended)["grpc-status"]


@pytest.fixture(params=[True, False], ids=["inline", "task"])
async def sessions(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    made = []

    def make(handler: RpcHandler, limits: GrpcLimits | None = None) -> Session:
        made.append(Session(handler, inline=request.param, limits=limits or GrpcLimits()))
        return made[-1]

    yield make
    for session in made:
        session.session.connection_lost(None)
        await session.host.idle.wait()


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def answered(session: Session) -> None:
    async with asyncio.timeout(10):
        while not session.transport.written:  # noqa: ASYNC110 - a list tells nobody
            await asyncio.sleep(0.001)


async def echo(call: Call) -> None:
    while (message := await call.receive()) is not None:
        await call.send(message)


async def silent(call: Call) -> None:
    while await call.receive() is not None:
        pass


class Watched:
    """A handler that tells how it ended."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    async def __call__(self, call: Call) -> None:
        try:
            await echo(call)
        except BaseException as error:
            self.ended.append(type(error).__name__)
            raise
        self.ended.append("clean")


async def test_a_unary_call_is_answered_with_three_frames_in_one_write(sessions: Any) -> None:
    session = sessions(echo)
    session.receive(session.call(1) + data(1, framed(b"hi"), end=True))
    await turns()
    kinds = [(kind, payload) for kind, _, _, payload in session.sent()]
    assert [kind for kind, _ in kinds] == [1, 0, 1]
    assert kinds[1][1] == framed(b"hi")


async def test_a_stream_is_answered_as_it_comes(sessions: Any) -> None:
    session = sessions(echo)
    session.receive(session.call(1))
    for message in (b"one", b"two"):
        session.receive(data(1, framed(message)))
        await turns()
        assert framed(message) in [payload for _, _, _, payload in session.sent()]
    session.receive(data(1, b"", end=True))
    await turns()
    assert session.status() == "0"
    assert session.host.idle.is_set()


async def test_a_call_without_an_answer_still_has_a_status(sessions: Any) -> None:
    session = sessions(silent)
    session.receive(session.call(1, end=True))
    await turns()
    ((_, flags, _, payload),) = session.sent()
    assert flags & 1
    assert session.fields(payload)[":status"] == "200"


@pytest.mark.parametrize("how", ["reset", "lost", "goaway of ours", "fault"])
async def test_a_broken_call_is_cancelled_and_no_clean_end(sessions: Any, how: str) -> None:
    watched = Watched()
    session = sessions(watched)
    session.receive(session.call(1) + data(1, framed(b"part")))
    await turns()
    match how:
        case "reset":
            session.receive(frames.rst_stream(1, ErrorCode.CANCEL))
        case "lost":
            session.session.connection_lost(None)
        case "goaway of ours":
            session.session.close()
        case _:
            session.receive(data(0, b"x"))
    await turns()
    assert watched.ended == ["CancelledError"]
    assert session.host.idle.is_set()


async def test_half_a_message_and_an_end_is_invalid(sessions: Any) -> None:
    watched = Watched()
    session = sessions(watched)
    session.receive(session.call(1) + data(1, framed(b"message")[:7], end=True))
    await turns()
    assert session.status() == "3"
    assert watched.ended == ["RpcError"]


async def test_a_message_too_large_exhausts_and_stops_its_sender(sessions: Any) -> None:
    session = sessions(echo, GrpcLimits(chunk_bytes_max=10))
    session.receive(session.call(1) + data(1, framed(b"x" * 15)))
    await turns()
    sent = session.sent()
    assert session.fields(sent[0][3])["grpc-status"] == "8"
    assert (3, 0, 1, bytes(4)) in sent
    session.receive(data(1, b"more"))
    assert session.host.idle.is_set()


async def test_a_deadline_ends_the_call_for_both(sessions: Any) -> None:
    watched = Watched()
    session = sessions(watched)
    session.receive(session.call(1, ("grpc-timeout", "1m")) + data(1, framed(b"hi")))
    async with asyncio.timeout(10):
        await session.host.idle.wait()
    await turns()
    assert session.status() == "4"
    assert watched.ended in (["CancelledError"], [])  # a machine that stands still ends it before its handler begins


async def test_patience_is_the_handlers_own(sessions: Any) -> None:
    async def impatient(call: Call) -> None:
        try:
            await call.receive(timeout=0.001)
        except TimeoutError:
            raise RpcError(Status.DEADLINE_EXCEEDED, "nothing came") from None

    session = sessions(impatient)
    session.receive(session.call(1))
    await answered(session)
    assert session.status() == "4"


async def test_a_refusal_by_the_head_alone_leaves_its_caller_the_time_to_write(sessions: Any) -> None:
    async def refuse(_call: Call) -> None:
        raise RpcError(Status.INVALID_ARGUMENT, "no")

    session, loop = sessions(refuse), asyncio.get_running_loop()
    began = loop.time()
    session.receive(session.call(1))
    await turns()
    is_early = loop.time() - began < REFUSAL_GRACE - 0.001  # a busy machine may have let it pass by
    assert not is_early or session.sent() == []
    assert session.host.idle.is_set()
    session.receive(data(1, framed(b"of no interest")))
    await answered(session)
    assert session.status() == "3"


@pytest.mark.parametrize(
    ("error", "status"),
    [(RpcError(Status.NOT_FOUND, "x"), "5"), (ClientGone("x"), "1"), (ZeroDivisionError("secret"), "13")],
)
async def test_what_a_handler_raises_is_its_status(
    sessions: Any, error: Exception, status: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_call: Call) -> None:
        raise error

    session = sessions(fail)
    session.receive(session.call(1, end=True))
    await turns()
    assert session.status() == status
    logged = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert logged == (["the handler of s/m failed"] if status == "13" else [])


@pytest.mark.parametrize(
    ("fields", "head"),
    [
        ((("content-type", "application/json"),), {":status": "415"}),
        ((*GRPC, ("grpc-timeout", "soon")), {":status": "200", "grpc-status": "3"}),
    ],
)
async def test_what_is_refused_never_reaches_a_handler(
    sessions: Any, fields: tuple[tuple[str, str], ...], head: dict[str, str]
) -> None:
    watched = Watched()
    session = sessions(watched)
    session.receive(session.talk.request(1, *fields, end=True))
    await turns()
    assert head.items() <= session.fields(session.sent()[0][3]).items()
    assert watched.ended == []


async def test_an_unknown_method_tells_what_codings_there_are(sessions: Any) -> None:
    session = sessions(echo)
    block = session.talk.block((":method", "POST"), (":scheme", "http"), (":path", "/s/other"), *GRPC)
    session.receive(frames.headers(frames.END_STREAM, 1, block))
    fields = session.fields(session.sent()[0][3])
    assert (fields["grpc-status"], fields["grpc-accept-encoding"]) == ("12", "identity")


async def test_a_draining_host_takes_no_new_call_and_finishes_the_others(sessions: Any) -> None:
    session = sessions(echo)
    session.receive(session.call(1))
    await turns()
    session.host.is_draining = True
    session.session.announce_end()
    session.receive(session.call(3, end=True))
    await turns()
    assert session.status() == "14"
    session.receive(data(1, framed(b"last"), end=True))
    await turns()
    assert session.status() == "0"


# --- back-pressure -------------------------------------------------------------------------------


async def test_a_send_waits_for_the_peers_window_and_for_the_transport(sessions: Any) -> None:
    sent = []

    async def flood(call: Call) -> None:
        for number in range(3):
            await call.send(bytes(100_000))
            sent.append(number)

    session = sessions(flood)
    session.receive(frames.window_update(0, 10**6) + session.call(1, end=True))
    await turns()
    assert sent == []
    session.receive(frames.window_update(1, 100_000))
    await turns()
    assert sent == [0]
    session.session.pause_writing()
    session.receive(frames.window_update(1, 10**6))
    await turns()
    assert sent == [0]
    session.sent()
    session.session.resume_writing()
    await turns()
    assert sent == [0, 1, 2]
    assert session.host.idle.is_set()


async def test_a_pull_cut_within_a_message_is_reset_with_a_code_that_tells_why(sessions: Any) -> None:
    calls: list[Call] = []

    async def shed(call: Call) -> None:
        calls.append(call)
        try:
            await call.send(bytes(200_000))
        except ClientGone:
            raise RpcError(Status.RESOURCE_EXHAUSTED, "shed") from None

    session = sessions(shed)
    session.receive(session.call(1, end=True))
    await turns()
    session.sent()
    calls[0].cut()
    await turns()
    assert session.sent() == [(3, 0, 1, ErrorCode.ENHANCE_YOUR_CALM.to_bytes(4))]


async def test_credit_returns_only_when_the_handler_takes_its_messages(sessions: Any) -> None:
    async def slow(call: Call) -> None:
        await call.send(b"begun")  # the window of the test's peer is shut: the handler stays here
        await silent(call)

    limits = GrpcLimits(chunk_bytes_max=50_000, http2=Http2Limits(stream_window=100_000, credit_bytes=40_000))
    session = sessions(slow, limits)
    session.receive(frames.settings({4: 0}) + session.call(1))
    await turns()
    for _ in range(2):
        session.receive(data(1, framed(bytes(40_000))))
    await turns()
    assert [frame for frame in session.sent() if frame[0] == FrameType.WINDOW_UPDATE] == []
    session.receive(frames.window_update(1, 1000))
    await turns()
    credited = [frame for frame in session.sent() if frame[0] == FrameType.WINDOW_UPDATE]
    assert credited


async def test_a_stalled_push_starves_no_other(sessions: Any) -> None:
    session = sessions(echo)
    for stream_id in (1, 3, 5):  # a message that never ends
        session.receive(session.call(stream_id) + data(stream_id, (b"\0" + (1_000_000).to_bytes(4)) + bytes(60_000)))
    session.receive(session.call(7) + data(7, framed(b"through"), end=True))
    await turns()
    assert session.status() == "0"


async def test_a_peer_that_is_silent_is_asked_and_then_left(sessions: Any) -> None:
    session = sessions(echo)
    session.session._check_alive()
    await turns()
    assert session.sent() == []
    session.session._check_alive()
    await turns()
    ((kind, _, _, payload),) = session.sent()
    assert kind == FrameType.PING
    session.receive(frames.frame(FrameType.PING, frames.ACK, 0, payload))
    session.session._check_alive()
    session.session._check_alive()
    assert not session.transport.aborted
    session.session._check_alive()
    assert session.transport.aborted


async def test_one_that_takes_no_goodbye_is_left(sessions: Any) -> None:
    session = sessions(echo)
    session.receive(data(0, b"x"))
    assert session.transport.closed
    session.session._check_alive()
    assert session.transport.aborted


async def test_one_that_never_greets_is_left() -> None:
    host = Host({}, GrpcLimits())
    session, transport = GrpcSession(host), ListTransport()
    session.connection_made(transport)
    session._check_alive()
    assert transport.aborted
    session.connection_lost(None)
    assert not list(host.sessions)


def test_windows_grow_with_the_largest_message() -> None:
    limits = GrpcLimits(chunk_bytes_max=8 * 2**20)
    assert limits.connection.stream_window > 8 * 2**20 + 65_536
    assert GrpcLimits().connection == GrpcLimits().http2


async def test_more_connections_than_allowed_are_not_taken() -> None:
    host = Host({}, GrpcLimits(connections_max=1))
    sessions, transports = [GrpcSession(host) for _ in range(2)], [ListTransport() for _ in range(2)]
    for session, transport in zip(sessions, transports, strict=True):
        session.connection_made(transport)
    assert [transport.aborted for transport in transports] == [False, True]
    for session in sessions:
        session.connection_lost(None)


async def test_a_refused_call_that_was_taken_back_in_the_same_read_is_not_answered(sessions: Any) -> None:
    session = sessions(echo)
    back = frames.rst_stream(1, ErrorCode.CANCEL)
    session.receive(session.talk.request(1, ("content-type", "text/html")) + back)
    assert session.sent() == []
    session.receive(session.call(3) + data(3, framed(b"hi"), end=True))
    await turns()
    assert session.status() == "0"


def replying_session(answered: list[bytes | None]) -> Session:
    def reply(message: bytes | None, call: Call) -> bytes:
        answered.append(message)
        if message == b"bad":
            raise RpcError(Status.NOT_FOUND, "no")
        return str(len(call.metadata)).encode()

    session = Session(echo, inline=True, limits=GrpcLimits())
    method = session.host.methods["/s/m"]
    session.session._host = Host({"/s/m": replace(method, reply=reply)}, GrpcLimits())
    session.session._host.turn = session.host.turn
    session.host = session.session._host
    return session


async def test_a_reply_is_asked_where_the_whole_request_is_there() -> None:
    answered: list[bytes | None] = []
    session = replying_session(answered)
    session.receive(session.call(1, ("x-one", "1")) + data(1, framed(b"hi"), end=True) + session.call(3, end=True))
    sent = session.sent()
    assert [(kind, flags & 1, stream_id) for kind, flags, stream_id, _ in sent] == [
        (kind, end, stream_id) for stream_id in (1, 3) for kind, end in ((1, 0), (0, 0), (1, 1))
    ]
    assert [payload for kind, _, _, payload in sent if kind == 0] == [framed(b"1"), framed(b"0")]
    assert answered == [b"hi", None]
    session.receive(session.call(5) + data(5, framed(b"bad"), end=True))
    assert session.status() == "5"
    session.receive(session.call(7) + data(7, framed(b"early")))
    await turns()
    session.receive(data(7, b"", end=True))
    assert session.status() == "0"
    assert len(answered) == 3, "the handler has answered one whose end came late"
    assert session.host.idle.is_set()


@pytest.mark.parametrize("cut", [0, 3, 9, 12, 16])
async def test_a_request_that_a_read_has_cut_is_whole_with_the_next_one(cut: int) -> None:
    answered: list[bytes | None] = []
    session = replying_session(answered)
    body = data(1, framed(b"hi")) + data(1, b"", end=True)
    session.receive(session.call(1, ("grpc-timeout", "1S")) + body[:cut])
    assert not session.host.idle.is_set(), "a drain waits for it"
    await asyncio.sleep(0)
    session.receive(body[cut:])
    assert (session.status(), answered) == ("0", [b"hi"])
    assert session.host.idle.is_set()
    assert session.session._calls == {}
    await turns()
    assert session.sent() == []


async def test_one_that_the_next_read_does_not_complete_is_for_the_handler() -> None:
    answered: list[bytes | None] = []
    session = replying_session(answered)
    session.receive(session.call(1) + data(1, framed(b"one")[:4]))
    session.receive(data(1, framed(b"one")[4:]))
    assert [payload for kind, _, _, payload in session.sent() if kind == 0] == [framed(b"one")]
    session.receive(data(1, framed(b"two"), end=True))
    assert session.status() == "0"
    session.receive(session.call(3) + data(3, framed(b"one")))
    session.receive(data(3, framed(b"two"), end=True))
    assert [payload for kind, _, _, payload in session.sent() if kind == 0] == [framed(b"one"), framed(b"two")]
    assert (answered, session.host.idle.is_set()) == ([], True)


@pytest.mark.parametrize("end", ["reset", "deadline", "lost", "closed", "too large"])
async def test_one_that_waits_for_its_rest_may_end_without_it(end: str) -> None:
    session = replying_session([])
    more = (("grpc-timeout", "1n"),) if end == "deadline" else ()
    session.receive(session.call(1, *more) + data(1, framed(b"half")[:6]))
    if end == "reset":
        session.receive(frames.rst_stream(1, ErrorCode.CANCEL))
    elif end == "lost":
        session.session.connection_lost(None)
    elif end == "closed":
        session.session.close()
    elif end == "too large":
        session.receive(data(1, b"", end=True))
    await asyncio.sleep(0.01)
    assert session.session._calls == {}
    assert session.host.idle.is_set()


async def test_a_request_that_was_taken_back_in_the_read_that_brought_it_whole_is_never_begun() -> None:
    answered: list[bytes | None] = []
    session = replying_session(answered)
    session.receive(session.call(1) + data(1, framed(b"hi"), end=True) + frames.rst_stream(1, ErrorCode.CANCEL))
    session.receive(session.call(3) + data(3, framed(b"hi"), end=True) + frames.window_update(3, 10))
    assert session.status() == "0"
    assert answered == [b"hi"]
    assert session.session._calls == {}


async def test_requests_of_one_read_are_answered_though_one_of_them_breaks() -> None:
    answered: list[bytes | None] = []
    session = replying_session(answered)
    whole = [session.call(number) + data(number, framed(text), end=True) for number, text in ((1, b"bad"), (3, b"hi"))]
    session.receive(b"".join(whole))
    assert [stream_id for kind, flags, stream_id, _ in session.sent() if kind == 1 and flags & 1] == [1, 3]
    session.receive(session.call(5) + data(5, framed(b"last"), end=True) + frames.window_update(0, 0))
    assert answered == [b"bad", b"hi"], "a connection that is broken off answers no more"


async def test_a_request_of_more_than_a_message_is_for_the_handler_and_not_the_reply() -> None:
    answered: list[bytes | None] = []
    session = replying_session(answered)
    session.receive(session.call(1) + data(1, framed(b"one") + framed(b"two"), end=True))
    assert [payload for kind, _, _, payload in session.sent() if kind == 0] == [framed(b"one"), framed(b"two")]
    session.receive(session.call(3) + data(3, framed(b"cut")[:-1], end=True))
    assert session.status() == "3"
    assert answered == []


async def test_what_a_reply_leaves_to_do_is_done_as_a_handler_is() -> None:
    async def later(call: Call) -> None:
        await call.rest()
        assert call.takes(b"x" * 60_000)
        assert not call.takes(b"x" * 70_000), "more than the window"
        await call.send(b"late")

    async def never(_call: Call) -> None:
        raise RpcError(Status.ABORTED, "no")

    waiting: list[Call] = []

    def reply(message: bytes | None, call: Call) -> Coroutine[Any, Any, None]:
        waiting.append(call)
        return later(call) if message == b"later" else never(call)

    session = Session(echo, inline=True, limits=GrpcLimits())
    session.session._host.methods = {"/s/m": replace(session.host.methods["/s/m"], reply=reply)}
    session.receive(frames.settings({5: 100_000}) + session.call(1) + data(1, framed(b"later"), end=True))
    assert [kind for kind, _, _, _ in session.sent()] == [4]
    assert not session.host.idle.is_set()
    waiting[0].wake()
    await turns()
    assert session.status() == "0"
    session.receive(session.call(3) + data(3, framed(b"never"), end=True))
    assert session.status() == "10"
    assert session.host.idle.is_set()


async def test_a_reply_waits_for_its_window_and_then_ends() -> None:
    session = replying_session([])
    session.receive(frames.settings({4: 0}) + session.call(1, end=True))
    assert 1 not in {flags & 1 for kind, flags, _, _ in session.sent() if kind == 1}
    assert not session.host.idle.is_set()
    session.receive(frames.window_update(1, 1000))
    assert session.status() == "0"
    assert session.host.idle.is_set()


async def test_what_a_handler_sends_keeps_its_order_whether_it_ends_goes_on_or_fails(sessions: Any) -> None:
    async def handler(call: Call) -> None:
        kind = await call.receive()
        await call.send(b"first")
        if kind == b"more":
            await call.send(b"second")
        if kind == b"fail":
            raise RpcError(Status.ABORTED, "late")

    session = sessions(handler)
    for stream_id, kind, status in ((1, b"end", "0"), (3, b"more", "0"), (5, b"fail", "10")):
        session.receive(session.call(stream_id) + data(stream_id, framed(kind), end=True))
        await turns()
        sent = session.sent()
        messages = [payload for kind, _, _, payload in sent if kind == 0]
        assert b"".join(messages) == framed(b"first") + (framed(b"second") if kind == b"more" else b"")
        assert session.fields(sent[0][3])[":status"] == "200"
        assert session.fields(sent[-1][3])["grpc-status"] == status


@pytest.mark.parametrize("how", ["reset", "lost"])
async def test_a_call_that_is_gone_before_its_handler_took_a_step_is_over(sessions: Any, how: str) -> None:
    """In a read of its own, but in the same turn of the loop: a task that is cancelled then never runs."""
    session = sessions(echo)
    session.receive(session.call(1))
    if how == "reset":
        session.receive(frames.rst_stream(1, ErrorCode.CANCEL))
    else:
        session.session.connection_lost(None)
    await turns()
    assert session.host.idle.is_set()
    assert session.session._calls == {}


@pytest.mark.parametrize(("takes_all", "at_once"), [(True, [True] * 4), (False, [True, True, False, False])])
async def test_answers_of_one_read_go_at_once_while_the_transport_takes_them(
    takes_all: bool, at_once: list[bool]
) -> None:
    went: list[bool] = []

    def reply(message: bytes | None, call: Call) -> bytes:
        went.append(call.takes(b"x" * 300))
        return b"x" * 300

    limits = GrpcLimits(http2=Http2Limits(output_bytes_max=500))
    session = Session(echo, inline=True, limits=limits)
    session.session._host.methods = {"/s/m": replace(session.host.methods["/s/m"], reply=reply)}
    if not takes_all:
        session.transport.written_one = session.session.pause_writing
    session.receive(b"".join(session.call(number, end=True) for number in (1, 3, 5, 7)))
    assert went == at_once
    session.session.resume_writing()
    session.session.resume_writing()
    await turns()
    ended = [stream_id for kind, flags, stream_id, _ in session.sent() if kind == 1 and flags & 1]
    assert ended == [1, 3, 5, 7]
    assert session.host.idle.is_set()
