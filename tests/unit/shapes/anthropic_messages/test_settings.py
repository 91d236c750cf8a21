import pytest

from kinference.shapes.anthropic_messages.settings import (
    choice_of,
    format_of,
    parallel_of,
    thinking_of,
    tools_of,
)
from kinference.shapes.ir import CacheMark, Effort, Format, FormatKind, Json, Thinking, Tool, ToolChoice, ToolMode
from kinference.shapes.lost import Untranslatable
from kinference.shapes.scan import BadBody


def test_tools() -> None:
    schema = {"type": "object"}
    tool = {"name": "f", "description": "d", "input_schema": schema, "cache_control": {"type": "ephemeral"}}
    assert tools_of([tool]) == (Tool("f", "d", schema, cache=CacheMark()),)
    with pytest.raises(Untranslatable, match=r"tools\[0\].type"):
        tools_of([{"type": "web_fetch_20250910", "name": "bash"}])
    with pytest.raises(BadBody, match=r"tools\[0\].name"):
        tools_of([{"name": "", "input_schema": schema}])


@pytest.mark.parametrize(
    ("choice", "read"),
    [
        ({}, None),
        ({"type": "auto"}, ToolChoice(ToolMode.AUTO)),
        ({"type": "none"}, ToolChoice(ToolMode.NONE)),
        ({"type": "any"}, ToolChoice(ToolMode.REQUIRED)),
        ({"type": "tool", "name": "f"}, ToolChoice(ToolMode.REQUIRED, ("f",))),
    ],
)
def test_tool_choices(choice: Json, read: ToolChoice | None) -> None:
    assert choice_of(choice) == read


def test_a_tool_choice_that_is_none() -> None:
    with pytest.raises(BadBody, match="tool_choice"):
        choice_of({"type": "maybe"})


def test_parallel_calls_are_said_the_other_way_round() -> None:
    assert [parallel_of({"disable_parallel_tool_use": value}) for value in (True, False, None)] == [False, True, None]


@pytest.mark.parametrize(
    ("body", "thinking"),
    [
        ({}, None),
        ({"thinking": {"type": "disabled"}}, Thinking(Effort.NONE)),
        ({"thinking": {"type": "enabled", "budget_tokens": 3000}}, Thinking(Effort.HIGH, 3000, is_shown=True)),
        ({"thinking": {"type": "adaptive"}}, Thinking(Effort.HIGH, is_shown=True)),
        (
            {"thinking": {"type": "adaptive", "display": "omitted"}, "output_config": {"effort": "max"}},
            Thinking(Effort.MAX),
        ),
        ({"output_config": {"effort": "low"}}, Thinking(Effort.LOW)),
    ],
)
def test_thinking(body: Json, thinking: Thinking | None) -> None:
    assert thinking_of(body) == thinking


def test_an_unknown_effort_is_named() -> None:
    with pytest.raises(BadBody, match=r"output_config\.effort"):
        thinking_of({"output_config": {"effort": "some"}})


@pytest.mark.parametrize(("budget", "effort"), [(1, Effort.LOW), (1025, Effort.MEDIUM), (10**6, Effort.MAX)])
def test_a_budget_is_the_least_effort_that_thinks_as_long(budget: int, effort: Effort) -> None:
    assert Effort.within(budget) is effort


def test_formats() -> None:
    assert format_of({}) is None
    schema = {"type": "object"}
    assert format_of({"output_config": {"format": {"type": "json_schema", "schema": schema}}}) == Format(
        FormatKind.JSON_SCHEMA, schema=schema, strict=True
    )
    with pytest.raises(BadBody, match=r"output_config\.format\.type"):
        format_of({"output_config": {"format": {"type": "xml"}}})
    assert format_of({"output_format": {"type": "json_schema", "schema": schema}}) == Format(
        FormatKind.JSON_SCHEMA, schema=schema, strict=True
    )
