"""JSON schemas in the words of Google's own kind of schema, which is all that models before 2.5 take."""

from typing import Final

from kinference.shapes.gemini.thinking import generation
from kinference.shapes.ir import Json
from kinference.shapes.json_text import dumps

_JSON_SINCE: Final = (2, 5)
_EXPANDED_MAX: Final = 200_000
"""Bytes of all that names stand for in one whole: a few name it again, however long it is."""
_KEPT: Final = (
    *("title", "description", "propertyOrdering"),
    *("minItems", "maxItems", "minimum", "maximum"),
)
_FORMATS: Final = {
    "STRING": ("date-time",),
    "INTEGER": ("int32", "int64"),
    "NUMBER": ("float", "double"),
}
_DEPTH_MAX: Final = 32
"""Names that are put within one another."""
_NULL: Final = "null"
_ANY: Final = "STRING"
"""Said of what may be of any type, as there has to be one."""


def takes_json_schemas(model: str) -> bool:
    """Whether a model takes JSON schemas as they are."""
    return generation(model) >= _JSON_SINCE


def older(schema: Json) -> Json:
    """The schema in Google's words, what it names put where it is named; {} where it says nothing of an object."""
    written = _Older(schema).written(schema, ())
    return written if "properties" in written or written.get("type") != "OBJECT" else {}


class _Older:
    def __init__(self, root: Json) -> None:
        self._root = root
        self._left = _EXPANDED_MAX
        self._sizes: dict[str, int] = {}

    def written(self, schema: object, within: tuple[str, ...]) -> Json:
        """One schema and those in it. `within` are the names that it is part of: one that holds itself ends there."""
        if not isinstance(schema, dict):
            return {"type": _ANY}  # `true` is a schema too
        if isinstance(place := schema.get("$ref"), str):
            if place in within or len(within) == _DEPTH_MAX or not self._may_expand(place):
                return {"type": "OBJECT"}
            return self.written(self._named(place), (*within, place))
        kinds = _kinds(schema)
        kept: Json = {key: schema[key] for key in _KEPT if key in schema}
        given = schema.get("anyOf")
        alternatives: list[object] = given if isinstance(given, list) else []
        parts = [part for part in alternatives if not _is_null(part)]
        if _NULL in kinds or len(parts) < len(alternatives):
            kept["nullable"] = True
        if not parts:
            kinds = [kind for kind in kinds if kind != _NULL]
            if len(kinds) <= 1:
                return kept | self._typed(schema, kinds[0].upper() if kinds else _ANY, within)
            parts = [{**schema, "type": kind, "anyOf": None} for kind in kinds]
        written = [self.written(part, within) for part in parts]
        return {**written[0], **kept} if len(written) == 1 else {**kept, "anyOf": written}

    def _typed(self, schema: Json, kind: str, within: tuple[str, ...]) -> Json:
        """What only a schema of its type has."""
        made: Json = {"type": kind}
        if schema.get("format") in _FORMATS.get(kind, ()):
            made["format"] = schema["format"]
        choices = schema.get("enum")
        words = [one for one in choices if isinstance(one, str) and one] if isinstance(choices, list) else []
        if words and kind == "STRING":
            made["enum"] = words
        elif isinstance(choices, list):  # which are of strings alone
            made["description"] = f"{schema.get('description') or ''} (one of {dumps(choices).decode()})".lstrip()
        properties = schema.get("properties")
        if isinstance(properties, dict) and properties and kind == "OBJECT":
            made["properties"] = {name: self.written(inner, within) for name, inner in properties.items()}
            required = schema.get("required")
            if isinstance(required, list) and (
                names := [one for one in required if isinstance(one, str) and one in made["properties"]]
            ):
                made["required"] = names
        if kind == "ARRAY":
            made["items"] = self.written(schema.get("items"), within)
        return made

    def _may_expand(self, place: str) -> bool:
        if place not in self._sizes:
            self._sizes[place] = len(dumps(self._named(place)))
        self._left -= self._sizes[place]
        return self._left >= 0

    def _named(self, place: str) -> object:
        if place == "#":
            return self._root
        found: object = self._root
        for name in place.removeprefix("#/").split("/"):
            found = found.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        return found


def _kinds(schema: Json) -> list[str]:
    kind = schema.get("type")
    if kind is None and isinstance(schema.get("properties"), dict):
        return ["object"]
    if (
        kind is None
        and isinstance(choices := schema.get("enum"), list)
        and all(isinstance(one, str) for one in choices)
    ):
        return ["string"]
    return list(dict.fromkeys(one for one in (kind if isinstance(kind, list) else [kind]) if isinstance(one, str)))


def _is_null(schema: object) -> bool:
    return isinstance(schema, dict) and schema.get("type") == _NULL
