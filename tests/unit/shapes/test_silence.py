from collections.abc import Sequence

import pytest

from kinference.shapes.silence import Silence
from kinference.vocabulary import Api
from tests.unit.shapes.bedrock_converse.frames import frame
from tests.unit.shapes.conversions import CHAT, CONVERSE, MESSAGES, RESPONSES, chunk, data, named


def chat(delta: object, tokens: int, finish: str = "stop") -> bytes:
    usage = {"prompt_tokens": 5, "completion_tokens": tokens}
    return data(chunk({"role": "assistant", "content": ""}), chunk(delta, finish), {"choices": [], "usage": usage})


def messages(tokens: int, *blocks: object, reason: str = "end_turn") -> bytes:
    start = {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 5, "output_tokens": 1}}}
    end = {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": tokens}}
    return named(start, {"type": "ping"}, *blocks, end, {"type": "message_stop"})


def responses(tokens: int, *items: object) -> bytes:
    created = {"type": "response.created", "response": {"id": "r", "model": "m"}}
    usage = {"input_tokens": 5, "output_tokens": tokens}
    ended = {"status": "completed", "output": items, "usage": usage}
    return named(created, {"type": "response.completed", "response": ended})


def converse(tokens: int, reason: str = "end_turn", *events: bytes) -> bytes:
    usage = frame("metadata", {"usage": {"inputTokens": 5, "outputTokens": tokens}})
    return b"".join((frame("messageStart", {}), *events, frame("messageStop", {"stopReason": reason}), usage))


DONE = b"data: [DONE]\n\n"
EMPTY_TEXT = ({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},)
CALL = ({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "c", "name": "f"}},)
REFUSED = {"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}
NOTHING = [
    (CHAT, chat({}, 0) + DONE),
    (CHAT, DONE),
    (MESSAGES, messages(0)),
    (MESSAGES, messages(0, *EMPTY_TEXT)),
    (RESPONSES, responses(0)),
    (CONVERSE, converse(0)),
]
SOMETHING = [
    (CHAT, chat({}, 1) + DONE),
    (CHAT, chat({"content": "a"}, 0) + DONE),
    (CHAT, chat({"refusal": "no"}, 0) + DONE),
    (CHAT, chat({}, 0, "length") + DONE),
    (CHAT, chat({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f"}}]}, 0) + DONE),
    (MESSAGES, messages(3)),
    (MESSAGES, messages(0, reason="refusal")),
    (MESSAGES, messages(0, *CALL)),
    (RESPONSES, responses(1)),
    (RESPONSES, responses(0, REFUSED)),
    (CONVERSE, converse(2)),
    (CONVERSE, converse(0, "guardrail_intervened")),
    (CONVERSE, converse(0, "end_turn", frame("contentBlockDelta", {"delta": {"text": "a"}, "contentBlockIndex": 0}))),
]


def heard(api: Api, chunks: Sequence[bytes]) -> Silence:
    silence = Silence(api)
    for piece in chunks:
        silence.take(piece)
    return silence


@pytest.mark.parametrize("step", [7, 100_000])
@pytest.mark.parametrize(("api", "stream"), NOTHING)
def test_c6_a_stream_that_ends_well_and_says_nothing_is_whole_silence(api: Api, stream: bytes, step: int) -> None:
    silence = heard(api, [stream[at : at + step] for at in range(0, len(stream), step)])
    assert (silence.is_whole, silence.is_broken) == (True, False)


@pytest.mark.parametrize(("api", "stream"), SOMETHING)
def test_what_was_said_or_cost_something_or_ended_for_a_reason_is_an_answer(api: Api, stream: bytes) -> None:
    silence = heard(api, [stream])
    assert (silence.is_whole, silence.is_broken) == (False, True)


def test_a_stream_that_may_yet_say_something_is_neither() -> None:
    silence = heard(CHAT, [chat({}, 0)])
    assert (silence.is_whole, silence.is_broken) == (False, False)


def test_a_stream_that_ends_without_its_last_word_ended_well_where_it_gave_a_reason() -> None:
    silence = heard(CHAT, [chat({}, 0)])
    silence.end()
    assert silence.is_whole
    cut = heard(CHAT, [data(chunk({"role": "assistant"}))])
    cut.end()
    assert (cut.is_whole, cut.is_broken) == (False, True)


def test_the_last_event_counts_without_its_blank_line() -> None:
    silence = heard(CHAT, [chat({}, 0) + b"data: [DONE]"])
    silence.end()
    assert silence.is_whole
