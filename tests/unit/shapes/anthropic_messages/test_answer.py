import json
from typing import Any

import pytest

from kinference.shapes.answers import Counts, Finish
from kinference.shapes.anthropic_messages.answer import counts_of, finish_of, parse_answer, reason_of
from kinference.shapes.ir import Reasoning, Refusal, Sealed, Text, ToolCall, Unread
from kinference.vocabulary import Api
from tests.unit.shapes.conversions import CHAT, MESSAGES, Stream, answered, named


def chat(message: Any, finish: str = "stop", **members: Any) -> Any:
    return {"id": "x", "model": "up", "choices": [{"message": message, "finish_reason": finish}], **members}


def test_what_an_answer_says() -> None:
    answer = parse_answer(
        {
            "id": "msg_1",
            "model": "m",
            "stop_reason": "stop_sequence",
            "stop_sequence": "END",
            "content": [
                {"type": "thinking", "thinking": "r", "signature": "s"},
                {"type": "redacted_thinking", "data": "d"},
                {"type": "container_upload", "file_id": "z"},
                {"type": "text", "text": "t"},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}},
            ],
        }
    )
    issuer = Api.ANTHROPIC_MESSAGES
    assert answer.blocks == (
        Reasoning("r", "s", issuer),
        Sealed("d", issuer),
        Unread("container_upload"),
        Text("t"),
        ToolCall("t1", "f", '{"a":1}'),
    )
    assert (answer.finish, answer.stop_sequence) == (Finish.STOP_SEQUENCE, "END")


def test_every_reason_has_a_name_and_unknown_ones_are_a_stop() -> None:
    assert {finish_of(reason_of(finish)) for finish in Finish} == set(Finish)
    assert finish_of("model_context_window_exceeded") is Finish.LENGTH
    assert finish_of("bored") is finish_of(None) is Finish.STOP


def test_the_prompt_is_all_of_it() -> None:
    usage = {"input_tokens": 1, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 4, "output_tokens": 8}
    assert counts_of(usage | {"output_tokens_details": {"thinking_tokens": 3}}) == Counts(7, 8, 2, 4, 3)
    assert counts_of({"output_tokens": 1}) == Counts(None, 1)


def test_g3_what_was_cached_is_no_input() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 90}}
    body = answered(chat({"content": "t"}, usage=usage), MESSAGES, CHAT)
    assert (body["usage"]["input_tokens"], body["usage"]["cache_read_input_tokens"]) == (10, 90)
    assert (body["id"], body["type"], body["role"], body["stop_reason"]) == (
        "msg_x",
        "message",
        "assistant",
        "end_turn",
    )


def test_thoughts_come_first_and_an_empty_answer_has_a_text() -> None:
    body = answered(chat({"content": "t", "reasoning_content": "r"}), MESSAGES, CHAT)
    assert [block["type"] for block in body["content"]] == ["thinking", "text"]
    assert answered(chat({"content": ""}, "length"), MESSAGES, CHAT)["content"] == [{"type": "text", "text": ""}]


def test_e14_numbers_keep_their_digits() -> None:
    arguments = '{"id":9007199254740993,"n":18446744073709551617,"x":1.10}'
    raw = json.dumps(chat({"tool_calls": [{"id": "c", "function": {"name": "f", "arguments": arguments}}]}))
    text = json.dumps(answered(raw.encode(), MESSAGES, CHAT)["content"][0]["input"])
    assert "9007199254740993" in text
    assert "18446744073709551617" in text


@pytest.mark.parametrize(("finish", "blocks"), [("length", ["text"]), ("tool_calls", ["tool_use"])])
def test_arguments_that_are_no_object(finish: str, blocks: list[str]) -> None:
    message = {"tool_calls": [{"id": "c", "function": {"name": "f", "arguments": '{"a'}}]}
    body = answered(chat(message, finish), MESSAGES, CHAT)
    assert [block["type"] for block in body["content"]] == blocks
    if blocks == ["tool_use"]:
        assert body["content"][0]["input"] == {"_raw": '{"a'}


def test_a_refusal_is_a_text() -> None:
    body = answered(chat({"content": None, "refusal": "no"}, "content_filter"), MESSAGES, CHAT)
    assert (body["content"], body["stop_reason"]) == ([{"type": "text", "text": "no"}], "refusal")


def test_an_answer_that_declines_and_simply_stops_has_declined() -> None:
    body = answered(chat({"content": None, "refusal": "no"}), MESSAGES, CHAT)
    assert (body["content"], body["stop_reason"]) == ([{"type": "text", "text": "no"}], "refusal")


def test_why_the_model_declined_is_told() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "not that"}
    body = {"content": [], "stop_reason": "refusal", "stop_details": details}
    assert parse_answer(body).blocks == (Refusal("not that"),)
    assert answered(body, CHAT, MESSAGES)["choices"][0]["message"]["refusal"] == "not that"
    end = {"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": details}}
    stream = Stream(CHAT, MESSAGES).feed(named(end, {"type": "message_stop"}))
    assert [event["choices"][0]["delta"].get("refusal") for event in stream.events[:3]] == [None, "not that", None]


def test_how_much_was_thought_is_told_where_it_is_known() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 6, "completion_tokens_details": {"reasoning_tokens": 5}}
    choice = {"message": {"content": "a"}, "finish_reason": "stop"}
    body = answered({"choices": [choice], "usage": usage}, MESSAGES, CHAT)
    assert body["usage"]["output_tokens_details"] == {"thinking_tokens": 5}
    told = {"input_tokens": 9, "output_tokens": 6, "output_tokens_details": {"thinking_tokens": 5}}
    answer = {"content": [{"type": "text", "text": "a"}], "stop_reason": "end_turn", "usage": told}
    usage = answered(answer, CHAT, MESSAGES)["usage"]
    assert usage["completion_tokens_details"] == {"reasoning_tokens": 5}
