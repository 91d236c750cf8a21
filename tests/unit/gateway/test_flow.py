import pytest

from kinference.errors import ClientGone, UpstreamCut
from kinference.gateway.flow import Flow
from kinference.gateway.passage import EventPassage, Passage, PlainPassage
from kinference.shapes.sse import EVENT_BYTES_MAX
from kinference.vocabulary import Api
from tests.unit.gateway.fakes import FakeExchange, ManualClock

CHUNK = b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n'
DONE = b"data: [DONE]\n\n"
PAUSE = 15.0


class Lagging(FakeExchange):
    """A client that never keeps up."""

    def send(self, chunk: bytes) -> bool:
        super().send(chunk)
        return False


class Flowing:
    """One flow between fakes."""

    def __init__(self, exchange: FakeExchange | None = None, passage: Passage | None = None) -> None:
        self.exchange = exchange or FakeExchange("/v1/chat/completions")
        self.exchange.status = 200
        self.clock = ManualClock()
        self.first_bytes: list[float] = []
        passage = passage or EventPassage(Api.OPENAI_CHAT, hide_usage=False)
        self.flow = Flow(self.exchange, passage, self.clock, self.first_bytes.append)


def test_a_chunk_is_sent_in_the_call_that_brings_it_and_the_first_is_told_once() -> None:
    flowing = Flowing()
    for chunk in (CHUNK, CHUNK[:5]):
        assert flowing.flow.take(chunk)
        assert flowing.exchange.written[-1] == chunk
        flowing.clock.time += 1.0
    assert (flowing.first_bytes, flowing.flow.first_byte_at) == ([100.0], 100.0)


def test_the_client_has_the_first_bytes_before_anything_is_learned_from_them_even_if_it_has_left() -> None:
    exchange = FakeExchange("/v1/chat/completions")
    had: list[list[bytes]] = []
    exchange.status = 200
    passage = EventPassage(Api.OPENAI_CHAT, hide_usage=False)
    flow = Flow(exchange, passage, ManualClock(), lambda _: had.append(list(exchange.written)))
    assert flow.take(CHUNK)
    assert had == [[CHUNK]]
    gone = Flowing(FakeExchange("/v1/chat/completions", leaves_after_writes=0))
    assert not gone.flow.take(CHUNK)
    assert gone.first_bytes == [100.0]


def test_a_client_that_lags_has_all_only_once_it_has_caught_up() -> None:
    flowing = Flowing(Lagging("/v1/chat/completions"))
    assert not flowing.flow.take(DONE)
    assert (flowing.flow.is_behind, flowing.flow.has_all) == (True, False)
    flowing.flow.catch_up()
    assert (flowing.flow.is_behind, flowing.flow.has_all) == (False, True)


def test_what_comes_to_nothing_is_kept_for_who_waits() -> None:
    gone = Flowing(FakeExchange("/v1/chat/completions", leaves_after_writes=0))
    assert not gone.flow.take(CHUNK)
    assert isinstance(gone.flow.failure, ClientGone)
    endless = Flowing()
    assert not endless.flow.take(b"data: " + b"x" * (EVENT_BYTES_MAX + 1))
    assert isinstance(endless.flow.failure, UpstreamCut)


def test_a_silent_stream_is_spoken_for_after_the_pause_and_then_not_before_the_next() -> None:
    flowing = Flowing()
    flowing.flow.take(CHUNK)
    flowing.clock.time += 5.0
    assert flowing.flow.speak_up(PAUSE) == pytest.approx(10.0)
    assert flowing.exchange.written == [CHUNK]
    flowing.clock.time += 10.0
    assert flowing.flow.speak_up(PAUSE) == PAUSE
    assert flowing.flow.speak_up(PAUSE) == pytest.approx(PAUSE)
    assert flowing.exchange.written == [CHUNK, b": keep-alive\n\n"]


@pytest.mark.parametrize("exchange", [Lagging("/x"), FakeExchange("/x", leaves_after_writes=1)])
def test_nothing_is_said_to_a_client_that_lags_or_has_left(exchange: FakeExchange) -> None:
    flowing = Flowing(exchange)
    flowing.flow.take(CHUNK)
    flowing.clock.time += PAUSE
    assert flowing.flow.speak_up(PAUSE) == PAUSE
    assert exchange.written == [CHUNK]


def test_an_answer_in_one_piece_is_not_known_to_be_whole_by_its_bytes() -> None:
    flowing = Flowing(passage=PlainPassage(Api.OPENAI_CHAT))
    assert flowing.flow.take(b"{}")
    assert not flowing.flow.has_all
