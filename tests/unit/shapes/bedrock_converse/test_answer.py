import pytest

from kinference.shapes.answers import Answer, Counts, Finish, NoAnswer
from kinference.shapes.bedrock_converse.answer import ISSUER, finish_of, parse_answer
from kinference.shapes.ir import Json, Reasoning, Sealed, Text, ToolCall, Unread
from kinference.shapes.way_back import read_answer
from tests.unit.shapes.conversions import CHAT, CONVERSE, a_plan, answered


def of(*content: Json, reason: str = "end_turn") -> Json:
    return {"output": {"message": {"role": "assistant", "content": list(content)}}, "stopReason": reason}


def test_what_an_answer_says() -> None:
    usage = {"inputTokens": 1, "cacheReadInputTokens": 2, "cacheWriteInputTokens": 4, "outputTokens": 8}
    answer = parse_answer(
        of(
            {"reasoningContent": {"reasoningText": {"text": "r", "signature": "s"}}},
            {"reasoningContent": {"redactedContent": "d"}},
            {"text": "t"},
            {"toolUse": {"toolUseId": "c", "name": "f", "input": {"a": 1}}},
            {"citationsContent": {"content": [{"text": "u"}, {"text": "v"}], "citations": [{"title": "x"}]}},
            {"citationsContent": {}},
            reason="tool_use",
        )
        | {"usage": usage}
    )
    thoughts = (Reasoning("r", "s", ISSUER), Sealed("d", ISSUER))
    assert answer.blocks == (*thoughts, Text("t"), ToolCall("c", "f", '{"a":1}'), Text("uv"))
    assert (answer.finish, answer.counts) == (Finish.TOOLS, Counts(7, 8, 2, 4))


def test_c7_a_text_arrives() -> None:
    (choice,) = answered(of({"text": "2"}), CHAT, CONVERSE)["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("2", "stop")


def test_c6_an_answer_of_nothing_is_none() -> None:
    body = b'{"output":null,"stopReason":"end_turn","usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0}}'
    with pytest.raises(NoAnswer):
        read_answer(a_plan(CHAT, CONVERSE).back, body)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", Finish.STOP),
        ("max_tokens", Finish.LENGTH),
        ("guardrail_intervened", Finish.REFUSAL),
        ("new", Finish.STOP),
        (None, Finish.STOP),
    ],
)
def test_reasons(reason: object, finish: Finish) -> None:
    assert finish_of(reason) is finish


@pytest.mark.parametrize("body", [{}, {"output": 7}, {"output": {"message": {"content": [7]}}}, {"usage": 7}])
def test_an_answer_without_sense_is_empty(body: Json) -> None:
    assert parse_answer(body) == Answer()


def test_an_answer_that_came_to_nothing_is_told() -> None:
    answer = parse_answer({"stopReason": "malformed_tool_use"})
    assert (answer.blocks, answer.finish) == ((Unread("malformed_tool_use"),), Finish.STOP)
