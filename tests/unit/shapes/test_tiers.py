"""What tier an answer came by, from every API to every other, whole and streamed."""

import json
from typing import Any

import pytest

from kinference.shapes.tiers import tier_of, tier_to
from kinference.vocabulary import Api
from tests.unit.shapes.bedrock_converse.frames import frame
from tests.unit.shapes.conversions import CHAT, CONVERSE, GEMINI, MESSAGES, RESPONSES, Stream, answered, data


def whole(destination: Api, word: str) -> Any:
    """An answer that came by this tier."""
    match destination:
        case Api.OPENAI_CHAT:
            choice = {"message": {"content": "a"}, "finish_reason": "stop"}
            return {"service_tier": word, "choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
        case Api.OPENAI_RESPONSES:
            item = {"type": "message", "content": [{"type": "output_text", "text": "a"}]}
            return {"service_tier": word, "status": "completed", "output": [item]}
        case Api.ANTHROPIC_MESSAGES:
            usage = {"input_tokens": 1, "output_tokens": 1, "service_tier": word}
            return {"content": [{"type": "text", "text": "a"}], "stop_reason": "end_turn", "usage": usage}
        case Api.GEMINI:
            candidate = {"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}
            return {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 1, "trafficType": word}}
        case _:
            said = {"message": {"content": [{"text": "a"}]}}
            return {"output": said, "stopReason": "end_turn", "serviceTier": {"type": word}}


def streamed(destination: Api, word: str) -> bytes:
    """A stream that came by it."""
    answer = whole(destination, word)
    match destination:
        case Api.OPENAI_CHAT:
            choice = {"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}
            return data({"service_tier": word, "choices": [choice]}) + b"data: [DONE]\n\n"
        case Api.OPENAI_RESPONSES:
            return data({"type": "response.created", "response": {"service_tier": word}}) + data(
                {"type": "response.completed", "response": answer}
            )
        case Api.ANTHROPIC_MESSAGES:
            return (
                data({"type": "message_start", "message": {"usage": answer["usage"]}})
                + data({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}})
                + data({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}})
                + data({"type": "message_stop"})
            )
        case Api.GEMINI:
            return data(answer)
        case _:
            return (
                frame("messageStart", {"role": "assistant"})
                + frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "a"}})
                + frame("messageStop", {"stopReason": "end_turn"})
                + frame("metadata", {"serviceTier": answer["serviceTier"]})
            )


def told(client: Api, body: Any) -> Any:
    """Where its client looks for the tier."""
    if client is MESSAGES:
        return body["usage"].get("service_tier")
    return body.get("usageMetadata", {}).get("trafficType") if client is GEMINI else body.get("service_tier")


WORDS = [
    (CHAT, "priority", ("priority", "priority", "priority", "ON_DEMAND_PRIORITY")),
    (CHAT, "default", ("default", "default", "standard", "ON_DEMAND")),
    (CHAT, "flex", ("flex", "flex", "standard", "ON_DEMAND_FLEX")),
    (RESPONSES, "scale", ("scale", "scale", "priority", "PROVISIONED_THROUGHPUT")),
    (MESSAGES, "standard", ("default", "default", "standard", "ON_DEMAND")),
    (MESSAGES, "priority", ("priority", "priority", "priority", "ON_DEMAND_PRIORITY")),
    (MESSAGES, "batch", ("default", "default", "standard", "ON_DEMAND")),
    (GEMINI, "ON_DEMAND", ("default", "default", "standard", "ON_DEMAND")),
    (GEMINI, "PROVISIONED_THROUGHPUT", ("scale", "scale", "priority", "PROVISIONED_THROUGHPUT")),
    (CONVERSE, "flex", ("flex", "flex", "standard", "ON_DEMAND_FLEX")),
    (CONVERSE, "reserved", ("scale", "scale", "priority", "PROVISIONED_THROUGHPUT")),
    (CHAT, "of their own", (None, None, None, None)),
    (MESSAGES, "of their own", (None, None, None, None)),
]


@pytest.mark.parametrize(("destination", "word", "words"), WORDS)
def test_every_client_is_told_the_tier_in_its_own_words(
    destination: Api, word: str, words: tuple[str | None, ...]
) -> None:
    for client, said in zip((CHAT, RESPONSES, MESSAGES, GEMINI), words, strict=True):
        if client is not destination:
            assert told(client, answered(whole(destination, word), client, destination)) == said


@pytest.mark.parametrize(("destination", "word", "words"), WORDS)
def test_so_is_every_client_of_a_stream(destination: Api, word: str, words: tuple[str | None, ...]) -> None:
    for client, said in zip((CHAT, RESPONSES, GEMINI), (words[0], words[1], words[3]), strict=True):
        if client is not destination:
            raw = Stream(client, destination).feed(streamed(destination, word)).end().raw
            events = [json.loads(line[6:]) for line in raw.splitlines() if line.startswith(b"data: {")]
            last = events[-1]["response"] if client is RESPONSES else events[-1]
            assert told(client, last) == said


def test_a_stream_of_messages_tells_it_where_it_is_known_from_the_beginning() -> None:
    raw = Stream(MESSAGES, CHAT).feed(streamed(CHAT, "priority")).end().raw
    assert b'"service_tier":"priority"' in raw.split(b"\n\n")[0]
    raw = Stream(MESSAGES, CONVERSE).feed(streamed(CONVERSE, "priority")).end().raw
    assert b"service_tier" not in raw


def test_the_tier_that_an_answer_came_by_stands_where_the_one_that_was_asked_for_did() -> None:
    body = answered(whole(MESSAGES, "standard"), RESPONSES, MESSAGES, service_tier="priority")
    assert body["service_tier"] == "default"
    assert answered(whole(MESSAGES, "none"), RESPONSES, MESSAGES, service_tier="flex")["service_tier"] == "flex"


def test_a_tier_alone_is_no_usage() -> None:
    answer = whole(CHAT, "default")
    del answer["usage"]
    assert answered(answer, Api.OPENAI_COMPLETIONS, CHAT).get("usage") is None
    assert "usage" not in answered(whole(CONVERSE, "default"), CHAT, CONVERSE)


def test_what_is_no_word_is_no_tier() -> None:
    assert tier_of(CHAT, 7) is None
    assert tier_to(MESSAGES, None) is tier_to(MESSAGES, "auto") is None
