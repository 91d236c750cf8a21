import json
from typing import Any

import pytest

from kinference.shapes.ir import (
    Block,
    Effort,
    Format,
    FormatKind,
    Image,
    Json,
    Media,
    Reasoning,
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
from kinference.shapes.openai_chat.emit import emit_request
from kinference.shapes.translate import Way, translated
from tests.unit.shapes.conversions import CHAT, GEMINI, HI, MESSAGES, RESPONSES, messages_to_chat, sent

IMAGE = Image(Media("image/png", "AAAA"))


def emitted(*turns: Turn, tools: tuple[Tool, ...] = ()) -> Json:
    body: Json = json.loads(dumps(emit_request(Request(model="m", turns=turns, tools=tools))))
    return body


def user(*blocks: Block) -> Turn:
    return Turn(Role.USER, blocks)


def test_results_are_messages_of_their_own_and_their_images_the_users() -> None:
    result = ToolResult("c", (Text("a"), IMAGE, Text("b")))
    assert emitted(user(result, Text("go")))["messages"] == [
        {"role": "tool", "tool_call_id": "c", "content": "a\nb"},
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                {"type": "text", "text": "go"},
            ],
        },
    ]


def test_b9_the_texts_of_a_result_are_lines() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": t} for t in "ab"]}
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    turns = [{"role": "user", "content": "x"}, {"role": "assistant", "content": [call]}]
    body = messages_to_chat(messages=[*turns, {"role": "user", "content": [result]}])
    assert body["messages"][-1] == {"role": "tool", "tool_call_id": "t", "content": "a\nb"}


def test_a_turn_of_calls_alone_has_no_content() -> None:
    (message,) = emitted(Turn(Role.ASSISTANT, (Reasoning("r"), ToolCall("c", "f", ""))))["messages"]
    assert message == {
        "role": "assistant",
        "content": None,
        "reasoning_content": "r",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    }


def test_an_empty_assistant_turn_is_left_out() -> None:
    assert emitted(user(Text("x")), Turn(Role.ASSISTANT, ()))["messages"] == [{"role": "user", "content": "x"}]


@pytest.mark.parametrize(
    ("choice", "written"),
    [
        (ToolChoice(ToolMode.NONE), "none"),
        (ToolChoice(ToolMode.REQUIRED, ("f",)), {"type": "function", "function": {"name": "f"}}),
        (
            ToolChoice(ToolMode.AUTO, ("f",)),
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]},
            },
        ),
    ],
)
def test_tool_choices(choice: ToolChoice, written: object) -> None:
    body = emitted(user(Text("x")), tools=(Tool("f"),))
    assert "tool_choice" not in body
    request = Request(turns=(user(Text("x")),), tools=(Tool("f"),), tool_choice=choice)
    assert emit_request(request)["tool_choice"] == written


def test_settings_under_chats_names() -> None:
    body = emit_request(
        Request(
            turns=(user(Text("x")),),
            system=(Text("s"),),
            max_tokens=5,
            stop=("a",),
            thinking=Thinking(Effort.LOW),
            format=Format(FormatKind.JSON_SCHEMA, "", {"type": "object"}),
            end_user="u",
            service_tier="standard_only",
            is_streaming=True,
        )
    )
    assert body == {
        "model": "",
        "max_completion_tokens": 5,
        "stop": ["a"],
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}},
        "reasoning_effort": "low",
        "safety_identifier": "u",
        "service_tier": "default",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "x"}],
    }


def test_an_id_beyond_the_length_that_is_taken_goes_by_its_digest() -> None:
    def identity(name: str) -> Any:
        body = {"model": "m", "max_tokens": 9, "messages": HI, "metadata": {"user_id": name}}
        return sent(body, MESSAGES, CHAT, "gpt-5")["safety_identifier"]

    assert identity("u" * 128) == "u" * 128
    assert len(identity("u" * 129)) == 64
    assert identity("u" * 129) == identity("u" * 129) != identity("u" * 130)


def test_servers_of_others_models_are_told_the_user_in_the_older_way_and_nothing_of_openais_own() -> None:
    body = messages_to_chat(metadata={"user_id": "u"})
    assert body["user"] == "u"
    assert "safety_identifier" not in body


BEGUN = {"role": "assistant", "content": "The answer is"}
OF_GEMINI = {
    "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
    "generationConfig": {"topK": 40},
}


def test_an_engine_that_extends_chat_goes_on_from_what_begins_the_answer() -> None:
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": [*HI, BEGUN]}).encode()
    made, back = translated(body, Way(MESSAGES, CHAT, "m", extends_chat=True))
    sent_there = json.loads(made)
    assert (sent_there["add_generation_prompt"], sent_there["continue_final_message"]) == (False, True)
    assert (sent_there["messages"][-1], back.warnings) == (BEGUN, "")
    made, back = translated(body, Way(MESSAGES, CHAT, "m"))
    assert "continue_final_message" not in json.loads(made)
    assert back.warnings == "clamped=beginning of the answer:not continued"


def test_a_conversation_that_ends_with_the_users_turn_begins_no_answer() -> None:
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": [*HI, BEGUN, *HI]}).encode()
    assert "continue_final_message" not in json.loads(translated(body, Way(MESSAGES, CHAT, "m", extends_chat=True))[0])


def test_an_engine_that_extends_chat_samples_as_the_client_asks() -> None:
    body = json.dumps(OF_GEMINI).encode()
    made, back = translated(body, Way(GEMINI, CHAT, "m", extends_chat=True))
    assert (json.loads(made)["top_k"], back.warnings) == (40, "")
    made, back = translated(body, Way(GEMINI, CHAT, "m"))
    assert ("top_k" in json.loads(made), back.warnings) == (False, "dropped=generationConfig.topK")


def test_what_results_show_comes_after_all_of_them() -> None:
    """Between the results of one turn's calls nothing may stand."""
    image = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    items = [
        {"role": "user", "content": "x"},
        *({"type": "function_call", "call_id": call, "name": "f", "arguments": "{}"} for call in "ab"),
        *({"type": "function_call_output", "call_id": call, "output": [image]} for call in "ab"),
    ]
    further = {"role": "user", "content": "y"}
    for after in ([], [further], [{"role": "assistant", "content": "z"}, further]):
        messages = sent({"model": "m", "input": [*items, *after]}, RESPONSES, CHAT)["messages"]
        roles = [message["role"] for message in messages]
        assert roles[:5] == ["user", "assistant", "tool", "tool", "user"]
        assert [part["type"] for part in messages[4]["content"]] == ["image_url", "image_url"]
        assert len(messages) == 5 + len(after)


def test_a_user_may_say_nothing() -> None:
    assert sent({"model": "m", "input": ""}, RESPONSES, CHAT)["messages"] == [{"role": "user", "content": ""}]


def test_a_document_that_is_text_is_words_of_a_result() -> None:
    found = {"type": "search_result", "source": "s", "title": "T", "content": [{"type": "text", "text": "z"}]}
    cited = found | {"citations": {"enabled": True}}
    turns = [
        *HI,
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [found, cited]}]},
    ]
    made = sent({"model": "m", "max_tokens": 9, "messages": turns}, MESSAGES, CHAT)["messages"][2:]
    assert made == [{"role": "tool", "tool_call_id": "c", "content": "T\ns\nz\nT\ns\nz"}]
