"""Which JSON schemas OpenAI can hold a model to."""

from collections.abc import Iterable
from typing import Final

from kinference.shapes.ir import Json

NAMED: Final = ("properties", "$defs", "definitions")
"""Keywords whose members are named by the client and hold schemas."""
STRICT_FORMATS: Final = frozenset(
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"]
)
_NOT_STRICT: Final = frozenset(
    [
        *("allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas"),
        *("patternProperties", "propertyNames", "minProperties", "maxProperties", "unevaluatedProperties"),
        *("contains", "minContains", "maxContains", "uniqueItems", "prefixItems", "unevaluatedItems"),
    ]
)
"""Keywords that OpenAI refuses where it is to hold the model to a schema."""


def is_strict(schema: object, *, is_root: bool = True) -> bool:
    """Whether OpenAI can hold a model to a schema: each object closed, and all of its members required."""
    if not isinstance(schema, dict):
        return False
    if is_root and (schema.get("type") != "object" or "anyOf" in schema):
        return False
    if not _NOT_STRICT.isdisjoint(schema) or not is_format(schema.get("format", "date"), STRICT_FORMATS):
        return False
    if (schema.get("type") == "object" or "properties" in schema) and not _is_exact(schema):
        return False
    named = (inner for key in NAMED for inner in _values(schema.get(key)))
    listed = _values(schema.get("anyOf"))
    items = (schema["items"],) if "items" in schema else ()
    return all(is_strict(inner, is_root=False) for inner in (*named, *listed, *items))


def is_format(value: object, known: frozenset[str]) -> bool:
    """Whether a string's format is one of those that are known."""
    return isinstance(value, str) and value in known


def _is_exact(schema: Json) -> bool:
    required, properties = schema.get("required"), schema.get("properties", {})
    return (
        schema.get("additionalProperties") is False
        and isinstance(required, list)
        and isinstance(properties, dict)
        and properties.keys() <= {name for name in required if isinstance(name, str)}
    )


def _values(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
