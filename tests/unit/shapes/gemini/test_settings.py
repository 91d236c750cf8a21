import pytest

from kinference.shapes.gemini.settings import format_of, lowered, thinking_of, tool_choice_of, tools_of
from kinference.shapes.ir import Effort, Format, FormatKind, Json, Thinking, Tool, ToolChoice, ToolMode
from kinference.shapes.lost import Untranslatable
from kinference.shapes.scan import BadBody


def test_tools() -> None:
    first = {
        "name": "f",
        "description": "d",
        "parameters": {"type": "OBJECT", "properties": {"type": {"type": "STRING"}}},
    }
    second = {"name": "g", "parameters_json_schema": {"type": "object"}}
    assert tools_of([{"functionDeclarations": [first]}, {"function_declarations": [second]}]) == (
        Tool("f", "d", {"type": "object", "properties": {"type": {"type": "string"}}}),
        Tool("g", "", {"type": "object"}),
    )
    with pytest.raises(Untranslatable, match="fileSearch"):
        tools_of([{"fileSearch": {"x": 1}}])
    with pytest.raises(BadBody, match="name"):
        tools_of([{"functionDeclarations": [{}]}])


def test_types_in_capitals() -> None:
    assert lowered({"type": "ARRAY", "items": [{"type": "INTEGER"}], "enum": ["A"]}) == {
        "type": "array",
        "items": [{"type": "integer"}],
        "enum": ["A"],
    }


def test_f7_googles_own_words_in_a_schema_become_everybodys() -> None:
    own = {
        "type": "OBJECT",
        "properties": {
            "any_of": {"type": "STRING", "nullable": True, "minLength": "3"},
            "list": {"type": "ARRAY", "min_items": "1", "items": {"anyOf": [{"type": "INTEGER"}, {"type": "NUMBER"}]}},
        },
        "propertyOrdering": ["any_of", "list"],
    }
    assert lowered(own) == {
        "type": "object",
        "properties": {
            "any_of": {"type": ["string", "null"], "minLength": 3},
            "list": {"type": "array", "minItems": 1, "items": {"anyOf": [{"type": "integer"}, {"type": "number"}]}},
        },
    }


@pytest.mark.parametrize(
    ("config", "choice"),
    [
        ({}, None),
        ({"mode": "AUTO"}, ToolChoice(ToolMode.AUTO)),
        ({"mode": "NONE"}, ToolChoice(ToolMode.NONE)),
        ({"mode": "ANY", "allowedFunctionNames": ["f"]}, ToolChoice(ToolMode.REQUIRED, ("f",))),
        ({"mode": "VALIDATED", "allowed_function_names": ["f"]}, ToolChoice(ToolMode.AUTO, ("f",))),
    ],
)
def test_tool_choices(config: Json, choice: ToolChoice | None) -> None:
    assert tool_choice_of({"functionCallingConfig": config} if config else None) == choice
    with pytest.raises(BadBody, match="mode"):
        tool_choice_of({"functionCallingConfig": {"mode": "SOMETIMES"}})


@pytest.mark.parametrize(
    ("config", "thinking"),
    [
        (None, None),
        ({"thinkingBudget": -1}, None),
        ({"thinkingBudget": 0}, Thinking(Effort.NONE)),
        ({"thinkingBudget": 3000, "includeThoughts": True}, Thinking(Effort.HIGH, 3000, is_shown=True)),
        ({"thinkingLevel": "low"}, Thinking(Effort.LOW)),
        ({"includeThoughts": True}, Thinking(Effort.HIGH, is_shown=True)),
    ],
)
def test_thinking(config: object, thinking: Thinking | None) -> None:
    assert thinking_of(config) == thinking
    with pytest.raises(BadBody, match="thinkingLevel"):
        thinking_of({"thinkingLevel": "SOME"})


def test_formats() -> None:
    assert format_of({"responseMimeType": "text/plain"}) is None
    assert format_of({"responseMimeType": "application/json"}) == Format(FormatKind.JSON_OBJECT)
    schema = Format(FormatKind.JSON_SCHEMA, schema={"type": "object"}, strict=True)
    assert format_of({"responseSchema": {"type": "OBJECT"}}) == schema
    assert format_of({"responseJsonSchema": {"type": "object"}}) == schema
