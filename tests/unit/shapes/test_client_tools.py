import json
from typing import Any

import pytest

from kinference.shapes.client_tools import form_of
from kinference.vocabulary import Api
from tests.unit.shapes.conversions import (
    CHAT,
    CONVERSE,
    GEMINI,
    HI,
    MESSAGES,
    RESPONSES,
    Stream,
    chunk,
    data,
    sent,
    warnings,
)

TOOLS = [
    {"type": "bash_20250124", "name": "bash", "cache_control": {"type": "ephemeral"}},
    {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 9000},
    {"type": "memory_20250818", "name": "memory"},
]
CALL = {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "ls"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a.txt"}
BODY = {
    "model": "m",
    "max_tokens": 99,
    "tools": TOOLS,
    "messages": [*HI, {"role": "assistant", "content": [CALL]}, {"role": "user", "content": [RESULT]}],
}


def offered(body: Any, api: Api) -> list[str]:
    """The names under which tools are offered."""
    if api is GEMINI:
        return [tool["name"] for tool in body["tools"][0]["functionDeclarations"]]
    if api is CONVERSE:
        return [tool["toolSpec"]["name"] for tool in body["toolConfig"]["tools"] if "toolSpec" in tool]
    return [tool["function"]["name"] if api is CHAT else tool["name"] for tool in body["tools"]]


@pytest.mark.parametrize("api", [CHAT, RESPONSES, GEMINI, CONVERSE])
def test_tools_that_the_client_runs_are_functions_everywhere_else(api: Api) -> None:
    assert offered(sent(BODY, MESSAGES, api), api) == ["bash", "str_replace_based_edit_tool", "memory"]
    assert warnings(BODY, MESSAGES, api) == ""


def test_a_forced_one_and_earlier_calls_keep_their_names() -> None:
    body = sent(BODY | {"tool_choice": {"type": "tool", "name": "bash"}}, MESSAGES, CHAT)
    assert body["tool_choice"] == {"type": "function", "function": {"name": "bash"}}
    assert body["messages"][1]["tool_calls"][0]["function"] == {"name": "bash", "arguments": '{"command":"ls"}'}
    assert body["messages"][2] == {"role": "tool", "tool_call_id": "toolu_1", "content": "a.txt"}


def test_a_call_of_the_function_is_the_clients_own() -> None:
    call = {"index": 0, "id": "call_1", "function": {"name": "bash", "arguments": '{"command":"pwd"}'}}
    stream = Stream(MESSAGES, CHAT, tools=TOOLS).feed(data(chunk({"tool_calls": [call]}, "tool_calls"), "[DONE]"))
    begun = next(event for event in stream.events if event["type"] == "content_block_start")["content_block"]
    given = "".join(event["delta"]["partial_json"] for event in stream.events if event["type"] == "content_block_delta")
    assert (begun["type"], begun["name"], json.loads(given)) == ("tool_use", "bash", {"command": "pwd"})


@pytest.mark.parametrize(
    ("kind", "commands", "inserts"),
    [
        ("text_editor_20250124", ["view", "create", "str_replace", "insert", "undo_edit"], False),
        ("text_editor_20250429", ["view", "create", "str_replace", "insert"], True),
        ("memory_20250818", ["view", "create", "str_replace", "insert", "delete", "rename"], True),
    ],
)
def test_each_version_has_its_own_commands(kind: str, commands: list[str], inserts: bool) -> None:
    form = form_of({"type": kind})
    assert form is not None
    members = form[1]["properties"]
    assert (members["command"]["enum"], "insert_text" in members) == (commands, inserts)


@pytest.mark.parametrize("kind", [None, "custom", "web_fetch_20250910", "computer_20250124", "bash"])
def test_no_other_tool_is_one(kind: str | None) -> None:
    assert form_of({"type": kind}) is None
