import json

import pytest

from kinference.shapes.anthropic_messages.emit import emit_request
from kinference.shapes.ir import (
    Effort,
    File,
    Media,
    Request,
    Role,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolMode,
    ToolResult,
    Turn,
)
from kinference.shapes.json_text import dumps
from kinference.shapes.lost import Untranslatable
from tests.unit.shapes.conversions import CHAT, HI, MESSAGES, TOOL, chat_to_messages, sent

USER = Turn(Role.USER, (Text("hi"),))
CALL = Turn(Role.ASSISTANT, (ToolCall("c", "f", '{"a":1}'),))
RESULT = Turn(Role.USER, (ToolResult("c", (Text("r"),)),))


def test_e1_what_operators_say_later_stays_in_its_place() -> None:
    turns = [*HI, {"role": "assistant", "content": "a"}, {"role": "system", "content": "B"}, *HI]
    body = chat_to_messages(messages=[{"role": "system", "content": "A"}, *turns])
    assert body["system"] == [{"type": "text", "text": "A"}]
    assert body["messages"][-1]["content"] == [
        {"type": "text", "text": "<operator-note>\nB\n</operator-note>"},
        {"type": "text", "text": "hi"},
    ]


def test_e4_empty_texts_and_turns_are_left_out() -> None:
    parts = [{"type": "text", "text": ""}, {"type": "text", "text": "x"}]
    turns = [*HI, {"role": "assistant", "content": ""}, {"role": "user", "content": parts}]
    assert chat_to_messages(messages=turns)["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": "x"}]}
    ]


def test_e5_an_empty_description_is_left_out() -> None:
    function = {"name": "f", "description": ""}
    assert chat_to_messages(tools=[{"type": "function", "function": function}])["tools"] == [
        {"name": "f", "input_schema": {"type": "object", "properties": {}}}
    ]


@pytest.mark.parametrize(
    ("choice", "parallel", "written"),
    [
        (None, None, None),
        ("none", False, {"type": "none"}),
        ("required", None, {"type": "any"}),
        (None, False, {"type": "auto", "disable_parallel_tool_use": True}),
        ({"type": "function", "function": {"name": "f"}}, True, {"type": "tool", "name": "f"}),
    ],
)
def test_tool_choices(choice: object, parallel: object, written: object) -> None:
    body = chat_to_messages(tools=[TOOL], tool_choice=choice, parallel_tool_calls=parallel)
    assert body.get("tool_choice") == written


def test_d7_a_choice_among_some_leaves_only_those() -> None:
    choice = ToolChoice(ToolMode.REQUIRED, ("a", "b"))
    tools = tuple(Tool(name) for name in "abc")
    body = emit_request(Request(turns=(USER,), max_tokens=1, tools=tools, tool_choice=choice, parallel_tools=False))
    assert [tool["name"] for tool in body["tools"]] == ["a", "b"]
    assert body["tool_choice"] == {"type": "any", "disable_parallel_tool_use": True}


@pytest.mark.parametrize(("mode", "written"), [("required", {"type": "any"}), ("auto", {"type": "auto"})])
def test_d7_a_choice_among_one_leaves_only_that(mode: str, written: object) -> None:
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [TOOL]}}
    other = {"type": "function", "function": {"name": "g"}}
    body = chat_to_messages(tools=[TOOL, other], tool_choice=allowed)
    assert ([tool["name"] for tool in body["tools"]], body["tool_choice"]) == (["f"], written)


def test_a_history_with_calls_and_no_tools_gets_one_that_may_not_be_called() -> None:
    body = emit_request(Request(turns=(USER, CALL, RESULT), max_tokens=1))
    assert [tool["name"] for tool in body["tools"]] == ["noop"]
    assert body["tool_choice"] == {"type": "none"}


@pytest.mark.parametrize(
    ("model", "effort", "thinking", "config"),
    [
        ("claude-opus-4-6", Effort.MINIMAL, {"type": "adaptive"}, {"effort": "low"}),
        ("claude-opus-4-6", Effort.NONE, {"type": "disabled"}, None),
        ("claude-sonnet-4-5-20250929", Effort.HIGH, {"type": "enabled", "budget_tokens": 4096}, None),
        ("claude-sonnet-4-5-20250929", Effort.NONE, None, None),
    ],
)
def test_thinking_by_generation(model: str, effort: Effort, thinking: object, config: object) -> None:
    body = emit_request(Request(model=model, turns=(USER,), max_tokens=9000, thinking=Thinking(effort)))
    assert (body.get("thinking"), body.get("output_config")) == (thinking, config)


def test_a_schema_is_closed() -> None:
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True}}
    assert chat_to_messages(response_format=form)["output_config"] == {
        "format": {"type": "json_schema", "schema": {"type": "object", "additionalProperties": False}}
    }


def test_settings_under_messages_names() -> None:
    body = chat_to_messages(max_tokens=5, stop="a", top_k=3, user="u", service_tier="default", stream=True)
    assert {name: body[name] for name in body if name not in ("messages", "model")} == {
        "max_tokens": 5,
        "top_k": 3,
        "stop_sequences": ["a"],
        "metadata": {"user_id": "u"},
        "service_tier": "standard_only",
        "stream": True,
    }
    assert "metadata" not in chat_to_messages(user="someone@example.org")


def test_a_beginning_of_the_answer_loses_its_trailing_white_space() -> None:
    body = chat_to_messages(messages=[*HI, {"role": "assistant", "content": "So: "}])
    assert body["messages"][-1]["content"] == [{"type": "text", "text": "So:"}]


def test_e14_arguments_go_out_digit_for_digit() -> None:
    call = Turn(Role.ASSISTANT, (ToolCall("c", "f", '{"n":18446744073709551617, "x":1.10}'),))
    assert b'{"n":18446744073709551617, "x":1.10}' in dumps(emit_request(Request(turns=(USER, call), max_tokens=1)))


@pytest.mark.parametrize("arguments", ["5", "[]", '{"a'])
def test_arguments_that_are_no_object_are_refused(arguments: str) -> None:
    with pytest.raises(Untranslatable, match="tool call c"):
        emit_request(Request(turns=(USER, Turn(Role.ASSISTANT, (ToolCall("c", "f", arguments),))), max_tokens=1))


def test_documents() -> None:
    pdf, text = File(Media("application/pdf", "AAAA"), "n", cites=True), File(Media(), "t", "d")
    content = emit_request(Request(turns=(Turn(Role.USER, (pdf, text)),), max_tokens=1))["messages"][0]["content"]
    assert json.loads(dumps(content)) == [
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"},
            "title": "n",
            "citations": {"enabled": True},
        },
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}, "title": "t"},
    ]
    with pytest.raises(Untranslatable, match="PDF"):
        emit_request(Request(turns=(Turn(Role.USER, (File(Media("application/zip", "AAAA")),)),), max_tokens=1))


@pytest.mark.parametrize(
    ("model", "is_apart"),
    [("claude-opus-4-8", True), ("claude-sonnet-5", True), ("claude-opus-4-7", False), ("claude-sonnet-4-5", False)],
)
def test_operators_words_within_a_conversation_are_the_operators_where_the_model_knows_that(
    model: str, is_apart: bool
) -> None:
    turns = [*HI, {"role": "assistant", "content": "A"}, {"role": "developer", "content": "S"}, *HI]
    body = sent({"model": "m", "messages": turns}, CHAT, MESSAGES, model)
    last = {"role": "system", "content": [{"type": "text", "text": "S"}]}
    assert (body["messages"][-1] == last) == is_apart
    assert "system" not in body
    assert [message["role"] for message in body["messages"]][:3] == ["user", "assistant", "user"]
