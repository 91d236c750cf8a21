"""JSON schemas of older drafts, and with what careless writers leave in them, as the draft that every provider checks
tools against: 2020-12. Anthropic and OpenAI refuse the whole request for one schema that is none.
"""

from typing import Any, Final

from kinference.shapes.ir import Json

_LEAF: Final = frozenset(
    [
        *("type", "title", "description", "enum", "const", "default", "examples", "format", "pattern"),
        *("minLength", "maxLength", "minimum", "maximum", "multipleOf", "minItems", "maxItems", "uniqueItems"),
    ]
)
"""Keywords that hold no schema and were never written otherwise."""
_ITEMS: Final = _LEAF | {"items"}
_NAMED: Final = frozenset(["properties", "$defs", "definitions", "patternProperties", "dependentSchemas"])
"""Keywords whose members are named by the client and hold schemas."""
_LISTED: Final = frozenset(["anyOf", "allOf", "oneOf", "prefixItems"])
_SINGLE: Final = frozenset(
    [
        *("items", "contains", "unevaluatedItems", "additionalProperties", "propertyNames", "unevaluatedProperties"),
        *("not", "if", "then", "else"),
    ]
)
_HOLDING: Final = _NAMED | _LISTED | _SINGLE
"""Keywords that hold schemas."""
_VALUES: Final = frozenset(["const", "default", "example"])
"""Keywords that may well be null."""
_OLD: Final = frozenset(["items", "exclusiveMinimum", "exclusiveMaximum"])
"""Keywords whose values older drafts wrote otherwise."""
_LIMITS: Final = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))


def mended(schema: Json, *, is_whole: bool) -> Json:
    """The same schema in the present draft; the very same object where it is so already. `is_whole`: arrays are to say
    what they hold, and the outermost object what members it has, without which OpenAI takes neither.
    """
    kept = _mended(schema, is_whole)
    if is_whole and "properties" not in kept and kept.get("type") == "object":
        kept = {**kept, "properties": {}}
    if is_whole and "properties" in kept and "type" not in kept:
        kept = {**kept, "type": "object"}
    return kept


def _mended(schema: Json, is_whole: bool) -> Json:
    kind = schema.get("type")
    is_array = kind == "array" or (type(kind) is list and "array" in kind)
    if not is_array and _is_usual(schema, _LEAF):
        return schema
    if is_array and type(items := schema.get("items")) is dict and _is_usual(schema, _ITEMS):
        inner = _mended(items, is_whole)
        return schema if inner is items else {**schema, "items": inner}
    changed: Json = {}  # None: to go
    for key, value in schema.items():
        if value is None:
            if key not in _VALUES:
                changed[key] = None
        elif key in _HOLDING:
            if (new := _value(key, value, is_whole)) is not value:
                changed[key] = new
        elif key == "enum" and type(value) is list and not value:
            changed[key] = None
    if not _OLD.isdisjoint(schema):
        changed |= _modern(schema, is_whole)
    if is_whole and is_array and not isinstance(changed.get("items", schema.get("items")), dict | bool):
        changed["items"] = {}
    if ("required" in schema or "properties" in schema) and (required := _required(schema)) != schema.get("required"):
        changed["required"] = required
    if not changed:
        return schema
    return {key: value for key, value in (schema | changed).items() if value is not None or key in _VALUES}


def _is_usual(schema: Json, known: frozenset[str]) -> bool:
    """Whether there is nothing to mend about these keywords, as with most schemas, and there are no others."""
    return known.issuperset(schema) and None not in schema.values() and schema.get("enum") != []


def _value(key: str, value: Any, is_whole: bool) -> Any:  # noqa: ANN401 - of a keyword
    """What a keyword holds with the schemas in it mended, the very same where there is nothing to mend; None where it
    is no value of this keyword.
    """
    if type(value) is dict:
        if key in _SINGLE:
            return _mended(value, is_whole)
        if key in _NAMED:
            changed = {name: new for name, each in value.items() if (new := _inner(each, is_whole)) is not each}
            return value | changed if changed else value
    elif type(value) is list:
        if key in _LISTED:
            listed = [_inner(each, is_whole) for each in value]
            return listed if any(new is not old for new, old in zip(listed, value, strict=True)) else value
        return None if key in _NAMED else value
    return None if key in _NAMED or key in _LISTED else value


def _inner(schema: Any, is_whole: bool) -> Any:  # noqa: ANN401 - `true` is a schema too
    return _mended(schema, is_whole) if type(schema) is dict else schema


def _modern(schema: Json, is_whole: bool) -> Json:
    """What older drafts wrote otherwise: a list of items, and limits that are excluded by a word."""
    changed: Json = {}
    if isinstance(items := schema.get("items"), list):
        each = [_inner(item, is_whole) for item in items]
        changed = {"items": schema.get("additionalItems"), "additionalItems": None, "prefixItems": each}
    for exclusive, limit in _LIMITS:
        if isinstance(is_excluded := schema.get(exclusive), bool):
            changed[exclusive] = schema.get(limit) if is_excluded else None
            if is_excluded:
                changed[limit] = None
    return changed


def _required(schema: Json) -> list[str] | None:
    """The members that have to be there, each once, also those that say so themselves; None for none of them."""
    given = schema.get("required")
    named = dict.fromkeys([name for name in given if isinstance(name, str)]) if isinstance(given, list) else {}
    named |= dict.fromkeys(_that_say_so(schema.get("properties")))
    return list(named) if named or isinstance(given, list) else None


def _that_say_so(properties: object) -> list[str]:
    if not isinstance(properties, dict):
        return []
    return [name for name, each in properties.items() if isinstance(each, dict) and each.get("required") is True]
