from kinference.shapes.anthropic_messages.schema import closed


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
