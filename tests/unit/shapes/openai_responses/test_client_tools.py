import json
from typing import Any

import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from kinference.shapes.ir import ToolCall
from kinference.shapes.lost import Untranslatable
from kinference.shapes.openai_responses.client_tools import call_item, is_client_tool, of_tool
from kinference.vocabulary import Api
from tests.unit.shapes.conversions import (
    CHAT,
    CONVERSE,
    GEMINI,
    MESSAGES,
    RESPONSES,
    Stream,
    answered,
    chunk,
    data,
    planned,
    sent,
    warnings,
)

TOOLS: list[Any] = [
    {"type": "shell", "environment": {"type": "local"}},
    {"type": "local_shell"},
    {"type": "apply_patch"},
]
EXEC: dict[str, Any] = {
    "type": "exec",
    "command": ["ls", "-l"],
    "env": {},
    "timeout_ms": None,
    "user": None,
    "working_directory": None,
}
PATCH = {"type": "update_file", "path": "a.py", "diff": "@@\n-a\n+b"}
ITEMS: dict[str, Any] = {
    "shell": {"action": {"commands": ["ls", "pwd"], "timeout_ms": 5, "max_output_length": None}},
    "local_shell": {"action": EXEC},
    "apply_patch": {"operation": PATCH},
}
ARGUMENTS = {
    "shell": '{"commands":["ls","pwd"],"timeout_ms":5}',
    "local_shell": '{"command":["ls","-l"]}',
    "apply_patch": json.dumps(PATCH),
}
KINDS = list(ITEMS)
CHUNK = {"stdout": "a\n", "stderr": "b\n", "outcome": {"type": "exit", "exit_code": 1}}
OUTPUTS: list[tuple[str, dict[str, Any], str, bool]] = [
    ("shell", {"output": [CHUNK]}, "a\nb\n[exit code 1]", False),
    (
        "shell",
        {"output": [CHUNK, {"stdout": "", "stderr": "", "outcome": {"type": "timeout"}}]},
        "[it took too long]",
        False,
    ),
    ("local_shell", {"id": "c1", "output": "a"}, "a", False),
    ("local_shell", {"id": "i1", "output": "a"}, "a", False),
    ("apply_patch", {"status": "completed"}, "completed", False),
    ("apply_patch", {"status": "failed", "output": "no such file"}, "no such file", True),
]


def asking(*items: Any, **members: Any) -> Any:
    return {
        "model": "m",
        "max_output_tokens": 9,
        "input": [{"role": "user", "content": "hi"}, *items],
        "tools": TOOLS,
        **members,
    }


@pytest.mark.parametrize("destination", [CHAT, MESSAGES, GEMINI, CONVERSE])
def test_tools_that_the_client_runs_are_functions_to_others(destination: Api) -> None:
    body = json.dumps(sent(asking(), RESPONSES, destination))
    assert warnings(asking(), RESPONSES, destination) == ""
    assert all(f'"name": "{kind}"' in body for kind in KINDS)
    assert '"commands"' in body
    assert '"working_directory"' in body
    assert '"create_file"' in body


def chat_call(kind: str) -> Any:
    return {"index": 0, "id": "c1", "type": "function", "function": {"name": kind, "arguments": ARGUMENTS[kind]}}


def kept(item: Any, kind: str) -> None:
    wanted = ITEMS[kind] | {"type": f"{kind}_call", "call_id": "c1", "status": "completed", "id": item["id"]}
    assert item == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_of_one_is_an_item_of_its_own_kind(kind: str) -> None:
    message = {"content": None, "tool_calls": [chat_call(kind)]}
    body = {"id": "c", "model": "up", "choices": [{"message": message, "finish_reason": "tool_calls"}]}
    answer = answered(body, RESPONSES, CHAT, tools=TOOLS)
    kept(answer["output"][0], kind)
    answer["tools"] = []  # which its client sent
    assert Response.model_validate(answer).output[0].type == f"{kind}_call"


@pytest.mark.parametrize("kind", KINDS)
def test_so_it_is_in_a_stream(kind: str) -> None:
    call = chat_call(kind)
    begun = call | {"function": {"name": kind, "arguments": ARGUMENTS[kind][:5]}}
    rest = {"index": 0, "function": {"arguments": ARGUMENTS[kind][5:]}}
    stream = Stream(RESPONSES, CHAT, tools=TOOLS)
    stream.feed(data(chunk({"tool_calls": [begun]}), chunk({"tool_calls": [rest]}), chunk({}, "tool_calls"), "[DONE]"))
    adapter = TypeAdapter[Any](ResponseStreamEvent)
    for event in stream.end().events:
        adapter.validate_python(event)
    kept(stream.events[-1]["response"]["output"][0], kind)
    told = [event for event in stream.events if "command" in event["type"]]
    commands = [event["command"] for event in told if event["type"] == "response.shell_call_command.done"]
    assert commands == (["ls", "pwd"] if kind == "shell" else [])
    assert not any("function_call" in event["type"] for event in stream.events)


@pytest.mark.parametrize("destination", [CHAT, MESSAGES, GEMINI, CONVERSE])
@pytest.mark.parametrize(("kind", "output", "told", "failed"), OUTPUTS)
def test_earlier_calls_and_what_came_of_them_go_on(
    kind: str, output: Any, told: str, failed: bool, destination: Api
) -> None:
    call = {"type": f"{kind}_call", "id": "i1", "call_id": "c1", "status": "completed"} | ITEMS[kind]
    result = {"type": f"{kind}_call_output"} | ({} if kind == "local_shell" else {"call_id": "c1"}) | output
    made = sent(asking(call, result), RESPONSES, destination)
    assert warnings(asking(call, result), RESPONSES, destination) == ""
    assert json.dumps(told)[1:-1] in json.dumps(made)
    if destination is MESSAGES:
        use, came = made["messages"][1]["content"][0], made["messages"][2]["content"][0]
        assert (use["name"], came["tool_use_id"], came.get("is_error", False)) == (kind, "c1", failed)
        assert use["input"] == json.loads(ARGUMENTS[kind])


def test_one_can_be_demanded_or_offered_alone() -> None:
    forced = sent(asking(tool_choice={"type": "apply_patch"}), RESPONSES, MESSAGES)
    assert forced["tool_choice"] == {"type": "tool", "name": "apply_patch"}
    some = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "shell"}]}
    assert [tool["name"] for tool in sent(asking(tool_choice=some), RESPONSES, MESSAGES)["tools"]] == ["shell"]


def test_a_shell_in_a_container_of_the_providers_goes_nowhere_else() -> None:
    for kind in ("container_auto", "container_reference"):
        with pytest.raises(Untranslatable, match="container"):
            planned(asking(tools=[{"type": "shell", "environment": {"type": kind}}]), RESPONSES, CHAT)


def test_skills_are_told_of() -> None:
    skill = {"name": "pdf", "path": "/s", "description": "reads"}
    tool = of_tool({"type": "shell", "environment": {"type": "local", "skills": [skill]}}, "tools[0]")
    assert tool.description.endswith("\nThere is a skill `pdf` in /s: reads")
    assert not is_client_tool({"type": "function"})


@pytest.mark.parametrize(
    ("form", "arguments", "member", "filled"),
    [
        ("shell", '{"commands":"ls"}', "action", {"commands": ["ls"], "timeout_ms": None, "max_output_length": None}),
        ("shell", '{"commands":["l', "action", {"commands": [], "timeout_ms": None, "max_output_length": None}),
        (
            "local_shell",
            '{"command":"ls -l","env":{"A":1}}',
            "action",
            EXEC | {"command": ["sh", "-c", "ls -l"], "env": {"A": "1"}},
        ),
        (
            "apply_patch",
            '{"type":"delete_file","path":"a","diff":"x"}',
            "operation",
            {"type": "delete_file", "path": "a"},
        ),
        ("apply_patch", '{"type":"?"}', "operation", {"type": "update_file", "path": "", "diff": ""}),
    ],
)
def test_a_form_that_was_filled_in_badly_is_one_all_the_same(
    form: str, arguments: str, member: str, filled: Any
) -> None:
    assert call_item("i", ToolCall("c", form, arguments, form=form), "completed")[member] == filled
