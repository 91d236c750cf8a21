"""The way that ordinary requests go, and each place where one leaves it."""

import asyncio
import logging
import sys
import weakref
from collections.abc import Awaitable, Generator

import pytest

from kinference.errors import ClientGone, KinferenceError, UpstreamTimeout, UpstreamUnreachable
from kinference.gateway.course import Entry, Serving
from kinference.gateway.options import GatewayOptions
from kinference.gateway.service import Gateway
from kinference.ids import ResponseId
from kinference.ports import (
    Asked,
    Headers,
    PickArguments,
    PickResult,
    Placed,
    Placing,
    Told,
    UpstreamAnswer,
    UpstreamRequest,
)
from kinference.vocabulary import AbortReason, Outcome, StreamUsage
from kinference.wire.exchange import Exchange, Handler
from kinference.wire.over import OVER
from tests.unit.gateway.fakes import (
    CUT,
    ENGINE_B,
    EVENTS,
    JSON,
    PROVIDER,
    FakeAnswer,
    FakeExchange,
    FakePicker,
    FakeUpstream,
    Instant,
    World,
)

CHAT = "/v1/chat/completions"
BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
ANSWER = b'{"usage":{"prompt_tokens":7,"completion_tokens":2}}'
DONE = b"data: [DONE]\n\n"
DOWN = UpstreamUnreachable("http://10.0.0.1:8000 is not a usable address")


class Arrived(FakeExchange):
    """Came in one read. May have a client that takes little at a time."""

    takes = True
    drains = 0
    failure: Exception | None = None

    def arrived(self) -> bytes | None:
        return b"".join(self._body)

    def send(self, chunk: bytes) -> bool:
        return super().send(chunk) and self.takes

    async def drained(self) -> None:
        self.drains += 1

    def start(self, status: int, headers: Headers) -> Awaitable[None]:  # type: ignore[override] # at once
        if self.failure is not None:
            raise self.failure
        self.status, self.sent_headers = status, headers
        return OVER

    def finish(self) -> Awaitable[None]:  # type: ignore[override] # at once
        self.is_finished = True
        return OVER


class Whole(FakeAnswer):
    """Has come in one read."""

    def __init__(self, body: bytes = ANSWER, status: int = 200) -> None:
        super().__init__(status, JSON, (body,))
        self._body = body

    def arrived(self) -> bytes | None:
        return self._body

    def close(self) -> Awaitable[None]:  # type: ignore[override] # at once
        self.is_closed = True
        return OVER


class Pooled(FakeUpstream):
    """Has a connection open, on which a test answers."""

    def __init__(self, *script: FakeAnswer | KinferenceError, is_open: bool = True) -> None:
        super().__init__(*script)
        self.tell: Told | None = None
        self.is_dropped = False
        self._is_open = is_open

    def ask(self, request: UpstreamRequest, told: Told) -> Asked | None:
        if not self._is_open:
            return None
        self.requests.append(request)
        self.tell = told
        return self

    def drop(self) -> None:
        self.is_dropped = True


class Way:
    """One request on it, and what its server is told."""

    def __init__(
        self, upstream: Pooled | None = None, *, picker: FakePicker | None = None, exchange: Arrived | None = None
    ) -> None:
        self.upstream = upstream or Pooled()
        self.picker = picker or Instant()
        self.world = World(self.picker, self.upstream)
        self.exchange = exchange or Arrived(CHAT, (BODY,))
        self.outside = self.world.outside
        self.serving: Serving = Gateway(self.outside, GatewayOptions()).handle(self.exchange)
        self.ends: list[str] = []

    def over(self) -> None:
        self.ends.append("over")

    def wait(self) -> None:
        self.ends.append("wait")

    def begin(self) -> bool:
        return self.serving.begin(self)

    def answer(self, came: UpstreamAnswer | KinferenceError | None) -> list[str]:
        """What it comes to. Begins it."""
        assert self.begin()
        assert self.upstream.tell is not None
        self.upstream.tell(came)
        return self.ends


async def test_an_answer_in_one_piece_is_served_without_a_task(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    way, answer = Way(), Whole()
    assert way.answer(answer) == ["over"]
    assert (way.exchange.status, way.exchange.answer, way.exchange.is_finished) == (200, ANSWER, True)
    assert way.exchange.field(b"x-kinference-endpoint") == b"10.0.0.1:8000"
    assert [(report.prompt_tokens, report.completion_tokens) for report in way.picker.final] == [(7, 2)]
    assert [report.upstream_status for report in way.picker.first] == [200]
    assert answer.is_closed
    assert (way.picker.held, way.picker.aborted) == (0, [])
    assert vars(caplog.records[-1])["outcome"] == "ok"


async def test_a_request_that_is_served_holds_nothing_of_its_server() -> None:
    way = Way()
    way.answer(Whole())
    held = weakref.ref(way)
    serving = way.serving
    del way
    assert held() is None
    assert serving.exchange.is_finished  # type: ignore[attr-defined] # it lives on


@pytest.mark.parametrize("answer", [Whole(), FakeAnswer(200, JSON, (ANSWER[:9], ANSWER[9:]))])
async def test_an_answer_that_has_begun_holds_on_to_no_question(answer: FakeAnswer) -> None:
    class Slow(Arrived):
        takes = False

        async def drained(self) -> None:
            self._body = ()
            way.upstream.requests.clear()
            way.picker.pushed.clear()
            left.add(sys.getrefcount(question))

    question, left = BODY + b" ", set[int]()
    held = sys.getrefcount(question)
    way = Way(exchange=Slow(CHAT, (question,)))
    assert way.answer(answer) == ["wait"]
    await way.serving
    assert left == {held}


async def test_a_body_that_is_still_coming_is_awaited() -> None:
    exchange = FakeExchange(CHAT, (BODY,))
    world = World(Instant(), Pooled(Whole()))
    serving = Gateway(world.outside, GatewayOptions()).handle(exchange)
    assert not serving.begin(Way())
    await serving
    assert (exchange.status, exchange.answer) == (200, ANSWER)


@pytest.mark.parametrize(
    ("upstream", "picker"),
    [(Pooled(Whole()), FakePicker()), (Pooled(Whole(), is_open=False), Instant()), (FakeUpstream(Whole()), Instant())],
)
async def test_what_has_to_be_waited_for_before_it_is_sent_is_awaited(upstream: Pooled, picker: FakePicker) -> None:
    way = Way(upstream, picker=picker)
    assert not way.begin()
    await way.serving
    assert (way.exchange.status, way.exchange.answer) == (200, ANSWER)
    assert (len(way.picker.picks), len(upstream.requests), way.picker.held) == (1, 1, 0)
    assert len(way.picker.final) == 1


@pytest.mark.parametrize(
    ("exchange", "status"),
    [
        (Arrived("/v1/nowhere", (BODY,)), 404),
        (Arrived("/health", method="GET"), 200),
        (Arrived(CHAT, (BODY,), method="GET"), 405),
        (Arrived(CHAT, (BODY,), headers=((b"x-kinference-loss", b"none such"),)), 400),
    ],
)
async def test_who_wants_no_inference_or_is_not_let_in_is_answered_as_ever(exchange: Arrived, status: int) -> None:
    way = Way(exchange=exchange)
    assert not way.begin()
    await way.serving
    assert (exchange.status, way.picker.picks) == (status, [])


async def test_a_refusal_of_the_picker_is_told() -> None:
    way = Way(picker=Instant(PickResult(Outcome.NO_WORKERS, "none ready", "m")))
    assert not way.begin()
    await way.serving
    assert (way.exchange.status, len(way.picker.picks)) == (503, 1)


async def test_a_body_beyond_what_can_be_held_is_refused() -> None:
    way = Way()
    way.picker.room = 1
    assert not way.begin()
    await way.serving
    assert (way.exchange.status, way.picker.picks) == (503, [])


async def test_a_destination_that_cannot_be_sent_to_is_passed_over() -> None:
    class Unusable(Pooled):
        def ask(self, request: UpstreamRequest, told: Told) -> Asked | None:
            raise DOWN

    way = Way(Unusable(Whole()), picker=Instant(PROVIDER, ENGINE_B))
    assert not way.begin()
    await way.serving
    assert (way.exchange.status, way.exchange.answer) == (200, ANSWER)
    assert [request.origin for request in way.upstream.requests] == ["http://10.0.0.2:8000"]


async def test_a_connection_that_had_been_closed_is_no_failure() -> None:
    way = Way(Pooled(Whole()))
    assert way.answer(None) == ["wait"]
    await way.serving
    assert (way.exchange.status, way.exchange.answer) == (200, ANSWER)
    assert [request.origin for request in way.upstream.requests] == ["http://10.0.0.1:8000"] * 2
    assert len(way.picker.picks) == 1


@pytest.mark.parametrize("failure", [CUT, Whole(b"<html>"), FakeAnswer(503)])
async def test_after_a_failure_it_goes_elsewhere(failure: KinferenceError | FakeAnswer) -> None:
    way = Way(Pooled(Whole()), picker=Instant(PROVIDER, ENGINE_B))
    assert way.answer(failure) == ["wait"]
    await way.serving
    assert (way.exchange.status, way.exchange.answer) == (200, ANSWER)
    assert [request.origin for request in way.upstream.requests][1:] == ["http://10.0.0.2:8000"]
    assert not isinstance(failure, FakeAnswer) or failure.is_closed
    assert len(way.picker.picks) == 2


async def test_a_destination_that_stays_silent_is_told_of() -> None:
    way = Way()
    assert way.answer(UpstreamTimeout("nothing for 600 s")) == ["wait"]
    await way.serving
    assert way.exchange.status == 504


@pytest.mark.parametrize(
    ("answer", "out"),
    [
        (FakeAnswer(200, JSON, (ANSWER[:9], ANSWER[9:])), ANSWER),
        (FakeAnswer(200, EVENTS, (b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n', DONE)), DONE),
        (FakeAnswer(400, JSON, (b"{}",)), b"{}"),
    ],
)
async def test_an_answer_that_is_still_coming_is_awaited(answer: FakeAnswer, out: bytes) -> None:
    way = Way()
    way.picker.streams = answer.headers is EVENTS
    assert way.answer(answer) == ["wait"]
    await way.serving
    assert (way.exchange.status, way.exchange.answer[-len(out) :]) == (answer.status, out)
    assert (answer.is_closed, way.exchange.is_finished, len(way.picker.picks)) == (True, True, 1)


async def test_a_client_that_takes_it_slowly_is_waited_for() -> None:
    way = Way()
    way.exchange.takes = False
    assert way.answer(Whole()) == ["wait"]
    assert not way.exchange.is_finished
    await way.serving
    assert (way.exchange.drains, way.exchange.is_finished, len(way.picker.final)) == (1, True, 1)


async def test_a_client_that_leaves_meanwhile_frees_the_destination(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    way = Way()
    assert way.begin()
    way.serving.stop()
    assert (way.upstream.is_dropped, way.ends) == (True, ["wait"])
    with pytest.raises(asyncio.CancelledError):
        await way.serving
    assert way.picker.aborted == [(ResponseId(1), AbortReason.UNSPECIFIED)]
    assert vars(caplog.records[-1])["outcome"] == "client_closed"


@pytest.mark.parametrize("gone_at", ["send", "finish"])
async def test_a_client_that_is_found_gone_is_logged_so(gone_at: str, caplog: pytest.LogCaptureFixture) -> None:
    class Gone(Arrived):
        def finish(self) -> Awaitable[None]:  # type: ignore[override] # at once
            raise ClientGone("left")

    caplog.set_level(logging.INFO)
    way = Way(exchange=Gone(CHAT, (BODY,), leaves_after_writes=0 if gone_at == "send" else None))
    if way.answer(Whole()) == ["wait"]:
        await way.serving
    assert vars(caplog.records[-1])["outcome"] == "client_closed"
    assert len(way.picker.final) == 1


async def test_the_end_of_the_process_is_told_to_who_waits() -> None:
    way = Way()
    assert way.begin()
    way.outside.departure.end()
    assert (way.upstream.is_dropped, way.ends) == (True, ["wait"])
    await way.serving
    assert way.exchange.status == 503
    assert b"shutting down" in way.exchange.answer


async def test_after_the_end_of_the_process_nothing_is_placed() -> None:
    way = Way()
    way.outside.departure.end()
    assert not way.begin()
    await way.serving
    assert (way.exchange.status, way.picker.picks) == (503, [])


class Unplaced:
    """A place that is yet to come."""

    is_closed = False

    def __await__(self) -> Generator[None, None, Placed]:
        raise AssertionError("nobody awaits it")

    def close(self) -> None:
        self.is_closed = True


async def test_a_place_that_nobody_comes_to_wait_for_is_given_up() -> None:
    unplaced = Unplaced()

    class Full(Instant):
        def place(self, body: bytes, arguments: PickArguments) -> Placed | Placing:  # type: ignore[override] # at once
            return unplaced

    way = Way(picker=Full())
    assert not way.begin()
    way.outside.departure.end()  # before the task of the rest has begun
    await way.serving
    assert (way.exchange.status, unplaced.is_closed, way.picker.held) == (503, True, 0)


async def test_an_error_that_nobody_comes_to_read_is_closed() -> None:
    way = Way()
    answer = Whole(b"{}", 500)
    assert way.answer(answer) == ["wait"]
    way.outside.departure.end()
    await way.serving
    assert (way.exchange.status, answer.is_closed) == (503, True)


async def test_the_end_of_the_process_is_nothing_to_who_has_an_answer() -> None:
    way = Way()
    way.answer(Whole())
    way.outside.departure.end()
    assert way.ends == ["over"]


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_fault_of_ours_is_raised_where_it_is_awaited(when: str) -> None:
    class Faulty(Instant):
        def place(self, body: bytes, arguments: PickArguments) -> Placed | Placing:  # type: ignore[override] # at once
            raise KeyError("detail")

    way = Way(picker=Faulty() if when == "before" else None)
    if when == "before":
        assert not way.begin()
    else:
        way.exchange.failure = KeyError("detail")
        assert way.answer(Whole()) == ["wait"]
    with pytest.raises(KeyError):
        await way.serving
    assert way.picker.held == 0
    assert way.exchange.status == (500 if when == "before" else None)
    assert not way.exchange.written or b'"internal_error"' in way.exchange.answer


async def test_a_stream_that_asks_for_no_usage_is_sent_as_ever() -> None:
    way = Way()
    way.picker.usage = StreamUsage.NOT_ASKED
    assert way.answer(Whole()) == ["over"]
    assert b"include_usage" in way.upstream.body


def test_each_request_is_served_by_the_configuration_that_was_there_when_it_came() -> None:
    served: list[str] = []

    def serving(by: str) -> Handler:
        def handle(_exchange: Exchange) -> Awaitable[None]:
            served.append(by)
            return Way().serving

        return handle

    entry = Entry(serving("before"))
    entry.handle(Arrived(CHAT))
    entry.handler = serving("now")
    entry.handle(Arrived(CHAT))
    assert served == ["before", "now"]
