import pytest

from kinference.shapes.ir import Effort, Format, FormatKind, Json, Thinking, Tool, ToolChoice, ToolMode
from kinference.shapes.lost import Untranslatable
from kinference.shapes.openai_chat.settings import effort_of, format_of, thinking_of, tool_choice_of, tools_of
from kinference.shapes.scan import BadBody

FUNCTION = {"name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True}


def test_tools_of_every_age() -> None:
    function = Tool("f", "d", {"type": "object"}, True)
    assert tools_of({"tools": [{"type": "function", "function": FUNCTION}]}) == (function,)
    assert tools_of({"functions": [FUNCTION]}) == (function,)
    assert tools_of({"tools": [{"type": "custom", "custom": {"name": "c"}}]}) == (Tool("c", is_free_form=True),)


def test_e5_a_tool_must_have_a_name() -> None:
    with pytest.raises(BadBody, match=r"tools\[0\].function.name"):
        tools_of({"tools": [{"type": "function", "function": {"name": ""}}]})


def test_a_hosted_tool_goes_nowhere_else() -> None:
    with pytest.raises(Untranslatable, match=r"tools\[0\]"):
        tools_of({"tools": [{"type": "web_search"}]})


@pytest.mark.parametrize(
    ("body", "choice"),
    [
        ({}, None),
        ({"tool_choice": "none"}, ToolChoice(ToolMode.NONE)),
        ({"tool_choice": "required"}, ToolChoice(ToolMode.REQUIRED)),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, ToolChoice(ToolMode.REQUIRED, ("f",))),
        ({"function_call": {"name": "f"}}, ToolChoice(ToolMode.REQUIRED, ("f",))),
        ({"function_call": "auto"}, ToolChoice(ToolMode.AUTO)),
        (
            {
                "tool_choice": {
                    "type": "allowed_tools",
                    "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]},
                }
            },
            ToolChoice(ToolMode.AUTO, ("f",), is_list=True),
        ),
    ],
)
def test_tool_choices(body: Json, choice: ToolChoice | None) -> None:
    assert tool_choice_of(body) == choice


@pytest.mark.parametrize("choice", ["sometimes", {"type": "mcp", "server_label": "s"}])
def test_a_tool_choice_that_is_none(choice: object) -> None:
    with pytest.raises(BadBody, match="tool_choice"):
        tool_choice_of({"tool_choice": choice})


def test_formats() -> None:
    assert format_of({"type": "text"}) is None
    assert format_of({"type": "json_object"}) == Format(FormatKind.JSON_OBJECT)
    schema = {"name": "n", "schema": {"type": "object"}, "strict": True}
    assert format_of({"type": "json_schema", "json_schema": schema}) == Format(
        FormatKind.JSON_SCHEMA, "n", {"type": "object"}, True
    )
    with pytest.raises(Untranslatable):
        format_of({"type": "grammar"})


def test_efforts() -> None:
    assert effort_of(None, "reasoning_effort") is None
    assert effort_of("xhigh", "reasoning_effort") == Thinking(Effort.XHIGH)
    with pytest.raises(BadBody, match="minimal, low"):
        effort_of("some", "reasoning_effort")


@pytest.mark.parametrize(
    ("body", "thinking"),
    [
        ({}, None),
        ({"reasoning_effort": "low", "reasoning": {"effort": "high"}}, Thinking(Effort.LOW)),
        ({"reasoning": {"effort": "high"}}, Thinking(Effort.HIGH, is_shown=True)),
        ({"reasoning": {"effort": "high", "exclude": True}}, Thinking(Effort.HIGH)),
        ({"reasoning": {"max_tokens": 2000}}, Thinking(Effort.MEDIUM, 2000, is_shown=True)),
        ({"reasoning": {"enabled": True}}, Thinking(Effort.MEDIUM, is_shown=True)),
        ({"reasoning": {"enabled": False, "effort": "high"}}, Thinking(Effort.NONE)),
        ({"reasoning": {"exclude": True}}, None),
        ({"thinking": {"type": "enabled", "budget_tokens": 4000}}, Thinking(Effort.HIGH, 4000, is_shown=True)),
        ({"thinking": {"type": "adaptive"}}, Thinking(Effort.HIGH, is_shown=True)),
        ({"thinking": {"type": "disabled"}}, Thinking(Effort.NONE)),
    ],
)
def test_how_much_to_think_is_read_as_other_gateways_and_anthropic_have_it(
    body: Json, thinking: Thinking | None
) -> None:
    assert thinking_of(body) == thinking


@pytest.mark.parametrize("body", [{"reasoning": "high"}, {"reasoning": {"effort": "some"}}, {"thinking": 7}])
def test_what_is_no_way_to_say_how_much_to_think_is_refused(body: Json) -> None:
    with pytest.raises(BadBody, match=r"reasoning|thinking"):
        thinking_of(body)
