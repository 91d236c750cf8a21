"""What can be asked about of a conversation that is not all text."""

import json
from typing import Any

import pytest

from kinference.shapes.detect import parse
from kinference.shapes.leading_chat import LeadingChat, is_text, leading_chat
from kinference.vocabulary import Api

CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
HI = {"role": "user", "content": "hi"}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
FUNCTION = {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}
TOOL = {"name": "f", "description": "d", "input_schema": SCHEMA}
CALL = {"type": "tool_use", "id": "1", "name": "f", "input": {}}


def leading(api: Api, path: str, body: dict[str, Any], **style: Any) -> LeadingChat:
    found = leading_chat(api, json.dumps({"model": "m", **body}, **style).encode(), path)
    assert found is not None
    return found


def is_prefix(part: dict[str, Any], whole: dict[str, Any], path: str, found: LeadingChat) -> bool:
    """Whether so many bytes of the whole's stream are those of the part."""
    one, other = (b"".join(parse(json.dumps({"model": "m", **body}).encode(), path).prompt) for body in (part, whole))
    return other.startswith(one) and len(one) == found.prompt_bytes


def test_a_chat_ends_before_its_first_picture() -> None:
    body = {"tools": [FUNCTION], "messages": [HI, {"role": "user", "content": [PICTURE]}, HI]}
    found = leading(Api.OPENAI_CHAT, CHAT, body)
    asked = json.loads(found.body)
    assert asked == {"model": "m", "messages": [HI], "tools": [FUNCTION], "add_generation_prompt": False}
    assert is_prefix({**body, "messages": [HI]}, body, CHAT, found)


def test_messages_end_before_their_first_call_and_have_the_tools_and_the_system_prompt_of_a_chat() -> None:
    system = [
        {"type": "text", "text": "be "},
        {"type": "text", "text": "brief", "cache_control": {"type": "ephemeral"}},
    ]
    said = [HI, {"role": "assistant", "content": [CALL]}, HI]
    body = {"system": system, "tools": [TOOL, {"type": "web_search_20250305", "name": "w"}], "messages": said}
    found = leading(Api.ANTHROPIC_MESSAGES, MESSAGES, body)
    asked = json.loads(found.body)
    assert asked["messages"] == [{"role": "system", "content": "be brief"}, HI]
    assert asked["tools"] == [FUNCTION]
    assert is_prefix({**body, "messages": [HI]}, body, MESSAGES, found)


def test_responses_end_before_their_first_call() -> None:
    tool = {"type": "function", "name": "f", "description": "d", "parameters": SCHEMA}
    said = [HI, {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}]
    body = {"instructions": "be brief", "tools": [tool], "input": said}
    found = leading(Api.OPENAI_RESPONSES, RESPONSES, body)
    asked = json.loads(found.body)
    assert asked["messages"] == [{"role": "system", "content": "be brief"}, HI]
    assert asked["tools"] == [FUNCTION]
    assert is_prefix({**body, "input": [HI]}, body, RESPONSES, found)
    alone = leading(Api.OPENAI_RESPONSES, RESPONSES, {"tools": [tool], "input": "hi"})
    assert json.loads(alone.body)["messages"] == [HI]


def test_what_stands_between_messages_counts_as_it_stands() -> None:
    body = {"messages": [HI, HI, {"role": "user", "content": [PICTURE]}]}
    loose = leading(Api.OPENAI_CHAT, CHAT, body, indent=4)
    tight = leading(Api.OPENAI_CHAT, CHAT, body, separators=(",", ":"))
    stream = parse(json.dumps({"model": "m", **body}, indent=4).encode(), CHAT).prompt[-1]
    assert loose.prompt_bytes > tight.prompt_bytes
    assert stream[: loose.prompt_bytes].endswith(b"}")


def test_the_salt_and_what_the_template_is_told_go_along_and_tools_that_may_not_be_called_do_not() -> None:
    body = {"messages": [HI], "tools": [FUNCTION], "tool_choice": "none", "cache_salt": "s"}
    found = leading(Api.OPENAI_CHAT, CHAT, {**body, "chat_template_kwargs": {"thinking": True}})
    assert found.salt == "s"
    assert json.loads(found.body)["chat_template_kwargs"] == {"thinking": True}
    assert "tools" not in json.loads(found.body)


@pytest.mark.parametrize(
    ("api", "body"),
    [
        (Api.OPENAI_CHAT, {"model": "m", "messages": [{"role": "user", "content": [PICTURE]}]}),
        (Api.OPENAI_CHAT, {"model": "m", "messages": []}),
        (Api.OPENAI_CHAT, {"model": "m", "messages": 7}),
        (Api.OPENAI_CHAT, {"messages": [HI]}),
        (Api.ANTHROPIC_MESSAGES, {"model": "m", "messages": [{"role": "assistant", "content": [CALL]}]}),
        (Api.ANTHROPIC_MESSAGES, {"model": "m", "messages": [HI], "system": [{"type": "image"}]}),
        (Api.ANTHROPIC_MESSAGES, {"model": "m", "messages": [HI], "tools": 7}),
        (Api.OPENAI_COMPLETIONS, {"model": "m", "prompt": "hi"}),
    ],
)
def test_where_nothing_leads_nothing_is_asked_about(api: Api, body: dict[str, Any]) -> None:
    paths = {Api.OPENAI_CHAT: CHAT, Api.ANTHROPIC_MESSAGES: MESSAGES}
    assert leading_chat(api, json.dumps(body).encode(), paths.get(api, "")) is None


def test_what_only_speaks_of_pictures_is_text() -> None:
    assert is_text(json.dumps({"content": '{"type": "image_url"}', "type": "text"}).encode())
    assert not is_text(json.dumps({"content": [PICTURE]}).encode())
