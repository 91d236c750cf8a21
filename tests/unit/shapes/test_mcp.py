from typing import Any

import pytest

from kinference.shapes import mcp
from kinference.shapes.ir import McpServer
from kinference.shapes.lost import Untranslatable
from kinference.shapes.mcp import of_messages, of_responses
from kinference.shapes.scan import BadBody
from kinference.shapes.translate import Way, translated
from kinference.vocabulary import Api
from tests.unit.shapes.conversions import (
    CHAT,
    CONVERSE,
    GEMINI,
    HI,
    MESSAGES,
    RESPONSES,
    planned,
    sent,
    warnings,
)

URL = "https://mcp.example/sse"
SERVER = {"type": "url", "name": "docs", "url": URL, "authorization_token": "t"}
TOOLSET = {"type": "mcp_toolset", "mcp_server_name": "docs"}
SOME = {"default_config": {"enabled": False}, "configs": {"find": {"enabled": True}}}
TOOL = {
    "type": "mcp",
    "server_label": "docs",
    "server_url": URL,
    "authorization": "t",
    "allowed_tools": ["find"],
    "require_approval": "never",
}
OF_MESSAGES = {"model": "m", "max_tokens": 99, "messages": HI, "mcp_servers": [SERVER], "tools": [TOOLSET | SOME]}
OF_RESPONSES = {"model": "m", "input": "hi", "tools": [TOOL]}


def test_servers_of_messages_are_those_of_responses() -> None:
    assert sent(OF_MESSAGES, MESSAGES, RESPONSES)["tools"] == [TOOL]
    assert warnings(OF_MESSAGES, MESSAGES, RESPONSES) == ""
    made = sent(OF_RESPONSES, RESPONSES, MESSAGES)
    assert (made["mcp_servers"], made["tools"]) == ([SERVER], [TOOLSET | SOME])
    all_of_it = {name: value for name, value in TOOL.items() if name not in ("allowed_tools", "authorization")}
    made = sent(OF_RESPONSES | {"tools": [all_of_it]}, RESPONSES, MESSAGES)
    assert (made["mcp_servers"], made["tools"]) == ([{"type": "url", "name": "docs", "url": URL}], [TOOLSET])
    assert sent(made | {"messages": HI}, MESSAGES, RESPONSES)["tools"] == [all_of_it]


@pytest.mark.parametrize("destination", [CHAT, GEMINI, CONVERSE, Api.VERTEX_ANTHROPIC])
@pytest.mark.parametrize(("client", "body"), [(MESSAGES, OF_MESSAGES), (RESPONSES, OF_RESPONSES)])
def test_they_go_to_nobody_who_calls_none(client: Api, body: Any, destination: Api) -> None:
    if destination.shape is not client:
        with pytest.raises(Untranslatable, match="mcp"):
            planned(body, client, destination)


def test_only_what_was_written_here_is_asked_for_by_a_beta() -> None:
    body, _ = translated(
        b'{"model":"m","input":"hi","tools":[{"type":"mcp","server_label":"a","server_url":"u",'
        b'"require_approval":"never"}]}',
        Way(RESPONSES, MESSAGES, "m"),
    )
    assert mcp.is_in(body)
    body, _ = translated(
        b'{"model":"m","input":"\\"mcp_servers\\":[{\\"type\\":\\"url\\""}', Way(RESPONSES, MESSAGES, "m")
    )
    assert not mcp.is_in(body)


@pytest.mark.parametrize(
    ("server", "toolset", "allowed"),
    [
        ({}, None, None),
        ({"tool_configuration": {"allowed_tools": ["a"]}}, None, ("a",)),
        ({"tool_configuration": {"enabled": True}}, None, None),
        ({}, {}, None),
        ({}, {"configs": {"a": {"defer_loading": True}}}, None),
        ({}, {"default_config": {"enabled": False}, "configs": {"a": {"enabled": True}, "b": {}}}, ("a",)),
    ],
)
def test_what_is_offered_of_a_server(server: Any, toolset: Any, allowed: tuple[str, ...] | None) -> None:
    tools = [] if toolset is None else [TOOLSET | toolset]
    assert of_messages({"mcp_servers": [SERVER | server], "tools": tools}) == (McpServer("docs", URL, "t", allowed),)


@pytest.mark.parametrize(
    ("server", "tools"),
    [
        ({"tool_configuration": {"enabled": False}}, []),
        ({}, [TOOLSET | {"default_config": {"enabled": False}}]),
    ],
)
def test_a_server_of_which_nothing_is_offered_is_left_out(server: Any, tools: Any) -> None:
    assert of_messages({"mcp_servers": [SERVER | server], "tools": tools}) == ()


@pytest.mark.parametrize(
    ("members", "place"),
    [
        ({"connector_id": "connector_gmail"}, "connector_id"),
        ({"headers": {"x": "y"}}, "headers"),
        ({"require_approval": None}, "require_approval"),
        ({"require_approval": "always"}, "require_approval"),
        ({"require_approval": {"never": {"tool_names": ["a"]}}}, "require_approval"),
        ({"allowed_tools": {"read_only": True}}, "read_only"),
    ],
)
def test_what_openai_alone_can_do_with_a_server_is_refused(members: Any, place: str) -> None:
    with pytest.raises(Untranslatable, match=rf"tools\[0\].*{place}"):
        of_responses([TOOL | members])


def test_tools_may_be_listed_by_a_filter() -> None:
    assert of_responses([TOOL | {"allowed_tools": {"tool_names": ["a"]}}, {"type": "function"}]) == (
        McpServer("docs", URL, "t", ("a",)),
    )


@pytest.mark.parametrize(
    "body",
    [
        {"mcp_servers": [{"type": "url", "url": URL}]},
        {"mcp_servers": [{"type": "url", "name": "docs"}]},
        {"mcp_servers": [SERVER], "tools": [TOOLSET | {"mcp_server_name": "other"}]},
        {"mcp_servers": [SERVER], "tools": [TOOLSET | {"configs": {"a": {"enabled": False}}}]},
        {"mcp_servers": "docs"},
    ],
)
def test_what_names_no_server_or_cannot_be_told_is_refused(body: Any) -> None:
    with pytest.raises(BadBody, match=r"mcp|tools"):
        of_messages(body)


def test_nobody_else_can_be_made_to_call_one() -> None:
    with pytest.raises(Untranslatable, match="tool_choice"):
        planned(OF_MESSAGES | {"tool_choice": {"type": "any"}}, MESSAGES, RESPONSES)
    with pytest.raises(Untranslatable, match="tool_choice"):
        planned(OF_RESPONSES | {"tool_choice": "required"}, RESPONSES, MESSAGES)
