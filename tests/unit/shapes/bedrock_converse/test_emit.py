import json
from typing import Any

import botocore.session  # type: ignore[import-untyped]  # it ships no types
import pytest
from botocore.validate import ParamValidator  # type: ignore[import-untyped]  # it ships no types

from kinference.shapes.bedrock_converse.emit import NO_CALLS, emit_request
from kinference.shapes.ir import (
    Audio,
    CacheMark,
    Effort,
    File,
    Format,
    FormatKind,
    Image,
    Media,
    Request,
    Role,
    Sampling,
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
from tests.unit.shapes.conversions import CHAT, CONVERSE, HI, MESSAGES, TOOL, sent, warnings

USER = Turn(Role.USER, (Text("hi"),))
CALL = Turn(Role.ASSISTANT, (ToolCall("c", "f", '{"a":1}'),))
RESULT = Turn(Role.USER, (ToolResult("c", (Text("r"),)),))


@pytest.fixture(scope="module")
def shape() -> Any:
    """What AWS's own model says a request is."""
    model = botocore.session.get_session().get_service_model("bedrock-runtime")
    return model.operation_model("Converse").input_shape


def emitted(request: Request, shape: Any = None) -> Any:
    body = json.loads(dumps(emit_request(request)))
    if shape is not None:
        report = ParamValidator().validate({"modelId": "m", **body}, shape)
        assert not report.has_errors(), report.generate_report()
    return body


def test_a_chat_becomes_a_conversation() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    turns = [
        {"role": "system", "content": "s"},
        *HI,
        {"role": "assistant", "content": None, "tool_calls": [call]},  # c9
        {"role": "tool", "tool_call_id": "c", "content": ""},
    ]
    settings = {"temperature": 1.5, "top_p": 0.5, "max_tokens": 9, "stop": "a", "tool_choice": "required"}
    body = {"model": "m", "messages": turns, "tools": [TOOL], **settings}
    assert sent(body, CHAT, CONVERSE) == {
        "inferenceConfig": {"maxTokens": 9, "temperature": 1.0, "topP": 0.5, "stopSequences": ["a"]},
        "toolConfig": {
            "tools": [{"toolSpec": {"name": "f", "description": "d", "inputSchema": {"json": {"type": "object"}}}}],
            "toolChoice": {"any": {}},
        },
        "system": [{"text": "s"}],
        "messages": [
            {"role": "user", "content": [{"text": "hi"}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "f", "input": {"a": 1}}}]},
            {
                "role": "user",
                "content": [
                    {"toolResult": {"toolUseId": "c", "content": [{"text": "(no output)"}], "status": "success"}}
                ],
            },
        ],
    }
    assert warnings(body, CHAT, CONVERSE) == "clamped=temperature:1.5->1.0"


def test_aws_takes_everything(shape: Any) -> None:
    mark = CacheMark("1h")
    blocks = (
        Text("t", mark),
        Image(Media("image/png", "AAAA")),
        Audio(Media("audio/wav", "AAAA")),
        File(Media("application/pdf", "AAAA"), "a/b.pdf", cites=True),
        File(Media(), "", "text"),
    )
    request = Request(
        model="anthropic.claude-sonnet-4-5-20250929-v1:0",
        system=(Text("s", mark),),
        turns=(Turn(Role.USER, blocks), CALL, RESULT),
        tools=(Tool("f", strict=True, cache=CacheMark()), Tool("g")),
        tool_choice=ToolChoice(ToolMode.REQUIRED, ("f",)),
        sampling=Sampling(top_k=3),
        thinking=Thinking(Effort.HIGH),
        format=Format(FormatKind.JSON_SCHEMA, "n", {"type": "object"}, description="d"),
        service_tier="standard_only",
        max_tokens=9000,
    )
    body = emitted(request, shape)
    assert body["system"] == [{"text": "s"}, {"cachePoint": {"type": "default", "ttl": "1h"}}]
    assert body["toolConfig"]["tools"][1] == {"cachePoint": {"type": "default"}}
    assert body["toolConfig"]["toolChoice"] == {"tool": {"name": "f"}}
    assert body["additionalModelRequestFields"] == {
        "top_k": 3,
        "thinking": {"type": "enabled", "budget_tokens": 4096},
    }
    assert body["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"] == '{"type":"object"}'
    assert body["messages"][0]["content"][4]["document"]["name"] == "a b pdf"
    assert body["serviceTier"] == {"type": "default"}


def test_newer_models_think_by_effort(shape: Any) -> None:
    request = Request(model="anthropic.claude-opus-4-7", turns=(USER,), thinking=Thinking(Effort.MINIMAL))
    body = emitted(request, shape)
    assert body["outputConfig"] == {"effort": "low"}
    assert body["additionalModelRequestFields"] == {"thinking": {"type": "adaptive"}}


def test_other_makers_models_are_not_told_how_to_think() -> None:
    body = {"model": "m", "messages": HI, "reasoning_effort": "low"}
    assert warnings(body, CHAT, CONVERSE, "amazon.nova") == "dropped=reasoning_effort"
    assert "outputConfig" not in sent(body, CHAT, CONVERSE, "amazon.nova")


def test_no_tools_is_said_in_words_where_there_were_calls() -> None:
    none = ToolChoice(ToolMode.NONE)
    body = emitted(Request(turns=(USER, CALL, RESULT), tools=(Tool("f"),), tool_choice=none))
    assert body["system"] == [{"text": NO_CALLS}]
    assert "toolChoice" not in body["toolConfig"]
    assert "toolConfig" not in emitted(Request(turns=(USER,), tools=(Tool("f"),), tool_choice=none))


def test_a_history_of_calls_without_tools_becomes_text() -> None:
    body = emitted(Request(turns=(USER, CALL, RESULT)))
    assert [turn["content"] for turn in body["messages"][1:]] == [
        [{"text": '[called f with {"a":1}]'}],
        [{"text": "[result of c]"}, {"text": "r"}],
    ]


def test_a_choice_among_some_leaves_only_those() -> None:
    choice = ToolChoice(ToolMode.AUTO, ("a", "b"))
    config = emitted(Request(turns=(USER,), tools=tuple(map(Tool, "abc")), tool_choice=choice))["toolConfig"]
    assert [tool["toolSpec"]["name"] for tool in config["tools"]] == ["a", "b"]
    assert config["toolChoice"] == {"auto": {}}


def test_a_document_is_not_sent_alone() -> None:
    turn = Turn(Role.USER, (File(Media("application/pdf", "AAAA")),))
    assert emitted(Request(turns=(turn,)))["messages"][0]["content"][-1] == {"text": "See the attached document."}


@pytest.mark.parametrize("block", [ToolCall("c", "f", "5"), File(Media("application/zip", "AAAA"))])
def test_what_cannot_be_written_is_refused(block: ToolCall | File) -> None:
    with pytest.raises(Untranslatable):
        emit_request(Request(turns=(USER, Turn(Role.ASSISTANT, (block,))), tools=(Tool("f"),)))


def test_e10_claudes_thoughts_go_back_to_claude_and_plain_ones_do_not() -> None:
    said = [
        {"type": "thinking", "thinking": "r", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"},
        {"type": "thinking", "thinking": "unsigned", "signature": ""},
        {"type": "tool_use", "id": "c", "name": "f", "input": {}},
    ]
    result = [{"type": "tool_result", "tool_use_id": "c", "content": "1"}]
    body = {
        "model": "m",
        "max_tokens": 9000,
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "messages": [*HI, {"role": "assistant", "content": said}, {"role": "user", "content": result}],
    }
    model = "anthropic.claude-sonnet-4-5"
    converse = sent(body, MESSAGES, CONVERSE, model)
    assert converse["messages"][1]["content"][:2] == [
        {"reasoningContent": {"reasoningText": {"text": "r", "signature": "s"}}},
        {"reasoningContent": {"redactedContent": "d"}},
    ]
    assert [set(block) for block in converse["messages"][1]["content"][2:]] == [{"toolUse"}]
    assert converse["additionalModelRequestFields"]["thinking"]["type"] == "enabled"
    assert "signature" not in warnings(body, MESSAGES, CONVERSE, model)
    other = sent(body, MESSAGES, CONVERSE, "amazon.nova-pro-v1:0")
    assert [set(block) for block in other["messages"][1]["content"]] == [{"toolUse"}]


def test_a_result_of_white_space_is_told_as_none() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    turns = [*HI, {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c", "content": "\n"}]
    body = sent({"model": "m", "messages": turns, "tools": [TOOL]}, CHAT, CONVERSE)
    assert body["messages"][-1]["content"][0]["toolResult"]["content"] == [{"text": "(no output)"}]


def test_a_documents_name_has_no_two_spaces_in_a_row() -> None:
    source = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
    document = {"type": "document", "title": "a_b/c  d.pdf", "source": source}
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [document]}]}
    assert sent(body, MESSAGES, CONVERSE)["messages"][0]["content"][0]["document"]["name"] == "a b c d pdf"


@pytest.mark.parametrize(
    ("choice", "kind", "said"),
    [
        (None, {"type": "auto"}, None),
        ("auto", {"type": "auto"}, None),
        ("required", {}, {"any": {}}),
        ({"type": "function", "function": {"name": "f"}}, {}, {"tool": {"name": "f"}}),
    ],
)
def test_one_call_at_a_time_is_claudes_own_word_and_the_kind_of_choice_is_said_once(
    choice: Any, kind: Any, said: Any
) -> None:
    body: Any = {"model": "m", "messages": HI, "tools": [TOOL], "parallel_tool_calls": False}
    body |= {} if choice is None else {"tool_choice": choice}
    model = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
    made = sent(body, CHAT, CONVERSE, model)
    assert made["additionalModelRequestFields"] == {"tool_choice": {**kind, "disable_parallel_tool_use": True}}
    assert made["toolConfig"].get("toolChoice") == said
    assert warnings(body, CHAT, CONVERSE, model) == ""


def test_one_call_at_a_time_is_not_said_without_tools_nor_to_other_makers() -> None:
    alone = {"model": "m", "messages": HI, "parallel_tool_calls": False}
    assert "additionalModelRequestFields" not in sent(alone, CHAT, CONVERSE, "anthropic.claude-opus-5")
    body = alone | {"tools": [TOOL], "tool_choice": "auto"}
    made = sent(body, CHAT, CONVERSE, "amazon.nova-pro-v1:0")
    assert "additionalModelRequestFields" not in made
    assert made["toolConfig"]["toolChoice"] == {"auto": {}}
    assert warnings(body, CHAT, CONVERSE, "amazon.nova-pro-v1:0") == "dropped=parallel_tool_calls"
    assert "additionalModelRequestFields" not in sent(
        body | {"tool_choice": "none"}, CHAT, CONVERSE, "anthropic.claude-opus-5"
    )


def test_no_tools_is_told_where_it_is_said_in_words() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    body: Any = {"model": "m", "messages": HI, "tools": [TOOL], "tool_choice": "none"}
    assert warnings(body, CHAT, CONVERSE) == ""
    body["messages"] = [*HI, {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c"}]
    assert warnings(body, CHAT, CONVERSE) == "clamped=tool_choice.type:hint"


def test_operators_words_within_a_conversation_have_a_role_for_claude() -> None:
    turns = [*HI, {"role": "system", "content": "S"}]
    made = sent({"model": "m", "messages": turns}, CHAT, CONVERSE, "us.anthropic.claude-opus-4-8-v1:0")
    assert made["messages"][-1] == {"role": "system", "content": [{"text": "S"}]}


def test_claude_is_told_not_to_think() -> None:
    body = {"model": "m", "messages": HI, "reasoning_effort": "none"}
    made = sent(body, CHAT, CONVERSE, "anthropic.claude-opus-5")
    assert made["additionalModelRequestFields"] == {"thinking": {"type": "disabled"}}
    assert "additionalModelRequestFields" not in sent(body, CHAT, CONVERSE, "anthropic.claude-sonnet-4-5")


def test_some_makers_take_calls_and_results_apart_from_words() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    turns = [
        *HI,
        {"role": "assistant", "content": "w", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
        {"role": "user", "content": "x"},
    ]
    body = {"model": "m", "messages": turns, "tools": [TOOL]}
    for model in ("us.meta.llama4-maverick-17b-instruct-v1:0", "mistral.mistral-large-2407-v1:0"):
        made = sent(body, CHAT, CONVERSE, model)["messages"]
        assert [next(iter(block)) for turn in made for block in turn["content"]] == [
            *("text", "text", "text", "toolUse", "toolResult", "text", "text")
        ]
        assert [turn["role"] for turn in made] == ["user", "assistant"] * 3 + ["user"]
        assert all(len(turn["content"]) == 1 for turn in made)
    assert len(sent(body, CHAT, CONVERSE, "anthropic.claude-opus-5")["messages"]) == 3
