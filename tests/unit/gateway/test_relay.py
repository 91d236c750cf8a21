import asyncio
from collections.abc import AsyncIterator

import pytest

from kinference.errors import UpstreamTimeout
from kinference.gateway.access_log import End
from kinference.gateway.flow import Flow
from kinference.gateway.passage import EventPassage, Passage, PlainPassage
from kinference.gateway.relay import Relay
from kinference.vocabulary import Api
from tests.unit.gateway.fakes import CUT, FakeAnswer, FakeExchange, ManualClock

CHUNK = b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n'
DONE = b"data: [DONE]\n\n"


def events() -> Passage:
    return EventPassage(Api.OPENAI_CHAT, hide_usage=False)


class Running:
    """A relay between fakes."""

    def __init__(self, answer: FakeAnswer, passage: Passage, exchange: FakeExchange | None = None) -> None:
        self.exchange = exchange or FakeExchange("/v1/chat/completions")
        self.exchange.status = 200
        self.clock = ManualClock()
        self.first_bytes: list[float] = []
        self.flow = Flow(self.exchange, passage, self.clock, self._note)
        self.relay = Relay(answer, self.flow, 15.0)

    def _note(self, now: float) -> None:
        self.first_bytes.append(now)

    async def run(self) -> End:
        await self.relay.run()
        return self.relay.end


async def test_each_chunk_is_written_as_it_comes_and_the_first_is_reported_once() -> None:
    running = Running(FakeAnswer(chunks=(CHUNK, CHUNK[:5], CHUNK[5:], DONE)), events())
    assert await running.run() is End.OK
    assert running.exchange.written == [CHUNK, CHUNK[:5], CHUNK[5:], DONE]
    assert running.exchange.is_finished
    assert running.first_bytes == [100.0]


@pytest.mark.parametrize("error", [CUT, UpstreamTimeout("silent")])
async def test_a10_a_stream_that_breaks_off_ends_in_an_error_event(error: Exception) -> None:
    running = Running(FakeAnswer(chunks=(CHUNK, error)), events())  # type: ignore[arg-type] # any of our errors
    assert await running.run() is End.UPSTREAM_CUT
    assert b'"code":"upstream_closed"' in running.exchange.written[-1]
    assert DONE not in running.exchange.answer
    assert running.exchange.is_finished


@pytest.mark.parametrize("hide_usage", [False, True])
async def test_a10_a_stream_with_an_event_without_end_ends_in_an_error_event(hide_usage: bool) -> None:
    endless = (CHUNK, b"data: ", *[b"y" * (1 << 20)] * 18, DONE)
    running = Running(FakeAnswer(chunks=endless), EventPassage(Api.OPENAI_CHAT, hide_usage=hide_usage))
    assert await running.run() is End.UPSTREAM_CUT
    assert b'"code":"upstream_closed"' in running.exchange.written[-1]
    assert DONE not in running.exchange.written
    assert running.exchange.is_finished


async def test_a10_a_stream_that_ends_too_early_is_not_taken_for_a_whole_one() -> None:
    running = Running(FakeAnswer(chunks=(CHUNK,)), events())
    assert await running.run() is End.UPSTREAM_CUT


async def test_a14_nothing_follows_the_end_of_a_stream_even_when_the_connection_then_breaks() -> None:
    running = Running(FakeAnswer(chunks=(CHUNK, DONE, CUT)), events())
    assert await running.run() is End.OK
    assert running.exchange.answer == CHUNK + DONE


async def test_an_answer_in_one_piece_that_breaks_off_breaks_the_clients_connection() -> None:
    running = Running(FakeAnswer(chunks=(b'{"a', CUT)), PlainPassage(Api.OPENAI_CHAT))
    assert await running.run() is End.UPSTREAM_CUT
    assert running.exchange.is_aborted
    assert not running.exchange.is_finished


class Whole(FakeAnswer):
    """Has come in one read."""

    def arrived(self) -> bytes | None:
        return b'{"a":1}'


async def test_an_answer_that_is_all_here_goes_out_at_once() -> None:
    running = Running(Whole(chunks=(CUT,)), PlainPassage(Api.OPENAI_CHAT))
    assert await running.run() is End.OK
    assert running.exchange.written == [b'{"a":1}']
    assert running.exchange.is_finished
    assert running.first_bytes == [100.0]


async def test_a_client_that_leaves_before_an_answer_that_is_all_here_was_not_served() -> None:
    exchange = FakeExchange("/v1/chat/completions", leaves_after_writes=0)
    assert await Running(Whole(chunks=(CUT,)), PlainPassage(Api.OPENAI_CHAT), exchange).run() is End.CLIENT_CLOSED
    assert not exchange.is_finished


async def test_an_empty_answer_is_an_answer() -> None:
    running = Running(FakeAnswer(chunks=()), PlainPassage(Api.OPENAI_CHAT))
    assert await running.run() is End.OK
    assert (running.first_bytes, running.flow.first_byte_at) == ([], None)


async def test_an_error_inside_the_stream_goes_through_and_is_told_apart() -> None:
    running = Running(FakeAnswer(chunks=(CHUNK, b'data: {"error":{"message":"boom"}}\n\n')), events())
    assert await running.run() is End.UPSTREAM_ERROR
    assert running.exchange.written[-1] == b'data: {"error":{"message":"boom"}}\n\n'


async def test_a_client_that_leaves_ends_the_relay() -> None:
    exchange = FakeExchange("/v1/chat/completions", leaves_after_writes=1)
    running = Running(FakeAnswer(chunks=(CHUNK, CHUNK, DONE)), events(), exchange)
    assert await running.run() is End.CLIENT_CLOSED
    assert exchange.written == [CHUNK]


@pytest.mark.parametrize("last", [DONE, b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'])
async def test_a_client_that_leaves_with_the_whole_answer_in_hand_was_served(last: bytes) -> None:
    exchange = FakeExchange("/v1/chat/completions", leaves_after_writes=2)
    running = Running(FakeAnswer(chunks=(CHUNK, last, b": bye\n\n")), events(), exchange)
    assert await running.run() is End.OK
    assert exchange.written == [CHUNK, last]


async def test_a_client_that_leaves_before_the_end_reached_it_was_not() -> None:
    exchange = FakeExchange("/v1/chat/completions", leaves_after_writes=1)
    running = Running(FakeAnswer(chunks=(CHUNK, DONE)), events(), exchange)
    assert await running.run() is End.CLIENT_CLOSED


class Silent(FakeAnswer):
    """Sends one chunk, then nothing until told."""

    def __init__(self, first: bytes) -> None:
        super().__init__()
        self.first, self.go_on = first, asyncio.Event()

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self.first
        await self.go_on.wait()
        yield DONE


class Watched(FakeExchange):
    """Tells when a given number of writes has been tried."""

    def __init__(self, writes: int, *, leaves_after_writes: int | None = None) -> None:
        super().__init__("/v1/chat/completions", leaves_after_writes=leaves_after_writes)
        self._writes, self.reached = writes, asyncio.Event()

    def send(self, chunk: bytes) -> bool:
        self._writes -= 1
        if self._writes == 0:
            self.reached.set()
        return super().send(chunk)


class LoopClock(ManualClock):
    """Tells the event loop's own time."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()


def silent_relay(
    exchange: FakeExchange, answer: FakeAnswer, passage: Passage, clock: ManualClock | None = None
) -> Relay:
    exchange.status = 200
    return Relay(answer, Flow(exchange, passage, clock or LoopClock(), lambda _now: None), 0.005)


async def test_a19_a_silent_stream_is_kept_alive_again_and_again() -> None:
    exchange, answer = Watched(3), Silent(CHUNK)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(silent_relay(exchange, answer, events()).run())
        await exchange.reached.wait()
        answer.go_on.set()
    assert exchange.written[:3] == [CHUNK, b": keep-alive\n\n", b": keep-alive\n\n"]
    assert exchange.written[-1] == DONE


async def test_a19_a_stream_that_was_not_silent_long_enough_is_left_alone() -> None:
    class Counting(ManualClock):
        def __init__(self) -> None:
            super().__init__()
            self.asked, self.often = 0, asyncio.Event()

        def now(self) -> float:
            self.asked += 1
            if self.asked > 10:
                self.often.set()
            return self.time

    exchange, answer, clock = Watched(1), Silent(CHUNK), Counting()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(silent_relay(exchange, answer, events(), clock).run())
        await clock.often.wait()
        answer.go_on.set()
    assert exchange.written == [CHUNK, DONE]


async def test_what_goes_wrong_in_the_silence_is_told_and_costs_the_stream_nothing() -> None:
    class Broken(FakeExchange):
        def send(self, chunk: bytes) -> bool:
            if chunk == b": keep-alive\n\n":
                answer.go_on.set()
                raise AssertionError("a fault of our own")
            return super().send(chunk)

    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context["exception"]))
    answer = Silent(CHUNK)
    relay = silent_relay(Broken("/v1/chat/completions"), answer, events())
    await relay.run()
    assert "of our own" in str(told)
    assert relay.end is End.OK


async def test_a_client_that_leaves_while_the_stream_is_silent_is_noticed_at_the_next_chunk() -> None:
    exchange, answer = Watched(2, leaves_after_writes=1), Silent(CHUNK)
    relay = silent_relay(exchange, answer, events())
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(relay.run())
        await exchange.reached.wait()
        answer.go_on.set()
    assert exchange.written == [CHUNK]
    assert relay.end is End.CLIENT_CLOSED


async def test_a_cancelled_relay_counts_as_left_by_its_client() -> None:
    exchange, answer = Watched(1), Silent(CHUNK)
    relay = silent_relay(exchange, answer, events())
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(relay.run())
        await exchange.reached.wait()
        running.cancel()
    assert running.cancelled()
    assert relay.end is End.CLIENT_CLOSED


class SlowClient(FakeExchange):
    """Takes what it is sent only when it is let."""

    def __init__(self) -> None:
        super().__init__("/v1/chat/completions")
        self.may_go_on, self.is_waited_for = asyncio.Event(), asyncio.Event()

    def send(self, chunk: bytes) -> bool:
        super().send(chunk)
        return False

    async def drained(self) -> None:
        self.is_waited_for.set()
        await self.may_go_on.wait()


async def test_a_client_that_lags_is_waited_for_before_more_is_asked_of_the_destination() -> None:
    exchange = SlowClient()
    relay = silent_relay(exchange, FakeAnswer(chunks=(CHUNK, DONE)), events())
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(relay.run())
        await exchange.is_waited_for.wait()
        assert exchange.written == [CHUNK]
        exchange.may_go_on.set()
    assert (exchange.answer, relay.end) == (CHUNK + DONE, End.OK)


async def test_a_client_that_leaves_before_it_took_the_end_was_not_served() -> None:
    exchange = SlowClient()
    relay = silent_relay(exchange, FakeAnswer(chunks=(DONE,)), events())
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(relay.run())
        await exchange.is_waited_for.wait()
        running.cancel()
    assert relay.end is End.CLIENT_CLOSED


async def test_a19_a_client_that_takes_nothing_is_told_nothing_more() -> None:
    exchange, clock = SlowClient(), ManualClock()
    relay = silent_relay(exchange, Silent(CHUNK), events(), clock)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(relay.run())
        await exchange.is_waited_for.wait()
        clock.time += 60
        await asyncio.sleep(0.02)  # four times the pause after which it would be told
        running.cancel()
    assert exchange.written == [CHUNK]
