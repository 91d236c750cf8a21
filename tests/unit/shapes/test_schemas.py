from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinference.shapes.lost import Untranslatable
from kinference.shapes.scan import BadBody
from kinference.vocabulary import Api, Loss
from tests.unit.shapes.conversions import CHAT, CONVERSE, GEMINI, HI, MESSAGES, RESPONSES, planned, sent, warnings

EXACT = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"$ref": "#/$defs/b"}},
    "$defs": {"b": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "integer", "minimum": 1}}]}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


def asking(schema: Any, strict: bool | None = None) -> Any:
    """A chat that wants its answer by a schema."""
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "strict": strict}}
    return {"model": "m", "max_tokens": 99, "messages": HI, "response_format": form}


def offering(schema: Any, strict: bool | None = None) -> Any:
    """A chat with one tool."""
    function = {"name": "f", "parameters": schema} | ({} if strict is None else {"strict": strict})
    return {"model": "m", "max_tokens": 99, "messages": HI, "tools": [{"type": "function", "function": function}]}


def closed(schema: Any) -> Any:
    """An answer's schema as Claude takes it."""
    return sent(asking(schema), CHAT, MESSAGES)["output_config"]["format"]["schema"]


def for_gemini(schema: Any) -> Any:
    """An answer's schema as Gemini takes it, and a tool's likewise."""
    answers = sent(asking(schema), CHAT, GEMINI)["generationConfig"]["responseJsonSchema"]
    (tool,) = sent(offering({"type": "object", "properties": {"x": schema}}), CHAT, GEMINI)["tools"]
    assert tool["functionDeclarations"][0]["parametersJsonSchema"]["properties"]["x"] == answers
    return answers


def test_f4_constraints_are_told_and_a_property_of_their_name_stays() -> None:
    schema = {
        "type": "object",
        "properties": {
            "maxLength": {"type": "string", "maxLength": 5, "pattern": "^a"},
            "n": {"type": "integer", "minimum": 1, "description": "how many"},
            "list": {"type": "array", "minItems": 2, "items": {"type": "string", "format": "color"}},
        },
        "required": ["n"],
    }
    assert closed(schema) == {
        "type": "object",
        "properties": {
            "maxLength": {"type": "string", "description": 'maxLength: 5; pattern: "^a"'},
            "n": {"type": "integer", "description": "how many (minimum: 1)"},
            "list": {
                "type": "array",
                "items": {"type": "string", "description": 'format: "color"'},
                "description": "minItems: 2",
            },
        },
        "required": ["n"],
        "additionalProperties": False,
    }


def test_alternatives_and_definitions_are_closed_too() -> None:
    schema = {
        "$defs": {"a": {"type": "object"}},
        "oneOf": [{"$ref": "#/$defs/a"}, {"type": "string", "format": "date"}],
    }
    assert closed(schema) == {
        "$defs": {"a": {"type": "object", "additionalProperties": False}},
        "anyOf": [{"$ref": "#/$defs/a"}, {"type": "string", "format": "date"}],
    }


def test_one_item_at_least_is_enforced() -> None:
    assert closed({"type": "array", "minItems": 1, "items": True}) == {"type": "array", "minItems": 1, "items": True}


def test_f7_what_a_destination_cannot_hold_the_answer_to_is_told_and_strictly_refused() -> None:
    inner = {"type": "string", "pattern": "^a", "maxLength": 5, "default": "a", "x-own": 1, "$comment": "c"}
    body = asking(
        {"type": "object", "properties": {"a": inner, "b": {"type": "object", "additionalProperties": inner}}}
    )
    assert warnings(body, CHAT, MESSAGES) == "clamped=response_format:pattern+maxLength+additionalProperties"
    assert warnings(body, CHAT, CONVERSE) == warnings(body, CHAT, MESSAGES)
    assert warnings(body, CHAT, GEMINI) == "clamped=response_format:pattern+maxLength"
    assert warnings(body, CHAT, RESPONSES) == ""
    with pytest.raises(Untranslatable, match="response_format: pattern"):
        planned(body, CHAT, GEMINI, Loss.STRICT)


def test_f7_gemini_gets_the_keywords_that_it_has() -> None:
    assert for_gemini(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "pattern": "^a", "description": "p", "default": "a"},
                "kind": {"const": "k"},
                "yes": {"const": True},
                "one": {"allOf": [{"type": "string"}], "title": "One"},
                "ref": {"$ref": "#/definitions/d", "description": "beside which nothing may stand"},
                "n": {"type": ["integer", "null"], "minimum": 1, "exclusiveMaximum": 9},
                "pair": {"type": "array", "prefixItems": [{"type": "string", "minLength": 1}], "minItems": 2},
                "either": {"oneOf": [{"type": "string"}, {"not": {}}]},
            },
            "definitions": {"d": {"type": "object", "additionalProperties": {"format": "color"}}},
        }
    ) == {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": 'p (pattern: "^a"; default: "a")'},
            "kind": {"enum": ["k"]},
            "yes": {"enum": [True]},
            "one": {"type": "string", "title": "One"},
            "ref": {"$ref": "#/$defs/d"},
            "n": {"type": ["integer", "null"], "minimum": 1, "description": "exclusiveMaximum: 9"},
            "pair": {
                "type": "array",
                "prefixItems": [{"type": "string", "description": "minLength: 1"}],
                "minItems": 2,
            },
            "either": {"anyOf": [{"type": "string"}, {"description": "not: {}"}]},
        },
        "$defs": {"d": {"type": "object", "additionalProperties": {"format": "color"}}},
    }


def test_f7_bedrock_gets_closed_objects() -> None:
    output = sent(asking({"type": "object"}), CHAT, CONVERSE)["outputConfig"]
    schema = output["textFormat"]["structure"]["jsonSchema"]["schema"]
    assert schema == '{"type":"object","additionalProperties":false}'


@pytest.mark.parametrize("destination", [CHAT, RESPONSES])
def test_f7_an_answer_that_has_to_hold_is_strict_at_openai_where_it_can_be(destination: Api) -> None:
    def asked(schema: Any) -> tuple[Any, str]:
        form = {"format": {"type": "json_schema", "schema": schema}}
        body = {"model": "m", "max_tokens": 99, "messages": HI, "output_config": form}
        made = sent(body, MESSAGES, destination)
        found = made["text"]["format"] if destination is RESPONSES else made["response_format"]["json_schema"]
        return found, warnings(body, MESSAGES, destination)

    open_schema = {key: value for key, value in EXACT.items() if key != "additionalProperties"}
    for schema in (EXACT, open_schema):
        form, told = asked(schema)
        assert (form["strict"], form["schema"], told) == (True, EXACT, "")
    form, told = asked(EXACT | {"required": ["a"]})
    assert (form["strict"], form["schema"]["required"], told) == (False, ["a"], "clamped=output_config:not strict")


def test_f7_a_strict_tool_stays_strict_where_the_destination_can_hold_to_it() -> None:
    assert sent(offering(EXACT, True), CHAT, RESPONSES)["tools"][0]["strict"] is True
    loose = offering(EXACT | {"required": []}, True)
    assert sent(loose, CHAT, RESPONSES)["tools"][0]["strict"] is False
    assert warnings(loose, CHAT, RESPONSES) == "clamped=tools.function.strict:not strict"
    (tool,) = sent(offering(EXACT, True), CHAT, MESSAGES)["tools"]
    assert tool["input_schema"]["$defs"]["b"]["anyOf"][1]["items"]["description"] == "minimum: 1"
    assert warnings(offering(EXACT, True), CHAT, MESSAGES) == "clamped=tools.function.strict:minimum"
    assert warnings(offering(EXACT), CHAT, MESSAGES) == ""


def tool_schema(schema: Any, destination: Api = MESSAGES) -> Any:
    body = sent(offering(schema), CHAT, destination)
    if destination is MESSAGES:
        return body["tools"][0]["input_schema"]
    return body["toolConfig"]["tools"][0]["toolSpec"]["inputSchema"]["json"]


@pytest.mark.parametrize("destination", [MESSAGES, CONVERSE])
def test_a_tool_takes_an_object(destination: Api) -> None:
    assert tool_schema({"properties": {}}, destination) == {"type": "object", "properties": {}}
    assert tool_schema({}, destination) == {"type": "object", "properties": {}}
    assert tool_schema({"type": ["object", "null"]}, destination) == {"type": "object"}
    with pytest.raises(Untranslatable, match="parameters of f"):
        tool_schema({"type": "string"}, destination)


def test_alternatives_of_a_tool_become_one_object_and_are_told() -> None:
    a, b = (
        {"type": "object", "properties": {"a": {}}, "required": ["a", "k"]},
        {"required": ["k"], "properties": {"b": 1}},
    )
    either = {"oneOf": [a, {"$ref": "#/$defs/b"}, True], "properties": {"k": {}}, "$defs": {"b": b}}
    assert tool_schema(either) == {
        "type": "object",
        "properties": {"b": 1, "a": {}, "k": {}},
        "required": ["k"],
        "$defs": {"b": b},
    }
    assert tool_schema({"type": "object", "allOf": [a, b, {"$ref": "elsewhere"}]})["required"] == ["a", "k"]
    assert warnings(offering(either), CHAT, MESSAGES) == "clamped=tools:f"


KEYWORDS = ["type", "format", "properties", "required", "anyOf", "allOf", "$ref", "$defs", "const", "enum", "items", ""]
SCHEMAS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["object", "#/$defs/a", "date", "x-a"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*KEYWORDS, "additionalProperties", "minItems", "nullable"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(
    schema=SCHEMAS, is_strict=st.booleans(), destination=st.sampled_from([CHAT, RESPONSES, MESSAGES, GEMINI, CONVERSE])
)
def test_whatever_a_schema_is_nothing_breaks(schema: object, is_strict: bool, destination: Api) -> None:
    for body in (asking(schema, is_strict), offering(schema, is_strict)):
        with suppress(BadBody):
            planned(body, CHAT, destination)
    own = {"contents": [{"parts": [{"text": "hi"}]}], "generationConfig": {"responseSchema": schema}}
    with suppress(BadBody):
        planned(own, GEMINI, destination)
