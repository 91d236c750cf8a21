import pytest

from kinference.shapes.ir import Effort, Format, FormatKind, Thinking, Tool, ToolChoice, ToolMode
from kinference.shapes.lost import Untranslatable
from kinference.shapes.openai_responses.settings import (
    format_of,
    loaded_tools,
    thinking_of,
    tool_choice_of,
    tools_of,
    verbosity_of,
)
from kinference.shapes.scan import BadBody


def test_tools() -> None:
    schema = {"type": "object"}
    function = {"type": "function", "name": "f", "description": "d", "parameters": schema, "strict": True}
    assert tools_of(
        [function, {"type": "custom", "name": "c"}, {"type": "function", "name": "g", "parameters": None}]
    ) == (
        Tool("f", "d", schema, True),
        Tool("c", is_free_form=True),
        Tool("g"),
    )
    with pytest.raises(Untranslatable, match=r"tools\[0\].type"):
        tools_of([{"type": "file_search"}])
    with pytest.raises(BadBody, match=r"tools\[0\].name"):
        tools_of([{"type": "function"}])


@pytest.mark.parametrize(
    ("choice", "read"),
    [
        (None, None),
        ("none", ToolChoice(ToolMode.NONE)),
        ({"type": "function", "name": "f"}, ToolChoice(ToolMode.REQUIRED, ("f",))),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "a"}]},
            ToolChoice(ToolMode.REQUIRED, ("a",), is_list=True),
        ),
    ],
)
def test_tool_choices(choice: object, read: ToolChoice | None) -> None:
    assert tool_choice_of(choice) == read


@pytest.mark.parametrize("choice", ["sometimes", {"type": "file_search"}, 7])
def test_a_tool_choice_that_is_none(choice: object) -> None:
    with pytest.raises(BadBody, match="tool_choice"):
        tool_choice_of(choice)


def test_text_and_reasoning() -> None:
    assert format_of(None) is format_of({"format": {"type": "text"}}) is None
    assert format_of({"format": {"type": "json_object"}}) == Format(FormatKind.JSON_OBJECT)
    form = {"type": "json_schema", "name": "n", "schema": {}, "strict": False}
    assert format_of({"format": form}) == Format(FormatKind.JSON_SCHEMA, "n", {}, False)
    with pytest.raises(BadBody, match=r"text\.format\.type"):
        format_of({"format": {"type": "xml"}})
    assert verbosity_of({"verbosity": "low"}) == "low"
    assert thinking_of(None) is None
    assert thinking_of({"effort": "high", "summary": "auto"}) == Thinking(Effort.HIGH, is_shown=True)


SEARCHING = {"type": "tool_search", "execution": "client", "description": "d", "parameters": {"type": "object"}}
GROUP = {
    "type": "namespace",
    "name": "crm",
    "description": "Customers.",
    "tools": [{"type": "function", "name": "get", "description": "Gets."}, {"type": "custom", "name": "run"}],
}


def test_the_tools_of_a_namespace_are_the_clients_own() -> None:
    assert tools_of([GROUP]) == (
        Tool("crm__get", "Customers.\n\nGets.", namespace="crm"),
        Tool("crm__run", "Customers.", is_free_form=True, namespace="crm"),
    )
    with pytest.raises(Untranslatable, match=r"tools\[0\].tools\[0\].type"):
        tools_of([{**GROUP, "tools": [{"type": "file_search"}]}])
    with pytest.raises(BadBody, match=r"tools\[0\].name"):
        tools_of([{"type": "namespace", "tools": []}])


def test_a_search_for_tools_is_the_clients_or_needs_none() -> None:
    assert tools_of([SEARCHING]) == (Tool("tool_search", "d", {"type": "object"}, form="tool_search"),)
    assert tools_of([{"type": "tool_search"}, {"type": "tool_search", "execution": "server"}]) == ()


def test_tools_that_came_within_the_conversation() -> None:
    items = [
        {"type": "tool_search_output", "call_id": "s", "tools": [GROUP]},
        {"type": "additional_tools", "role": "developer", "tools": [{"type": "function", "name": "f"}]},
        {"role": "user", "content": "hi"},
    ]
    assert [tool.name for tool in loaded_tools(items)] == ["crm__get", "crm__run", "f"]
    assert list(loaded_tools("hi")) == []
    with pytest.raises(Untranslatable, match=r"input\[0\].tools\[0\].type"):
        list(loaded_tools([{"type": "additional_tools", "tools": [{"type": "file_search"}]}]))
