import json

import pytest

from kinference.shapes.answers import Answer, Counts, Finish, NoAnswer
from kinference.shapes.ir import Reasoning, Text, ToolCall
from kinference.shapes.sse import EVENT_BYTES_MAX
from kinference.shapes.translate import Way, unasked
from kinference.shapes.way_back import gather_answer, read_answer, write_answer, write_stream
from kinference.vocabulary import Api
from tests.unit.shapes.conversions import (
    CHAT,
    FRAME,
    GEMINI,
    MESSAGES,
    RESPONSES,
    Stream,
    a_plan,
    answered,
    chunk,
    data,
    named,
)

TEXT = {"id": "msg_1", "model": "up", "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"}


def test_a_whole_answer() -> None:
    body = answered(TEXT, CHAT, MESSAGES)
    assert (body["id"], body["model"], body["choices"][0]["message"]["content"]) == ("msg_1", "up", "hi")


def test_the_model_is_ours_where_the_destination_names_none() -> None:
    assert answered(TEXT | {"model": ""}, CHAT, MESSAGES)["model"] == "m"


@pytest.mark.parametrize("text", ["```json\n{}\n```", "\n```\n{}\n```\n", "{}"])
def test_f5_a_fence_around_all_of_the_json_is_taken_off(text: str) -> None:
    body = TEXT | {"content": [{"type": "text", "text": text}]}
    made = answered(body, CHAT, MESSAGES, response_format={"type": "json_object"})
    assert made["choices"][0]["message"]["content"] == "{}"
    assert answered(body, CHAT, MESSAGES)["choices"][0]["message"]["content"] == text


def test_a_fence_inside_a_text_stays() -> None:
    body = TEXT | {"content": [{"type": "text", "text": "see ```json\n{}\n```"}]}
    made = answered(body, CHAT, MESSAGES, response_format={"type": "json_object"})
    assert "```" in made["choices"][0]["message"]["content"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", json.dumps(TEXT | {"content": []}).encode()])
def test_c6_an_answer_that_is_none(body: bytes) -> None:
    with pytest.raises(NoAnswer):
        read_answer(a_plan(CHAT, MESSAGES).back, body)


def test_a_whole_answer_for_a_client_that_wants_a_stream() -> None:
    tool = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}
    thought = {"type": "thinking", "thinking": "r", "signature": "s"}
    back = a_plan(CHAT, MESSAGES).back
    answer = read_answer(back, json.dumps(TEXT | {"content": [thought, *TEXT["content"], tool]}).encode())
    stream = Stream(CHAT, MESSAGES)
    stream.raw = write_stream(back, answer, FRAME)
    deltas = [event["choices"][0]["delta"] for event in stream.events if event != "[DONE]" and event["choices"]]
    assert deltas[1] == {"reasoning_content": "r", "reasoning": "r"}
    assert deltas[3] == {"content": "hi"}
    assert deltas[5]["tool_calls"][0]["function"]["arguments"] == '{"a":1}'
    assert stream.events[-1] == "[DONE]"


CALLED = Answer(
    "msg_1",
    "up",
    (Reasoning("why"), Text("hi"), ToolCall("call_1", "f", '{"a":1}'), ToolCall("call_2", "g", "{}")),
    Finish.TOOLS,
    counts=Counts(7, 2, 1, 0, 1),
)


@pytest.mark.parametrize("api", [CHAT, MESSAGES, RESPONSES, GEMINI])
def test_a_stream_that_nobody_asked_for_is_gathered_into_what_was(api: Api) -> None:
    told = unasked(b'{"model":"m"}', Way(api, api, "m"), wants_usage=True)
    assert told is not None
    streamed = gather_answer(told.back, write_stream(told.back, CALLED, FRAME))
    whole = read_answer(told.back, write_answer(told.back, CALLED, FRAME))
    assert write_answer(told.back, streamed, FRAME) == write_answer(told.back, whole, FRAME)
    assert [block.text for block in streamed.blocks if isinstance(block, Text)] == ["hi"]


def test_of_a_gathered_stream_nothing_counts_after_its_end_and_all_before() -> None:
    back = a_plan(MESSAGES, CHAT).back
    whole = data(chunk({"content": "hi"}), chunk({}, "stop"), "[DONE]", chunk({"content": "more"}))
    assert gather_answer(back, whole).blocks == (Text("hi"),)
    for cut in (data(chunk({"content": "hi"})), b"", data({"error": {"message": "boom"}})):
        with pytest.raises(NoAnswer, match="boom" if b"boom" in cut else "broke"):
            gather_answer(back, cut)
    assert gather_answer(back, data(chunk({"content": "hi"}, "stop"))[:-2]).blocks == (Text("hi"),)


def test_an_event_over_all_bounds_is_no_answer() -> None:
    with pytest.raises(NoAnswer):
        gather_answer(a_plan(MESSAGES, CHAT).back, b"data: " + b"x" * (EVENT_BYTES_MAX + 1))


def test_an_error_in_place_of_an_answer_is_told_in_its_words() -> None:
    with pytest.raises(NoAnswer, match="too long"):
        read_answer(a_plan(MESSAGES, CHAT).back, b'{"error":{"message":"the prompt is too long"}}')


def test_a1_characters_may_be_cut_anywhere() -> None:
    raw = data(chunk({"content": "hé😀"}), chunk({}, "stop"), "[DONE]").decode().encode("utf-8")
    raw = raw.replace(b"h\\u00e9\\ud83d\\ude00", "hé😀".encode())
    whole = Stream(MESSAGES, CHAT).feed(raw).raw
    assert "hé😀".encode() in whole
    for cut in range(len(raw)):
        assert Stream(MESSAGES, CHAT).feed(raw[:cut], raw[cut:]).raw == whole
    assert Stream(MESSAGES, CHAT).feed(*(raw[at : at + 1] for at in range(len(raw)))).raw == whole  # a22


def test_a2_line_ends_of_every_kind() -> None:
    raw = data(chunk({"content": "a"}), chunk({"content": "b"}), chunk({}, "stop"), "[DONE]")
    whole = Stream(MESSAGES, CHAT).feed(raw).raw
    for ends in (b"\r\n", b"\r"):
        other = raw.replace(b"\n", ends)
        for cut in range(len(other)):
            assert Stream(MESSAGES, CHAT).feed(other[:cut], other[cut:]).raw == whole


def test_a5_comments_are_no_data() -> None:
    stream = Stream(MESSAGES, CHAT).feed(b": PROCESSING\n\n", data(chunk({"content": "a"})))
    assert stream.types == ["message_start", "content_block_start", "content_block_delta"]


def test_a_stream_without_a_beginning_gets_one() -> None:
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}}
    stream = Stream(CHAT, MESSAGES).feed(named(delta))
    assert [event["model"] for event in stream.events] == ["m", "m"]


def test_what_was_counted_and_how_much_was_written() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}}
    stream = Stream(MESSAGES, CHAT).feed(data(chunk({"content": "a"}), chunk({"content": "b"}, usage=usage)))
    assert stream.translation.counts == Counts(3, 2, 1)
    assert stream.translation.content_pieces == 2
