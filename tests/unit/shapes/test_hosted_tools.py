import json
from typing import Any

import pytest

from kinference.shapes.hosted_tools import TRIED_MAX, may_have_hosted, without_hosted
from kinference.shapes.lost import Lost, Untranslatable, header
from kinference.shapes.translate import Way, emit, plan
from kinference.vocabulary import Api, Loss
from tests.unit.shapes.conversions import CHAT, CONVERSE, GEMINI, HI, MESSAGES, RESPONSES

F = {"type": "function", "name": "f", "parameters": {"type": "object"}}
FILES = {"type": "file_search", "vector_store_ids": ["v"]}
SEARCH = {"type": "web_search"}
PAINTER = {"type": "image_generation"}
SERVER = {"type": "mcp", "server_label": "s", "server_url": "https://s.example", "require_approval": "never"}
CLAUDE = "anthropic.claude-opus-5"


def yielded(body: Any, client: Api, destination: Api, model: str = CLAUDE, loss: Loss = Loss.WARN) -> tuple[Any, str]:
    """What is sent where nobody is left who has all that was asked for, and what is told."""
    planned = plan(json.dumps(body).encode(), Way(client, destination, model, loss, yields=True))
    return json.loads(emit(planned)), header(planned.losses)


def responses(*tools: Any, **members: Any) -> dict[str, Any]:
    return {"model": "m", "input": "hi", "tools": list(tools), **members}


def test_those_alone_are_left_out_that_are_in_the_way() -> None:
    body = responses(SEARCH, F, FILES, PAINTER, SERVER)
    made, told = yielded(body, RESPONSES, MESSAGES)
    assert [tool.get("name") or tool["type"] for tool in made["tools"]] == ["f", "web_search", "mcp_toolset"]
    assert told == "dropped=tools:file_search;dropped=tools:image_generation;assumed=max_tokens:64000"
    made, told = yielded(body, RESPONSES, CONVERSE)
    assert [tool["toolSpec"]["name"] for tool in made["toolConfig"]["tools"]] == ["f"]
    assert told.count("dropped=tools:") == 4


def test_what_was_held_for_one_provider_stays_with_it() -> None:
    held = {"type": "code_interpreter", "container": "cntr_1"}
    shell = {"type": "shell", "environment": {"type": "container_auto"}}
    made, told = yielded(responses(held, shell, {"type": "local_shell"}), RESPONSES, CHAT, "gpt-4o")
    assert [tool["function"]["name"] for tool in made["tools"]] == ["local_shell"]
    assert told.startswith("dropped=tools:code_interpreter;dropped=tools:shell")


@pytest.mark.parametrize(
    ("body", "client"),
    [
        ({"model": "m", "messages": HI, "web_search_options": {}}, CHAT),
        ({"model": "m", "messages": HI, "tools": [{"type": "file_search"}]}, CHAT),
        (
            {
                "model": "m",
                "max_tokens": 9,
                "messages": HI,
                "mcp_servers": [{"type": "url", "name": "s", "url": "https://s.example"}],
                "tools": [
                    {"type": "mcp_toolset", "mcp_server_name": "s"},
                    {"type": "web_search_20250305", "name": "web_search"},
                    {"type": "computer_20250124", "name": "computer"},
                ],
            },
            MESSAGES,
        ),
        ({"contents": [{"parts": [{"text": "hi"}]}], "tools": [{"googleSearch": {}}, {"urlContext": {}}]}, GEMINI),
    ],
)
def test_every_client_goes_on_without(body: Any, client: Api) -> None:
    made, told = yielded(body, client, CONVERSE)
    assert [*made][-1] == "messages"
    assert "toolConfig" not in made
    assert "dropped=tools:" in told
    with pytest.raises(Untranslatable):
        plan(json.dumps(body).encode(), Way(client, CONVERSE, CLAUDE))
    with pytest.raises(Untranslatable):
        yielded(body, client, CONVERSE, loss=Loss.STRICT)
    assert yielded(body, client, CONVERSE, loss=Loss.SILENT)[1] == ""


def test_of_an_element_with_several_tools_the_clients_stay() -> None:
    tools = [{"googleSearch": {}, "functionDeclarations": [{"name": "f"}]}]
    body = {"contents": [{"parts": [{"text": "hi"}]}], "tools": tools}
    made, told = yielded(body, GEMINI, CONVERSE)
    assert [tool["toolSpec"]["name"] for tool in made["toolConfig"]["tools"]] == ["f"]
    assert told == "dropped=tools:googleSearch"


@pytest.mark.parametrize(
    ("body", "client"),
    [
        (responses(FILES, tool_choice={"type": "file_search"}), RESPONSES),
        (responses(FILES, F, tool_choice={"type": "file_search"}), RESPONSES),
        (responses(FILES, tool_choice="required"), RESPONSES),
        (
            {
                "max_tokens": 9,
                "messages": HI,
                "tools": [{"type": "computer_20250124", "name": "computer"}, {"name": "f", "input_schema": {}}],
                "tool_choice": {"type": "tool", "name": "computer"},
            },
            MESSAGES,
        ),
    ],
)
def test_what_has_to_be_called_is_not_left_out(body: Any, client: Api) -> None:
    with pytest.raises(Untranslatable):
        yielded(body, client, CONVERSE)


def test_what_else_is_in_the_way_stays_in_it() -> None:
    with pytest.raises(Untranslatable):
        yielded(responses(FILES, conversation="c"), RESPONSES, CONVERSE)


def test_many_are_not_tried_one_by_one() -> None:
    trials = 0

    def can(less: Any) -> bool:
        nonlocal trials
        trials += 1
        return not less.get("tools")

    body, told = without_hosted(responses(*[FILES] * (TRIED_MAX + 1)), RESPONSES, can)
    assert (trials, told, "tools" in body) == (1, (Lost("dropped", "tools", "file_search"),), False)


def test_a_body_without_tools_has_none() -> None:
    assert not may_have_hosted(b'{"model":"m","messages":[]}')
    assert may_have_hosted(b'{"tools":[]}')
