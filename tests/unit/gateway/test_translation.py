import json

import pytest

from kinference.errors import KinferenceError, UpstreamCut, UpstreamTimeout
from kinference.gateway.translation import (
    STREAM_MAX,
    TranslatedPassage,
    WholeTranslation,
    known_way_back,
    own_way_back,
    read_whole,
    way_back,
)
from kinference.observe.metrics import Metrics
from kinference.ports import UpstreamAnswer
from kinference.shapes.answers import Frame, NoAnswer
from kinference.shapes.scan import BadBody
from kinference.shapes.translate import Way, translated
from kinference.shapes.usage import Usage
from kinference.vocabulary import Api
from tests.unit.gateway.fakes import FakeAnswer

CHAT, MESSAGES = Api.OPENAI_CHAT, Api.ANTHROPIC_MESSAGES
ORIGINAL = b'{"model":"m","messages":[{"role":"user","content":"hi"}],"seed":1,"stream":true}'
WAY = Way(CHAT, MESSAGES, "m")
TEXT = {"id": "msg_1", "model": "up", "stop_reason": "end_turn", "content": [{"type": "text", "text": "hi"}]}
DELTA = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}}
STOPPED = {
    "type": "message_delta",
    "delta": {"stop_reason": "end_turn"},
    "usage": {"input_tokens": 3, "output_tokens": 2},
}
STOP = {"type": "message_stop"}


def event(members: object) -> bytes:
    return b"data: " + json.dumps(members).encode() + b"\n\n"


def passage() -> TranslatedPassage:
    return TranslatedPassage(way_back(ORIGINAL, b"{}", WAY).back, Frame("req_1", 1))


def test_the_way_back_knows_what_was_sent_and_what_was_lost() -> None:
    found = way_back(ORIGINAL, b'{"model":"claude-opus-4-7"}', WAY)
    assert (found.back.model, found.back.is_streaming) == ("claude-opus-4-7", True)
    assert found.warnings == "dropped=seed;assumed=max_tokens:64000"
    assert way_back(ORIGINAL, b"no json", WAY).back.model == "m"
    with pytest.raises(BadBody):
        way_back(b"{}", b"{}", WAY)


@pytest.mark.parametrize("destination", [MESSAGES, Api.GEMINI, Api.BEDROCK_CONVERSE, Api.OPENAI_RESPONSES])
def test_what_the_picker_tells_leads_back_as_what_is_found_out_again(destination: Api) -> None:
    sent, told = translated(ORIGINAL, Way(CHAT, destination, "theirs"))
    assert known_way_back(told, destination, "m") == way_back(ORIGINAL, sent, Way(CHAT, destination, "m"))


def test_an_answer_of_the_other_kind_is_brought_into_the_one_that_was_asked_for() -> None:
    told = own_way_back(ORIGINAL, Way(MESSAGES, MESSAGES, "m"), wants_usage=True)
    whole = WholeTranslation(told.back, event(DELTA) + event(STOPPED) + event(STOP), is_stream=True)
    assert json.loads(whole.written(Frame("req_1", 1)))["content"] == [{"type": "text", "text": "a"}]
    assert whole.usage() == Usage(3, 2, None, "m")


@pytest.mark.parametrize("body", [b"{", b'{"n":2}'])
def test_what_cannot_be_brought_into_it_is_no_answer(body: bytes) -> None:
    for streams, told in ((True, "asked for a stream and sent none"), (False, "in one piece and sent a stream")):
        with pytest.raises(UpstreamCut, match=told):
            own_way_back(body, Way(CHAT, CHAT, "m", streams=streams), wants_usage=True)


def test_a_stream_is_translated_event_by_event_and_counted() -> None:
    stream = passage()
    assert b'"content":"a"' in stream.feed(event(DELTA)[:30], 1.0) + stream.feed(event(DELTA)[30:], 1.0)
    stream.feed(event(DELTA), 1.5)
    assert not stream.is_whole(cut=True)
    assert stream.feed(event(STOPPED) + event(STOP), 2.0).endswith(b"data: [DONE]\n\n")
    assert stream.is_whole(cut=True)
    assert stream.close() == b""
    assert stream.usage() == Usage(3, 2, None, "m")
    assert (stream.estimated_tokens(), sum(stream.gaps()), stream.has_failed()) == (2, 1, False)


def test_what_ended_well_is_ended_when_the_destination_closes() -> None:
    stream = passage()
    stream.feed(event(STOPPED)[:-1], 1.0)  # its blank line never comes
    assert stream.close().endswith(b"data: [DONE]\n\n")


def test_a_stream_that_breaks_off_says_so() -> None:
    stream = passage()
    stream.feed(event(DELTA), 1.0)
    assert stream.keep_alive() == b": keep-alive\n\n"
    assert b'"code":"upstream_closed"' in (stream.farewell() or b"")
    assert stream.keep_alive() == b""
    assert stream.usage() is None


def test_an_event_without_end_is_no_answer() -> None:
    with pytest.raises(UpstreamCut):
        passage().feed(b"data: " + b"x" * (17 << 20), 1.0)


def test_a_whole_answer_in_either_form() -> None:
    back = way_back(ORIGINAL, b"{}", WAY).back
    whole = WholeTranslation(back, json.dumps(TEXT).encode())
    assert whole.written(Frame("r", 1)).endswith(b"data: [DONE]\n\n")  # the client asked for a stream
    assert (whole.usage(), whole.gaps()) == (None, ())
    assert whole.estimated_tokens() > 0
    counted = TEXT | {"usage": {"input_tokens": 3, "output_tokens": 2}}
    assert WholeTranslation(back, json.dumps(counted).encode()).usage() == Usage(3, 2, None, "m")
    with pytest.raises(NoAnswer):
        WholeTranslation(back, b"<html>")


@pytest.mark.parametrize("failure", [UpstreamCut, UpstreamTimeout])
async def test_whoever_asked_is_not_told_where_a_broken_answer_came_from(failure: type[KinferenceError]) -> None:
    with pytest.raises(failure, match=r"^the destination") as told:
        await read_whole(FakeAnswer(chunks=(b"a", failure("https://inner.example broke off"))), Metrics())
    assert "inner" not in str(told.value)


async def test_an_answer_is_read_whole() -> None:
    answer: UpstreamAnswer = FakeAnswer(chunks=(b"a", b"b"))
    assert await read_whole(answer, Metrics()) == b"ab"
    metrics = Metrics()
    with pytest.raises(UpstreamCut):
        await read_whole(FakeAnswer(chunks=(b"x" * (33 << 20), b"x" * (33 << 20))), metrics)
    assert b'kinference_gateway_failed_attempts_total{kind="too_long"} 1.0' in metrics.exposition()


def test_a_stream_without_end_is_broken_off() -> None:
    through, piece = passage(), b": " + b"x" * (2**20 - 4) + b"\n\n"
    for _ in range(STREAM_MAX // len(piece)):
        through.feed(piece, 0.0)
    with pytest.raises(UpstreamCut, match="over"):
        through.feed(piece, 0.0)
