"""What says nothing of an answer yet, of every API."""

import json
from typing import Any

import pytest

from kinference.shapes.preamble import is_preamble
from kinference.shapes.sse import Event
from tests.unit.shapes.conversions import CHAT, CONVERSE, GEMINI, MESSAGES, RESPONSES, chunk


def event(members: Any, name: str = "") -> Event:
    return Event(name, json.dumps(members).encode(), b"")


TOOLS = [{"type": "function", "name": "f"}]
TEXT = {"type": "output_text", "text": ""}


@pytest.mark.parametrize(
    ("api", "members"),
    [
        (CHAT, chunk({"role": "assistant", "content": ""})),
        (CHAT, chunk({})),
        (CHAT, {"choices": [], "prompt_filter_results": [{"prompt_index": 0}]}),
        (CHAT, {"choices": [], "usage": {"prompt_tokens": 9}}),
        (MESSAGES, {"type": "message_start", "message": {"content": [], "name": "a"}}),
        (MESSAGES, {"type": "ping"}),
        (MESSAGES, {"type": "content_block_start", "content_block": {"type": "text", "text": ""}}),
        (RESPONSES, {"type": "response.created", "response": {"tools": TOOLS}}),
        (RESPONSES, {"type": "response.in_progress", "response": {"tools": TOOLS}}),
        (RESPONSES, {"type": "response.output_item.added", "item": {"type": "message", "content": []}}),
        (RESPONSES, {"type": "response.content_part.added", "part": TEXT}),
        (GEMINI, {"usageMetadata": {"promptTokenCount": 9}, "modelVersion": "m"}),
    ],
)
def test_what_only_begins_says_nothing(api: Any, members: Any) -> None:
    assert is_preamble(api, event(members))
    if "type" in members:
        assert is_preamble(api, event(members, members["type"]))


@pytest.mark.parametrize(
    ("api", "members"),
    [
        (CHAT, chunk({"content": "a"})),
        (CHAT, chunk({"reasoning_content": "a"})),
        (CHAT, chunk({"tool_calls": [{"function": {"name": "f"}}]})),
        (CHAT, chunk({}, "stop")),
        (CHAT, {"error": "boom"}),
        (CHAT, {"choices": [{"delta": {"images": ["a" * 2048]}}]}),
        (MESSAGES, {"type": "content_block_start", "content_block": {"type": "tool_use", "name": "f"}}),
        (MESSAGES, {"type": "content_block_delta"}),
        (MESSAGES, {"type": "message_delta"}),
        (MESSAGES, {"type": "error", "error": {}}),
        (MESSAGES, {"type": "yet_unknown"}),
        (RESPONSES, {"type": "response.output_item.added", "item": {"type": "function_call", "name": "f"}}),
        (RESPONSES, {"type": "response.output_text.delta"}),
        (RESPONSES, {"type": "response.failed"}),
        (GEMINI, {"candidates": [{"content": {"parts": [{"text": "a"}]}}]}),
        (GEMINI, {"candidates": [{"finishReason": "STOP"}]}),
        (GEMINI, {"promptFeedback": {"blockReason": "SAFETY"}}),
    ],
)
def test_what_says_something_ends_it(api: Any, members: Any) -> None:
    assert not is_preamble(api, event(members))


@pytest.mark.parametrize(
    ("name", "members", "preamble"),
    [
        ("messageStart", {"role": "assistant"}, True),
        ("contentBlockStart", {"start": {}}, True),
        ("contentBlockStart", {"start": {"toolUse": {"name": "f"}}}, False),
        ("contentBlockDelta", {"delta": {"text": "a"}}, False),
        ("throttlingException", {"message": "slow"}, False),
    ],
)
def test_aws_names_its_events(name: str, members: Any, *, preamble: bool) -> None:
    assert is_preamble(CONVERSE, event(members, name)) is preamble


@pytest.mark.parametrize(
    ("api", "one"),
    [(CHAT, Event("", b"[DONE]", b"")), (CHAT, Event("error", b"{}", b"")), (MESSAGES, Event("", b"no json", b""))],
)
def test_what_is_no_object_says_something(api: Any, one: Event) -> None:
    assert not is_preamble(api, one)
