"""Streams whose bytes are passed on in the calls that bring them, and each place where one is left to a task."""

import asyncio
import gzip
import logging
import sys
import weakref
from collections.abc import AsyncIterator, Awaitable

import pytest

from kinference.errors import ClientGone, KinferenceError
from kinference.gateway.options import GatewayOptions
from kinference.gateway.service import Gateway
from kinference.ids import ResponseId
from kinference.ports import Follower, Headers
from kinference.vocabulary import AbortReason, StreamUsage
from kinference.wire.over import OVER
from tests.unit.gateway.fakes import CUT, ENGINE_A, ENGINE_B, EVENTS, FakeAnswer, Instant
from tests.unit.gateway.test_course import CHAT, Arrived, Pooled, Way

BODY = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'
ROLE = b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
WORD = b'data: {"choices":[{"delta":{"content":"word "}}]}\n\n'
FINISH = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}\n\n'
ERROR = b'data: {"error":{"message":"no room","code":503}}\n\n'
DONE = b"data: [DONE]\n\n"
FAREWELL = b'"code":"upstream_closed"'


class Followed(FakeAnswer):
    """A stream of which some is here, and the rest comes when a test says so."""

    def __init__(self, *here: bytes, rest: tuple[bytes | KinferenceError, ...] = (), is_all: bool = False) -> None:
        """`rest` is for whoever reads on."""
        super().__init__(200, EVENTS, rest)
        self._here, self._is_all = here, is_all
        self.follower: Follower | None = None

    def follow(self, follower: Follower) -> bool:
        self.follower = follower
        for chunk in self._here:
            if not follower.take(chunk):
                return True
        if self._is_all:
            self.ends()
        return True

    def leave(self) -> None:
        self.follower = None

    def comes(self, *chunks: bytes) -> None:
        for chunk in chunks:
            assert self.follower is not None
            self.follower.take(chunk)

    def ends(self, *, is_cut: bool = False) -> None:
        follower, self.follower = self.follower, None
        assert follower is not None
        follower.ended(is_cut=is_cut)

    def close(self) -> Awaitable[None]:  # type: ignore[override] # at once
        self.is_closed = True
        return OVER


def streaming(exchange: Arrived | None = None, picker: Instant | None = None, *elsewhere: FakeAnswer) -> Way:
    picker = picker or Instant(ENGINE_A, ENGINE_B)
    picker.streams = True
    return Way(Pooled(*elsewhere), picker=picker, exchange=exchange or Arrived(CHAT, (BODY,)))


async def test_each_chunk_goes_out_in_the_call_that_brings_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    way, answer = streaming(), Followed()
    way.picker.usage = StreamUsage.SETTLED
    assert way.answer(answer) == []
    for chunk in (WORD, WORD[:9], WORD[9:], FINISH, USAGE, DONE):
        answer.comes(chunk)
        assert way.exchange.written[-1] == chunk
        way.world.clock.time += 0.012
    assert way.ends == []
    answer.ends()
    assert (way.ends, way.exchange.is_finished, answer.is_closed) == (["over"], True, True)
    assert way.exchange.field(b"x-accel-buffering") == b"no"
    assert [report.upstream_status for report in way.picker.first] == [200]
    [final] = way.picker.final
    assert (final.prompt_tokens, final.completion_tokens, final.itl_bucket_counts[4]) == (7, 2, 1)
    assert (way.picker.held, way.picker.aborted) == (0, [])
    assert vars(caplog.records[-1])["outcome"] == "ok"


async def test_a_stream_that_is_all_here_is_served_at_once_and_holds_nothing() -> None:
    way, answer = streaming(), Followed(ROLE + WORD, WORD + FINISH + DONE, is_all=True)
    assert way.answer(answer) == ["over"]
    assert way.exchange.answer == ROLE + WORD + WORD + FINISH + DONE
    held = weakref.ref(way)
    serving = way.serving
    del way
    assert held() is None
    assert serving.failure is None


async def test_nothing_goes_out_before_something_is_said() -> None:
    way, answer = streaming(), Followed(b": hi\n\n", ROLE)
    way.answer(answer)
    answer.comes(b": hi\n\n", WORD[:20])
    assert (way.exchange.status, way.exchange.written) == (None, [])
    answer.comes(WORD[20:])
    assert way.exchange.status == 200
    assert way.exchange.answer == b": hi\n\n" + ROLE + b": hi\n\n" + WORD
    assert len(way.picker.first) == 1


async def test_usage_that_the_client_did_not_ask_for_stays_here() -> None:
    way, answer = streaming(), Followed(WORD, FINISH, USAGE, DONE, is_all=True)
    way.picker.usage = StreamUsage.NOT_ASKED
    assert way.answer(answer) == ["over"]
    assert way.exchange.answer == WORD + FINISH + DONE
    assert [report.completion_tokens for report in way.picker.final] == [2]


@pytest.mark.parametrize("how", ["cut", "end", "error", "no event"])
async def test_a_stream_that_fails_before_it_says_anything_is_asked_for_elsewhere(how: str) -> None:
    way = streaming(None, None, FakeAnswer(200, EVENTS, (WORD, DONE)))
    answer = Followed(ROLE, rest=(CUT,) if how == "cut" else ())
    way.answer(answer)
    if how == "error":
        answer.comes(ERROR)
    elif how == "no event":
        answer.comes(b"data: ", b"x" * (17 << 20))
    else:
        answer.ends(is_cut=how == "cut")
    assert (way.ends, answer.follower) == (["wait"], None)
    await way.serving
    assert (way.exchange.status, way.exchange.answer) == (200, WORD + DONE)
    assert (len(way.picker.picks), answer.is_closed) == (2, True)


async def test_a_stream_without_end_before_it_says_anything_is_let_through() -> None:
    way, answer = streaming(), Followed(ROLE)
    way.answer(answer)
    answer.comes(*[b": hi\n\n"] * 63)
    assert way.exchange.answer == ROLE + b": hi\n\n" * 63
    answer.comes(WORD)
    assert way.exchange.written[-1] == WORD


@pytest.mark.parametrize("is_cut", [False, True])
async def test_a_stream_that_breaks_off_ends_in_an_error_event(*, is_cut: bool) -> None:
    way, answer = streaming(), Followed(WORD, rest=(CUT,) if is_cut else ())
    way.answer(answer)
    answer.ends(is_cut=is_cut)
    assert way.ends == ["wait"]
    await way.serving
    assert way.exchange.answer.startswith(WORD)
    assert FAREWELL in way.exchange.written[-1]
    assert (way.exchange.is_finished, [report.broken for report in way.picker.final]) == (True, [True])


async def test_a_stream_that_is_whole_is_so_even_when_its_connection_then_breaks() -> None:
    way, answer = streaming(), Followed(WORD, DONE, rest=(CUT,))
    way.answer(answer)
    answer.ends(is_cut=True)
    await way.serving
    assert (way.exchange.answer, way.exchange.is_finished) == (WORD + DONE, True)


async def test_an_event_without_end_breaks_the_stream_off() -> None:
    way, answer = streaming(), Followed(WORD)
    way.answer(answer)
    answer.comes(b"data: ", b"y" * (17 << 20))
    assert way.ends == ["wait"]
    await way.serving
    assert FAREWELL in way.exchange.written[-1]


async def test_a_client_that_takes_it_slowly_is_waited_for_and_sent_the_rest() -> None:
    class Slow(Arrived):
        async def drained(self) -> None:
            self.drains += 1
            self.takes = True

    way, answer = streaming(Slow(CHAT, (BODY,))), Followed(WORD, rest=(WORD, DONE))
    way.answer(answer)
    way.exchange.takes = False
    answer.comes(WORD)
    assert (way.ends, answer.follower) == (["wait"], None)
    await way.serving
    assert (way.exchange.drains, way.exchange.answer, way.exchange.is_finished) == (1, WORD * 3 + DONE, True)
    assert len(way.picker.final) == 1


async def test_a_client_that_is_behind_from_the_first_is_sent_what_was_held() -> None:
    way, answer = streaming(), Followed(ROLE, WORD, rest=(DONE,))
    way.exchange.takes = False
    assert way.answer(answer) == ["wait"]
    await way.serving
    assert way.exchange.answer == ROLE + WORD + DONE


@pytest.mark.parametrize("writes", [0, 1])
async def test_a_client_that_is_found_gone_is_logged_so(writes: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    way, answer = streaming(Arrived(CHAT, (BODY,), leaves_after_writes=writes)), Followed(WORD)
    if way.answer(answer) == []:
        answer.comes(WORD)
    assert way.ends == ["wait"]
    await way.serving
    assert (answer.is_closed, len(way.picker.final)) == (True, 1)
    assert vars(caplog.records[-1])["outcome"] == "client_closed"


@pytest.mark.parametrize(("last", "outcome"), [((), "client_closed"), ((FINISH,), "ok"), ((DONE,), "ok")])
async def test_a_client_that_leaves_frees_the_destination(
    last: tuple[bytes, ...], outcome: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    way, answer = streaming(), Followed(WORD, *last)
    assert way.answer(answer) == []
    way.serving.stop()
    assert (way.ends, answer.follower) == (["wait"], None)
    with pytest.raises(asyncio.CancelledError):
        await way.serving
    assert (answer.is_closed, way.exchange.is_finished) == (True, False)
    assert [report.completion_tokens for report in way.picker.final] == [1]
    assert vars(caplog.records[-1])["outcome"] == outcome


async def test_a_client_that_leaves_before_anything_was_said_frees_the_destination() -> None:
    way, answer = streaming(), Followed(ROLE)
    way.answer(answer)
    way.serving.stop()
    with pytest.raises(asyncio.CancelledError):
        await way.serving
    assert (answer.is_closed, way.picker.final, len(way.picker.picks)) == (True, [], 1)
    assert way.picker.aborted == [(ResponseId(1), AbortReason.UNSPECIFIED)]


async def test_the_end_of_the_process_is_told_to_who_has_heard_nothing_and_to_nobody_else() -> None:
    way, answer = streaming(), Followed(ROLE)
    way.answer(answer)
    begun = streaming()
    begun.outside.departure.end()
    way.outside.departure.end()
    assert way.ends == ["wait"]
    await way.serving
    assert (way.exchange.status, answer.is_closed) == (503, True)
    assert b"shutting down" in way.exchange.answer

    way, answer = streaming(), Followed(WORD)
    way.answer(answer)
    way.outside.departure.end()
    answer.comes(DONE)
    answer.ends()
    assert (way.ends, way.exchange.answer) == (["over"], WORD + DONE)


class Patient(Way):
    """Its clients are told something every few milliseconds."""

    def __init__(self, exchange: Arrived | None = None) -> None:
        picker = Instant()
        picker.streams = True
        super().__init__(picker=picker, exchange=exchange or Arrived(CHAT, (BODY,)))
        self.serving = Gateway(self.outside, GatewayOptions(keep_alive=0.01)).handle(self.exchange)
        self.told = asyncio.Event()

    def wait(self) -> None:
        super().wait()
        self.told.set()


async def test_a19_a_stream_silent_after_its_head_is_begun_all_the_same() -> None:
    class Silent(Followed):
        async def chunks(self) -> AsyncIterator[bytes]:
            await asyncio.sleep(0.05)
            yield WORD + DONE

    way, answer = Patient(), Silent(ROLE)
    way.answer(answer)
    await asyncio.wait_for(way.told.wait(), 60)
    assert (answer.follower, way.exchange.status) == (None, None)
    await way.serving
    assert way.exchange.status == 200
    assert way.exchange.answer.startswith(ROLE)
    assert way.exchange.answer.endswith(WORD + DONE)


async def test_a19_a_stream_that_falls_silent_is_kept_alive() -> None:
    class Listening(Arrived):
        heard = asyncio.Event()

        def send(self, chunk: bytes) -> bool:
            if chunk == b": keep-alive\n\n":
                self.heard.set()
            way.world.clock.time += 1.0  # of silence, as the next look finds
            return super().send(chunk)

    exchange = Listening(CHAT, (BODY,))
    way, answer = Patient(exchange), Followed(WORD)
    way.answer(answer)
    way.world.clock.time += 1.0
    await asyncio.wait_for(exchange.heard.wait(), 60)
    answer.comes(DONE)
    answer.ends()
    assert way.ends == ["over"]
    spoken = len(exchange.written)
    await asyncio.sleep(0.05)
    assert len(exchange.written) == spoken
    assert exchange.answer.replace(b": keep-alive\n\n", b"") == WORD + DONE


async def test_what_came_packed_though_nobody_asked_for_it_is_unpacked_by_a_task() -> None:
    packed = gzip.compress(WORD + DONE)
    way, answer = streaming(), Followed(packed[:20], rest=(packed[20:],))
    assert way.answer(answer) == ["wait"]
    await way.serving
    assert way.exchange.answer == WORD + DONE


async def test_what_is_packed_and_broken_is_no_stream() -> None:
    way = streaming(None, None, FakeAnswer(200, EVENTS, (WORD, DONE)))
    assert way.answer(Followed(b"\x1fno gzip at all")) == ["wait"]
    await way.serving
    assert way.exchange.answer == WORD + DONE


async def test_an_answer_that_nobody_can_follow_is_awaited() -> None:
    way, answer = streaming(), FakeAnswer(200, EVENTS, (WORD, DONE))
    assert way.answer(answer) == ["wait"]
    await way.serving
    assert way.exchange.answer == WORD + DONE


@pytest.mark.parametrize("when", ["begin", "amid", "end"])
async def test_a_fault_of_ours_is_raised_where_it_is_awaited(when: str) -> None:
    class Faulty(Arrived):
        def send(self, chunk: bytes) -> bool:
            if when == "amid" and self.written:
                raise KeyError("detail")
            return super().send(chunk)

        def start(self, status: int, headers: Headers) -> Awaitable[None]:  # type: ignore[override] # at once
            if when == "begin":
                raise KeyError("detail")
            return super().start(status, headers)

        def finish(self) -> Awaitable[None]:  # type: ignore[override] # at once
            raise KeyError("detail")

    way, answer = streaming(Faulty(CHAT, (BODY,))), Followed(WORD, DONE)
    if way.answer(answer) == []:
        answer.ends()
    assert way.ends == ["wait"]
    with pytest.raises(KeyError):
        await way.serving
    assert answer.is_closed


async def test_a_client_that_is_gone_at_the_end_has_had_all(caplog: pytest.LogCaptureFixture) -> None:
    class Gone(Arrived):
        def finish(self) -> Awaitable[None]:  # type: ignore[override] # at once
            raise ClientGone("left")

    caplog.set_level(logging.INFO)
    way, answer = streaming(Gone(CHAT, (BODY,))), Followed(WORD, DONE, is_all=True)
    assert way.answer(answer) == ["over"]
    assert vars(caplog.records[-1])["outcome"] == "ok"


async def test_a_stream_that_has_begun_holds_on_to_no_question() -> None:
    question = BODY + b" "
    held = sys.getrefcount(question)
    way, answer = streaming(Arrived(CHAT, (question,))), Followed(WORD)
    assert way.answer(answer) == []
    way.exchange._body = ()
    way.upstream.requests.clear()
    way.picker.pushed.clear()
    assert sys.getrefcount(question) == held
    answer.comes(DONE)
    answer.ends()
    assert way.ends == ["over"]
