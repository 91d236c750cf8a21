from typing import Any

import pytest

from kinference.shapes.ir import CacheMark, Request, Role, Text, Tool, ToolResult, Turn
from kinference.shapes.marks import last_marks
from kinference.vocabulary import Api
from tests.unit.shapes.conversions import CHAT, CONVERSE, GEMINI, MESSAGES, RESPONSES, sent, warnings

MARK = CacheMark("1h")


def test_the_last_marks_are_kept_in_the_order_of_the_prompt() -> None:
    result = ToolResult("c", (Text("r", MARK), Text("s")), cache=MARK)
    request = Request(
        turns=(Turn(Role.USER, (result, Text("t", MARK))),), system=(Text("s", MARK),), tools=(Tool("f", cache=MARK),)
    )
    fewer, had = last_marks(request)
    assert had == 5
    assert (fewer.tools[0].cache, fewer.system, fewer.turns) == (None, request.system, request.turns)
    assert last_marks(fewer) == (fewer, 4)
    assert last_marks(fewer)[0] is fewer


def marked(count: int) -> Any:
    mark = {"type": "ephemeral", "ttl": "1h"}
    texts = [{"type": "text", "text": str(n), "cache_control": mark} for n in range(count - 1)]
    tool = {"name": "f", "input_schema": {"type": "object"}, "cache_control": mark}
    return {"model": "m", "max_tokens": 9, "tools": [tool], "messages": [{"role": "user", "content": texts}]}


@pytest.mark.parametrize("destination", [MESSAGES, CONVERSE])
def test_marks_that_are_too_many_are_told(destination: Api) -> None:
    assert warnings(marked(6), MESSAGES, destination) == "clamped=text.cache_control:6->4"
    assert warnings(marked(4), MESSAGES, destination) == ""
    assert warnings(marked(6), MESSAGES, GEMINI) == ""


def test_a_tools_mark_keeps_its_time() -> None:
    (tool,) = sent(marked(2), MESSAGES, MESSAGES)["tools"]
    assert tool["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert sent(marked(2), MESSAGES, CONVERSE)["toolConfig"]["tools"][1] == {
        "cachePoint": {"type": "default", "ttl": "1h"}
    }
    chat = {"type": "function", "function": {"name": "f"}, "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "tools": [chat]}
    (tool,) = sent(body, CHAT, MESSAGES)["tools"]
    assert tool["cache_control"]["ttl"] == "1h"


BREAKPOINT = {"prompt_cache_breakpoint": {"mode": "explicit"}}
IN_JSON = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
MARKED = {
    "model": "m",
    "max_tokens": 99,
    "system": [{"type": "text", "text": "s", **IN_JSON}],
    "tools": [{"name": "f", "input_schema": {"type": "object"}, **IN_JSON}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "a", **IN_JSON}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "r", **IN_JSON}]},
    ],
}


def test_openais_newer_models_are_told_up_to_where_a_prompt_is_worth_caching() -> None:
    messages = sent(MARKED, MESSAGES, CHAT, "gpt-5.6")["messages"]
    marked = [message["content"] for message in messages if message["content"]]
    assert marked == [[{"type": "text", "text": text, **BREAKPOINT}] for text in "sar"]
    body = sent(MARKED, MESSAGES, RESPONSES, "gpt-5.6")
    assert "instructions" not in body
    marked = [item.get("content") or item["output"] for item in body["input"] if item["type"] != "function_call"]
    assert marked == [[{"type": "input_text", "text": text, **BREAKPOINT}] for text in "sar"]
    assert warnings(MARKED, MESSAGES, RESPONSES, "gpt-5.6") == ""


@pytest.mark.parametrize("model", ["gpt-5.5", "gpt-5.6-chat-latest", "o3", "qwen"])
@pytest.mark.parametrize("destination", [CHAT, RESPONSES])
def test_others_are_not(model: str, destination: Api) -> None:
    assert "breakpoint" not in str(sent(MARKED, MESSAGES, destination, model))


def test_openai_takes_no_more_of_them_than_claude() -> None:
    parts = [{"type": "input_text", "text": str(at), **BREAKPOINT} for at in range(6)]
    body = {"model": "m", "input": [{"role": "user", "content": parts}]}
    made = sent(body, RESPONSES, CHAT, "gpt-5.6")["messages"][0]["content"]
    assert ["prompt_cache_breakpoint" in part for part in made] == [False] * 2 + [True] * 4
    assert warnings(body, RESPONSES, CHAT, "gpt-5.6").endswith("prompt_cache_breakpoint:6->4")
