from typing import Any

import pytest

from kinference.shapes.strict import is_strict

EXACT = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"$ref": "#/$defs/b"}},
    "$defs": {"b": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "integer", "minimum": 1}}]}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "change",
    [
        {"type": "array"},
        {"anyOf": []},
        {"required": ["a"]},
        {"required": None},
        {"additionalProperties": True},
        {"allOf": []},
        {"$defs": {"b": {"type": "object"}}},
        {"$defs": {"b": {"type": "array", "items": {"oneOf": []}}}},
        {"$defs": {"b": {"anyOf": [True]}}},
        {"properties": {"a": {"type": "string", "format": "uri"}, "b": {}}},
    ],
)
def test_openai_holds_a_model_to_an_exact_schema_alone(change: Any) -> None:
    assert is_strict(EXACT)
    assert not is_strict(EXACT | change)
    assert not is_strict(True)
