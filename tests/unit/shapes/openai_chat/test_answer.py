import pytest

from kinference.shapes.answers import Answer, Counts, Finish, Frame, NoAnswer
from kinference.shapes.ir import Json, Reasoning, Refusal, Sealed, Text, ToolCall, Unread
from kinference.shapes.openai_chat.answer import (
    call_id,
    counts_of,
    emit_answer,
    finish_of,
    geminis_signature,
    parse_answer,
    said_in,
    thought_in,
)
from kinference.vocabulary import Api
from tests.unit.shapes.conversions import CHAT, MESSAGES, answered

ISSUER = Api.ANTHROPIC_MESSAGES
FRAME = Frame("req_1", 7)


def parsed(message: Json, finish: str = "stop") -> Answer:
    return parse_answer({"id": "c", "model": "m", "choices": [{"message": message, "finish_reason": finish}]})


def test_what_an_answer_says() -> None:
    answer = parsed({"content": "t", "reasoning": "r", "refusal": "no"})
    assert answer.blocks == (Reasoning("r"), Text("t"), Refusal("no"))
    assert (answer.id, answer.model, answer.finish) == ("c", "m", Finish.STOP)


@pytest.mark.parametrize("arguments", ['{"a":1}', {"a": 1}])
def test_arguments_are_text_also_where_an_engine_gives_an_object(arguments: object) -> None:
    answer = parsed({"tool_calls": [{"function": {"name": "f", "arguments": arguments}}]})
    assert answer.blocks == (ToolCall(call_id("c", 0), "f", '{"a":1}'),)
    assert answer.finish is Finish.TOOLS  # engines say `stop` where they were made to call


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", Finish.STOP),
        ("length", Finish.LENGTH),
        ("tool_calls", Finish.TOOLS),
        ("content_filter", Finish.REFUSAL),
        ("unheard", Finish.STOP),
        (None, Finish.STOP),
        (["stop"], Finish.STOP),
    ],
)
def test_reasons(reason: object, finish: Finish) -> None:
    assert finish_of(reason, calls=False) is finish
    assert (finish_of(reason, calls=True) is Finish.TOOLS) == (finish in (Finish.STOP, Finish.TOOLS))


@pytest.mark.parametrize(
    "body", [{}, {"choices": []}, {"choices": "x"}, {"choices": [7]}, {"choices": [{"message": 1}]}]
)
def test_an_answer_without_sense_is_empty(body: Json) -> None:
    assert parse_answer(body) == Answer()


def test_counts_of_both_openai_apis() -> None:
    chat = {"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 0}}
    assert counts_of(chat) == Counts(9, 5, 0)
    responses = {
        "input_tokens": 9,
        "output_tokens": 5,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
        "output_tokens_details": {"reasoning_tokens": 3},
    }
    assert counts_of(responses) == Counts(9, 5, 4, 2, 3)
    assert counts_of({"prompt_tokens": -1, "completion_tokens": True}) == Counts(0, None)


def test_c9_a_tool_only_answer_has_null_content() -> None:
    answer = Answer("x", "m", (ToolCall("c", "f", ""),), Finish.TOOLS, counts=Counts(9, 5, 4))
    body = emit_answer(answer, FRAME)
    (choice,) = body["choices"]
    assert choice["message"]["content"] is None
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "f", "arguments": "{}"}
    assert choice["finish_reason"] == "tool_calls"
    assert body["usage"] == {
        "prompt_tokens": 9,
        "completion_tokens": 5,
        "total_tokens": 14,
        "prompt_tokens_details": {"cached_tokens": 4},
    }


def test_signed_thoughts_are_handed_out_so_that_they_can_come_back() -> None:
    blocks = (Reasoning("r", "s", ISSUER), Sealed("d", ISSUER), Text("a"), Text("b"))
    message = emit_answer(Answer("", "m", blocks), FRAME)["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"], message["reasoning"]) == ("ab", "r", "r")
    assert message["thinking_blocks"] == [
        {"type": "thinking", "thinking": "r", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"},
    ]


def test_an_answer_cut_by_its_cap_while_thinking_is_an_empty_text() -> None:
    body = answered({"id": "1", "content": [], "stop_reason": "max_tokens"}, CHAT, MESSAGES)
    assert body["choices"][0]["message"]["content"] == ""
    assert body["choices"][0]["finish_reason"] == "length"
    assert "usage" not in body


def test_g1_tokens_written_to_the_cache_count_once() -> None:
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 12304, "output_tokens": 5}
    body = answered({"content": [{"type": "text", "text": "x"}], "usage": usage}, CHAT, MESSAGES)
    assert (body["usage"]["prompt_tokens"], body["usage"]["total_tokens"]) == (12307, 12312)
    assert body["usage"]["prompt_tokens_details"]["cache_write_tokens"] == 12304


PARTS = [
    {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}, 7]},
    {"type": "text", "text": "a"},
    {"type": "text", "text": "b"},
    None,
]


def test_content_may_come_in_parts() -> None:
    assert said_in(PARTS) == ("hm", "ab")
    assert said_in(None) == said_in({}) == ("", "")
    blocks = parse_answer({"choices": [{"message": {"content": PARTS}}]}).blocks
    assert blocks == (Reasoning("hm"), Text("ab"))


def test_thoughts_that_only_their_issuer_can_read_are_told_where_something_was_said() -> None:
    details = [{"type": "reasoning.encrypted", "data": "s"}]
    whole = {"choices": [{"message": {"content": "a", "reasoning_details": details}}]}
    assert parse_answer(whole).blocks == (Text("a"), Unread("reasoning.encrypted"))
    assert parse_answer({"choices": [{"message": {"reasoning_details": details}}]}).blocks == ()


def test_thoughts_are_read_under_any_of_their_names() -> None:
    details = [{"type": "reasoning.text", "text": "a"}, {"type": "reasoning.summary", "summary": "b"}, "?"]
    for message in ({"reasoning_content": "ab"}, {"reasoning": "ab"}, {"reasoning_details": details}):
        assert thought_in(message) == "ab"
    assert thought_in({"reasoning": "ab", "reasoning_details": details}) == "ab"
    assert thought_in({}) == ""


@pytest.mark.parametrize(
    "call",
    [
        {"extra_content": {"google": {"thought_signature": "s"}}},
        {"thought_signature": "s"},
        {"function": {"name": "f", "thought_signature": "s"}},
        {"provider_specific_fields": {"thought_signature": "s"}},
    ],
)
def test_a_signature_of_geminis_is_found_wherever_a_gateway_put_it(call: Json) -> None:
    assert geminis_signature(call) == "s"
    assert geminis_signature({**call, **dict.fromkeys(call)}) == ""


def test_an_answer_that_its_server_gave_up_on_is_none() -> None:
    with pytest.raises(NoAnswer, match="gone"):
        parse_answer({"choices": [{"finish_reason": "error", "error": {"message": "gone"}, "message": {}}]})


@pytest.mark.parametrize("place", ["prompt_cache_hit_tokens", "cached_tokens"])
def test_what_was_cached_is_found_wherever_servers_have_it(place: str) -> None:
    assert counts_of({"prompt_tokens": 9, "completion_tokens": 1, place: 8}).cached == 8


def test_thoughts_that_are_counted_beside_the_rest_are_part_of_the_completion() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "completion_tokens_details": {"reasoning_tokens": 5}}
    assert counts_of(usage | {"total_tokens": 15}).completion == 6
    assert counts_of(usage | {"completion_tokens": 6, "total_tokens": 15}).completion == 6
    assert counts_of(usage).completion == 1
