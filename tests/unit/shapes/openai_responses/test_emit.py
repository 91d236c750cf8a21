import pytest

from kinference.shapes.ir import (
    Effort,
    File,
    Format,
    FormatKind,
    Image,
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
from kinference.shapes.openai_responses.emit import emit_request
from tests.unit.shapes.conversions import CHAT, HI, MESSAGES, RESPONSES, TOOL, sent, warnings

USER = Turn(Role.USER, (Text("hi"),))


def test_a_chat_becomes_items() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    turns = [
        {"role": "system", "content": "s"},
        *HI,
        {"role": "assistant", "content": "a", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
    ]
    body = {"model": "m", "messages": turns, "tools": [TOOL], "max_tokens": 99, "stream": True}
    assert sent(body, CHAT, RESPONSES) == {
        "model": "m",
        "instructions": "s",
        "tools": [
            {
                "type": "function",
                "name": "f",
                "description": "d",
                "parameters": {"type": "object", "properties": {}},
                "strict": False,
            }
        ],
        "max_output_tokens": 99,
        "store": False,
        "stream": True,
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "message", "role": "assistant", "content": "a"},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "r"},
        ],
    }


def test_what_responses_lacks_is_told() -> None:
    body = {"model": "m", "messages": HI, "stop": "a", "seed": 1, "presence_penalty": 1}
    assert set(warnings(body, CHAT, RESPONSES).split(";")) == {
        "dropped=stop",
        "dropped=seed",
        "dropped=presence_penalty",
    }


def test_several_system_texts_are_one_item() -> None:
    body = emit_request(Request(system=(Text("a"), Text("b")), turns=(USER,)))
    assert "instructions" not in body
    assert body["input"][0] == {
        "type": "message",
        "role": "developer",
        "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}],
    }


def test_settings_under_responses_names() -> None:
    choice = ToolChoice(ToolMode.REQUIRED, ("a", "b"))
    body = emit_request(
        Request(
            turns=(USER,),
            tools=(Tool("a", is_free_form=True), Tool("b")),
            tool_choice=choice,
            parallel_tools=False,
            thinking=Thinking(Effort.LOW, is_shown=True),
            format=Format(FormatKind.JSON_SCHEMA, "n", {"type": "object"}, True),
            verbosity="low",
            cache_key="k",
        )
    )
    assert body["tool_choice"]["mode"] == "required"
    assert body["tools"][0] == {"type": "custom", "name": "a"}
    assert body["parallel_tool_calls"] is False
    assert body["reasoning"] == {"effort": "low", "summary": "auto"}
    schema = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}
    assert body["text"] == {"format": schema, "verbosity": "low"}
    assert body["prompt_cache_key"] == "k"


def test_media_in_messages_and_results() -> None:
    image = Image(Media("image/png", "AAAA"))
    pdf, text, linked = (
        File(Media("application/pdf", "AAAA"), "n"),
        File(Media(), "t", "x"),
        File(Media(url="https://x")),
    )
    turns = (
        Turn(Role.USER, (image, pdf, text, linked)),
        Turn(Role.ASSISTANT, (ToolCall("c", "f", "x", is_free_form=True),)),
        Turn(Role.USER, (ToolResult("c", (Text("r"), image)),)),
    )
    message, call, result = emit_request(Request(turns=turns))["input"]
    shown = {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"}
    assert message["content"] == [
        shown,
        {"type": "input_file", "filename": "n", "file_data": "data:application/pdf;base64,AAAA"},
        {"type": "input_text", "text": "t\nx"},
        {"type": "input_file", "filename": "file", "file_url": "https://x"},
    ]
    assert call == {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x"}
    assert result["output"] == [{"type": "input_text", "text": "r"}, shown]


@pytest.mark.parametrize(
    ("model", "thinking", "is_asked"),
    [
        ("gpt-5.2", None, True),
        ("gpt-5.2", Thinking(Effort.NONE), False),
        ("m", None, False),
        ("m", Thinking(Effort.LOW), True),
    ],
)
def test_thoughts_that_nobody_stores_are_asked_for_where_there_are_some(
    model: str, thinking: Thinking | None, is_asked: bool
) -> None:
    body = emit_request(Request(model=model, turns=(USER,), thinking=thinking, logprobs=2))
    thoughts = ["reasoning.encrypted_content"] if is_asked else []
    assert (body["include"], body["top_logprobs"]) == (["message.output_text.logprobs", *thoughts], 2)
    assert body["store"] is False


def test_results_come_before_what_else_the_user_says() -> None:
    said = [{"type": "text", "text": "so"}, {"type": "tool_result", "tool_use_id": "c", "content": "r"}]
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]}
    body = {"model": "m", "max_tokens": 9, "messages": [*HI, call, {"role": "user", "content": said}]}
    assert [item["type"] for item in sent(body, MESSAGES, RESPONSES)["input"]][-2:] == [
        "function_call_output",
        "message",
    ]


def test_a_conversation_of_system_text_alone_is_input() -> None:
    body = sent({"model": "m", "messages": [{"role": "system", "content": "s"}]}, CHAT, RESPONSES)
    assert "instructions" not in body
    assert body["input"][0]["role"] == "developer"


def test_a_user_may_say_nothing() -> None:
    said = {"role": "user", "content": ""}
    [item] = sent({"model": "m", "messages": [said]}, CHAT, RESPONSES)["input"]
    assert item == {"type": "message", "role": "user", "content": [{"type": "input_text", "text": ""}]}
