from decimal import Decimal

import pytest

from kinference.shapes.ir import (
    Audio,
    CacheMark,
    File,
    Image,
    Json,
    Reasoning,
    Request,
    Role,
    Sealed,
    Text,
    ToolCall,
    ToolResult,
)
from kinference.shapes.openai_chat.request import parse_request
from kinference.shapes.scan import BadBody
from kinference.vocabulary import Api
from tests.unit.shapes.conversions import CHAT, HI, MESSAGES, RESPONSES, sent, warnings

PNG = "iVBORw0KGgoAAAANSUhEUg=="


def parse(*messages: object, **members: object) -> Request:
    return parse_request({"model": "m", "messages": list(messages), **members})


def blocks(content: object) -> tuple[object, ...]:
    return parse({"role": "user", "content": content}).turns[0].blocks


def test_leading_system_text_is_apart_and_later_text_stays_in_its_place() -> None:
    request = parse(
        {"role": "system", "content": "A"},
        {"role": "developer", "content": [{"type": "text", "text": "B"}]},
        *HI,
        {"role": "system", "content": "C"},
    )
    assert request.system == (Text("A"), Text("B"))
    assert [turn.role for turn in request.turns] == [Role.USER, Role.SYSTEM]


@pytest.mark.parametrize(
    ("members", "cap"),
    [
        ({"max_tokens": 5}, 5),
        ({"max_tokens": 5, "max_completion_tokens": 7}, 7),
        ({"max_tokens": Decimal("1000.0")}, 1000),
        ({}, None),
    ],
)
def test_the_newer_cap_wins(members: Json, cap: int | None) -> None:
    assert parse(*HI, **members).max_tokens == cap


def test_parts_become_blocks() -> None:
    found = blocks(
        [
            {"type": "text", "text": "t", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
            {"type": "image_url", "image_url": {"url": f"data:image/jpg;base64,{PNG}", "detail": "low"}},
            {"type": "image_url", "image_url": "https://x/y.png"},
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
            {"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;base64,aGk="}},
            {"type": "file", "file": {"file_id": "file-1"}},
            {"type": "text", "text": ""},
        ]
    )
    text, image, linked, audio, document, held = found
    assert text == Text("t", CacheMark("1h"))
    assert isinstance(image, Image)
    assert (image.source.mime, image.detail) == ("image/png", "low")  # e7: what the bytes are, not what they are called
    assert isinstance(linked, Image)
    assert linked.source.url == "https://x/y.png"
    assert isinstance(audio, Audio)
    assert audio.source.mime == "audio/mp3"
    assert isinstance(document, File)
    assert (document.name, document.text) == ("a.txt", "hi")
    assert isinstance(held, File)
    assert held.source.file_id == "file-1"


def test_what_an_assistant_said_thought_and_called() -> None:
    (turn,) = parse(
        {
            "role": "assistant",
            "content": "t",
            "thinking_blocks": [
                {"type": "thinking", "thinking": "r", "signature": "s"},
                {"type": "redacted_thinking", "data": "d"},
            ],
            "reasoning_content": "r",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        }
    ).turns
    issuer = Api.ANTHROPIC_MESSAGES
    assert turn.blocks == (Reasoning("r", "s", issuer), Sealed("d", issuer), Text("t"), ToolCall("c", "f", "{}"))


def test_a_thought_whose_text_a_stream_brought_apart_is_whole_again() -> None:
    signature = {"type": "thinking", "signature": "s"}
    (turn,) = parse({"role": "assistant", "thinking_blocks": [signature], "reasoning_content": "r"}).turns
    assert turn.blocks == (Reasoning("r", "s", Api.ANTHROPIC_MESSAGES),)


def test_the_old_function_role_becomes_a_call_and_its_result() -> None:
    call, result = parse(
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "r"},
    ).turns
    assert call.blocks == (ToolCall("call_fn_0", "f", "{}"),)
    assert result.blocks == (ToolResult("call_fn_0", (Text("r"),)),)


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ({"role": "robot", "content": "x"}, "messages\\[0\\].role"),
        ({"role": "user", "content": 7}, "messages\\[0\\].content"),
        ({"role": "user", "content": [{"type": "hologram"}]}, "messages\\[0\\].content\\[0\\].type"),
        ({"role": "assistant", "audio": {"id": "a"}}, "messages\\[0\\].audio"),
        ("text", "messages\\[0\\]"),
    ],
)
def test_what_cannot_be_read_is_named_by_its_place(message: object, place: str) -> None:
    with pytest.raises(BadBody, match=place):
        parse(message)


def test_e8_an_image_that_nobody_takes_is_named_by_its_place() -> None:
    svg = {"type": "image_url", "image_url": {"url": "data:image/svg+xml;base64,PHN2Zz4="}}
    with pytest.raises(BadBody, match=r"messages\[0\].content\[1\]: unsupported image type"):
        blocks([{"type": "text", "text": "x"}, svg])


@pytest.mark.parametrize(
    ("members", "place"),
    [
        ({"system": "s"}, "system"),
        ({"tools": [{"name": "f", "input_schema": {}}]}, r"tools\[0\].input_schema"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}, r"messages\[0\].content\[0\].type"),
    ],
)
def test_a_body_of_messages_is_told_where_it_belongs(members: dict[str, object], place: str) -> None:
    with pytest.raises(BadBody, match=f"^{place}: .*/v1/messages$"):
        parse_request({"model": "m", "messages": HI, **members})


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "a"},
        {"role": "user", "content": ""},
        {"role": "assistant", "content": "a"},
        {"role": "assistant", "content": None},
        {"role": "assistant", "content": "a", "tool_calls": [CALL, CALL]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}], "tool_calls": [CALL]},
        {"role": "assistant", "content": "a", "tool_calls": []},
        {"role": "assistant", "content": "a", "tool_calls": [CALL | {"id": None}]},
        {"role": "assistant", "content": "a", "tool_calls": [{"id": "c", "custom": {"name": "f", "input": "x"}}]},
        {"role": "assistant", "content": "a", "tool_calls": [CALL | {"custom": {"name": "g", "input": "x"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
        {"role": "tool", "tool_call_id": "c", "content": None},
        {"role": "tool", "tool_call_id": None, "content": "r"},
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "r"}]},
    ],
)
def test_a_plain_message_means_what_it_does_with_another_member(message: Json) -> None:
    assert parse(message).turns == parse(message | {"x": None}).turns


@pytest.mark.parametrize(
    "calls", [[1], [{}], [{"id": "c"}], [{"id": "c", "function": {"name": 1}}], [CALL | {"id": 1}]]
)
def test_a_call_of_wrong_types_is_refused_by_its_place(calls: object) -> None:
    with pytest.raises(BadBody, match=r"messages\[0\].tool_calls\[0\]"):
        parse({"role": "assistant", "content": "a", "tool_calls": calls})


def test_a_signature_that_a_client_of_google_keeps_with_its_call_goes_back() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    signed = {**call, "extra_content": {"google": {"thought_signature": "s"}}}
    [turn] = parse_request({"messages": [{"role": "assistant", "tool_calls": [signed]}]}).turns
    assert turn.blocks == (Sealed("s", Api.GEMINI), ToolCall("c", "f", "{}"))
    plain = {"role": "assistant", "content": None, "tool_calls": [signed]}
    assert parse_request({"messages": [{**plain, "tool_call_id": ""}]}).turns[0].blocks == turn.blocks


@pytest.mark.parametrize("members", [{}, {"continue_final_message": True, "add_generation_prompt": False}])
def test_an_answer_that_the_client_began_is_gone_on_with_where_that_is_known(members: dict[str, bool]) -> None:
    body = {"model": "m", "messages": [*HI, {"role": "assistant", "content": "It is"}], "max_tokens": 9, **members}
    made = sent(body, CHAT, MESSAGES, model="claude-3-5-haiku")
    assert made["messages"][-1] == {"role": "assistant", "content": [{"type": "text", "text": "It is"}]}
    assert warnings(body, CHAT, MESSAGES, model="claude-3-5-haiku") == ""
    assert "not continued" in warnings(body, CHAT, RESPONSES)


def test_how_much_to_think_reaches_a_destination_also_as_other_gateways_ask_for_it() -> None:
    body = {"model": "m", "max_tokens": 9000, "messages": HI}
    enabled = {"type": "enabled", "budget_tokens": 2000}
    for asked in ({"thinking": enabled}, {"reasoning": {"max_tokens": 2000}}):
        assert sent(body | asked, CHAT, MESSAGES, "claude-sonnet-4-5")["thinking"] == enabled
        assert warnings(body | asked, CHAT, MESSAGES) == ""
    assert sent(body | {"reasoning": {"effort": "high"}}, CHAT, RESPONSES)["reasoning"] == {
        "effort": "high",
        "summary": "auto",
    }
    assert warnings(body | {"reasoning": {"effort": "high", "odd": 1}}, CHAT, RESPONSES) == "dropped=reasoning.odd"


def test_a_message_may_have_the_cache_mark_of_its_last_part() -> None:
    mark = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    body = {
        "messages": [
            {"role": "system", "content": "s", **mark},
            {"role": "user", "content": parts, **mark},
            {"role": "assistant", "content": None, "tool_calls": [call], **mark},
            {"role": "tool", "tool_call_id": "c", "content": "r"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", **mark}}],
    }
    request, cache = parse_request(body), CacheMark("1h")
    assert request.system == (Text("s", cache),)
    assert request.turns[0].blocks == (Text("a"), Text("b", cache))
    assert request.turns[1].blocks == (ToolCall("c", "f", "{}", cache=cache),)
    assert request.tools[0].cache == cache
