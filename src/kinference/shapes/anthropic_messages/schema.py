"""JSON schemas as Claude's structured output takes them: closed objects, and no constraint that it cannot enforce."""

from typing import Any, Final

from kinference.shapes.ir import Json
from kinference.shapes.json_text import dumps

_UNENFORCED: Final = frozenset(
    [
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "maxItems",
        "uniqueItems",
        "contains",
        "prefixItems",
        "minProperties",
        "maxProperties",
        "patternProperties",
        "propertyNames",
        "dependentRequired",
        "dependentSchemas",
        "unevaluatedItems",
        "unevaluatedProperties",
        "if",
        "then",
        "else",
        "not",
        "pattern",
    ]
)
_FORMATS: Final = frozenset(
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"]
)
_NAMED: Final = ("properties", "$defs", "definitions")
"""Keywords whose members are named by the client and hold schemas."""
_LISTS: Final = ("anyOf", "allOf", "oneOf")


def closed(schema: Json) -> Json:
    """The schema with what cannot be enforced said in its description, and every object closed."""
    kept: Json = {}
    told: Json = {}
    for key, value in schema.items():
        if _is_unenforced(key, value):
            told[key] = value
        elif key in _NAMED and isinstance(value, dict):
            kept[key] = {name: _sub(inner) for name, inner in value.items()}
        elif key in _LISTS and isinstance(value, list):
            kept["anyOf" if key == "oneOf" else key] = [_sub(inner) for inner in value]
        elif key == "items":
            kept[key] = _sub(value)
        else:
            kept[key] = value
    if told:
        text = "; ".join(f"{key}: {dumps(value).decode()}" for key, value in told.items())
        kept["description"] = f"{kept['description']} ({text})" if kept.get("description") else text
    if kept.get("type") == "object" or "properties" in kept:
        kept["additionalProperties"] = False
    return kept


def _sub(schema: Any) -> Any:  # noqa: ANN401 - `true` is a schema too
    return closed(schema) if isinstance(schema, dict) else schema


def _is_unenforced(key: str, value: object) -> bool:
    if key == "minItems":
        return value not in (0, 1)
    if key == "format":
        return value not in _FORMATS
    return key in _UNENFORCED
