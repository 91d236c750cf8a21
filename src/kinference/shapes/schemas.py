"""JSON schemas as each destination takes them, of tools and of answers: every API has a subset of its own.

What a subset leaves out is said in the schema's description, where the model still reads it, and is a loss only where
the client was to rely on it: of the answer, and of a tool that is strict.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from kinference.shapes.concepts import Concept, Fields, name_of
from kinference.shapes.drafts import mended
from kinference.shapes.gemini.older_schemas import takes_json_schemas
from kinference.shapes.ir import Format, Json, Request, Tool
from kinference.shapes.json_hints import only_hints
from kinference.shapes.json_text import dumps
from kinference.shapes.lost import Lost, Untranslatable, safe
from kinference.shapes.strict import NAMED, STRICT_FORMATS, is_format, is_strict
from kinference.shapes.tooling import safe_id
from kinference.structs import Frozen
from kinference.vocabulary import Api

_LISTS: Final = ("anyOf", "allOf", "oneOf")
_LISTED: Final = (*_LISTS, "prefixItems")
_ALTERNATIVES: Final = frozenset(_LISTS)
_ANNOTATIONS: Final = frozenset(
    ["$schema", "$comment", "title", "default", "example", "examples", "deprecated", "readOnly", "writeOnly"]
)
"""Keywords that constrain nothing."""
_PLAIN: Final = frozenset(["type", "description", "enum", "required"])
"""Keywords that hold no schema and that every subset has."""
_UNUSUAL: Final = frozenset(["allOf", "$ref", "const", "definitions"])
"""Keywords that some subsets have in another form alone."""
_NOT_HELD: Final = ("not strict",)
_TOLD_MAX: Final = 4
"""Keywords of a schema that a warning names."""


class _Subset(Frozen, frozen=True):
    """What an API takes: all keywords but some, or some alone."""

    without: frozenset[str] = frozenset()
    only: frozenset[str] | None = None
    formats: frozenset[str] | None = None
    """Of strings; None: any."""
    min_items_max: int | None = None
    steady: frozenset[str] = _PLAIN
    """Those that stay as they are, whatever their values."""
    closes: bool = False
    """Whether no object may have other members than those that its schema names."""

    maps: bool = True
    """Whether a schema may be told of members of any name."""

    def leaves_out(self, key: str, value: object) -> bool:
        if key == "format":
            return self.formats is not None and not is_format(value, self.formats)
        if key == "minItems" and self.min_items_max is not None:
            return not isinstance(value, int) or value > self.min_items_max
        if key == "additionalProperties" and self.closes:
            return value is not False
        if key == "additionalProperties" and not self.maps:
            return isinstance(value, dict)
        return key in self.without if self.only is None else key not in self.only


_CLAUDES: Final = _Subset(
    without=frozenset(
        [
            *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
            *("minLength", "maxLength", "pattern"),
            *("maxItems", "uniqueItems", "contains", "minContains", "maxContains", "prefixItems", "unevaluatedItems"),
            *("minProperties", "maxProperties", "patternProperties", "propertyNames", "unevaluatedProperties"),
            *("dependentRequired", "dependentSchemas", "if", "then", "else", "not"),
        ]
    ),
    formats=frozenset(["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"]),
    min_items_max=1,
    closes=True,
)
_GEMINIS_STEADY: Final = frozenset(
    [
        *("$id", "$anchor", "type", "format", "title", "description", "enum", "required", "propertyOrdering"),
        *("minItems", "maxItems", "minimum", "maximum"),
    ]
)
_GEMINIS: Final = _Subset(
    only=_GEMINIS_STEADY
    | {"$defs", "$ref", "items", "prefixItems", "anyOf", "oneOf", "properties", "additionalProperties"},
    steady=_GEMINIS_STEADY,
)
_OLDER_GEMINIS: Final = replace(_GEMINIS, only=(_GEMINIS.only or frozenset()) - {"prefixItems"}, maps=False)
_STRICTS: Final = _Subset(
    without=frozenset(["default"]),
    formats=STRICT_FORMATS,
    closes=True,
)
_OPENAI_APIS: Final = (Api.OPENAI_CHAT, Api.OPENAI_RESPONSES)


def fit_schemas(request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:
    """The request with the schemas of its tools and its answer as the target takes them. Raises Untranslatable."""
    losses: list[Lost] = []
    geminis = (_GEMINIS if takes_json_schemas(request.model) else _OLDER_GEMINIS) if target is Api.GEMINI else None
    if any(tool.schema for tool in request.tools):
        tools = tuple(_fit_tool(tool, fields, target, geminis, losses) for tool in request.tools)
        if tools != request.tools:
            request = replace(request, tools=tools)
    form = request.format
    if form is not None and form.schema is not None:
        form = replace(form, name=safe_id(form.name), schema=mended(form.schema, is_whole=target in _OPENAI_APIS))
        request = replace(request, format=form)
        if only_hints(request, target):
            losses.append(Lost("clamped", name_of(Concept.JSON_SCHEMA, fields), "hint"))
        else:
            request = replace(request, format=_fit_format(form, fields, target, geminis, losses))
    return request, losses


def _fit_tool(tool: Tool, fields: Fields, target: Api, geminis: _Subset | None, losses: list[Lost]) -> Tool:
    if not tool.schema:
        return tool
    schema = _of_object(tool.schema)
    if schema is None:
        raise Untranslatable(f"tools: the parameters of {safe(tool.name)} are no object")
    schema = mended(schema, is_whole=target in _OPENAI_APIS)
    if not _ALTERNATIVES.isdisjoint(tool.schema):
        losses.append(Lost("clamped", name_of(Concept.TOOLS, fields), safe(tool.name)))
    told: tuple[str, ...] = ()
    if target in _OPENAI_APIS:
        if tool.strict and (strict := _strictly(schema)) is not None:
            schema = strict
        elif tool.strict:
            told, tool = _NOT_HELD, replace(tool, strict=False)
    elif geminis is not None:
        schema, _ = within(schema, geminis)  # which holds no model to the schema of a tool
    elif tool.strict:
        schema, told = within(schema, _CLAUDES)
    if told:
        losses += _losses(Concept.STRICT_TOOLS, fields, told)
    return tool if schema is tool.schema else replace(tool, schema=schema)


def _fit_format(form: Format, fields: Fields, target: Api, geminis: _Subset | None, losses: list[Lost]) -> Format:
    assert form.schema is not None, "asked for where there is one"
    if target in _OPENAI_APIS:
        if not form.strict:
            return form
        if (strict := _strictly(form.schema)) is not None:
            return replace(form, schema=strict)
        losses += _losses(Concept.JSON_SCHEMA, fields, _NOT_HELD)
        return replace(form, strict=False)
    schema, told = within(form.schema, geminis or _CLAUDES)
    losses += _losses(Concept.JSON_SCHEMA, fields, told)
    return replace(form, schema=schema)


def _losses(concept: Concept, fields: Fields, told: Iterable[str]) -> Iterator[Lost]:
    if names := "+".join(safe(key) for key in list(told)[:_TOLD_MAX]):
        yield Lost("clamped", name_of(concept, fields), names)


# --- one subset -------------------------------------------------------------------------------------


def within(schema: Json, subset: _Subset) -> tuple[Json, tuple[str, ...]]:
    """The schema without what the subset leaves out, and the keywords of that which constrained something."""
    narrowing = _Narrowing(subset)
    return narrowing.schema(schema), tuple(narrowing.told)


class _Narrowing:
    def __init__(self, subset: _Subset) -> None:
        self._subset = subset
        self.told: dict[str, None] = {}

    def schema(self, schema: Json) -> Json:
        """One schema and those in it."""
        steady = self._subset.steady
        if steady.issuperset(schema) and not (self._subset.closes and schema.get("type") == "object"):
            return schema
        kept: Json = {}
        left: Json = {}
        for key, value in self._usual(schema).items():
            if key in steady:
                kept[key] = value
            elif self._subset.leaves_out(key, value):
                left[key] = value
            elif key in NAMED and isinstance(value, dict):
                kept[key] = {name: self._inner(inner) for name, inner in value.items()}
            elif key in _LISTED and isinstance(value, list):
                kept["anyOf" if key == "oneOf" else key] = [self._inner(inner) for inner in value]
            elif key in ("items", "additionalProperties"):
                kept[key] = self._inner(value)
            else:
                kept[key] = value
        if left:
            self.told |= dict.fromkeys(key for key in left if key not in _ANNOTATIONS and not key.startswith("x-"))
            kept = _described(kept, left)
        return self._closed(kept)

    def _usual(self, schema: Json) -> Json:
        """The same in keywords that the subset has."""
        if self._subset.only is None or _UNUSUAL.isdisjoint(schema):
            return schema
        if len(parts := list(_dicts(schema.get("allOf")))) == 1:
            schema = parts[0] | {key: value for key, value in schema.items() if key != "allOf"}
        if isinstance(schema.get("$ref"), str):  # beside which nothing may stand
            own = {key: value for key, value in schema.items() if key.startswith("$") or key == "definitions"}
            schema = own | {"$ref": schema["$ref"].replace("#/definitions/", "#/$defs/")}
        if isinstance(schema.get("const"), str | int) and "enum" not in schema:
            schema = schema | {"enum": [schema["const"]]}
            del schema["const"]
        return {"$defs" if key == "definitions" else key: value for key, value in schema.items()}

    def _closed(self, schema: Json) -> Json:
        if self._subset.closes and (schema.get("type") == "object" or "properties" in schema):
            schema["additionalProperties"] = False
        return schema

    def _inner(self, schema: Any) -> Any:  # noqa: ANN401 - `true` is a schema too
        return self.schema(schema) if isinstance(schema, dict) else schema


def _described(kept: Json, left: Json) -> Json:
    """What is left out in words; a schema's version and the like are for nobody."""
    told = {key: value for key, value in left.items() if not key.startswith(("$", "x-"))}
    if told:
        text = "; ".join(f"{key}: {dumps(value).decode()}" for key, value in told.items())
        kept["description"] = f"{kept['description']} ({text})" if kept.get("description") else text
    return kept


# --- of an object -----------------------------------------------------------------------------------


def _of_object(schema: Json) -> Json | None:
    """A tool's schema as one of an object without alternatives, which every API asks for; None where it cannot be."""
    kind = schema.get("type")
    if kind not in (None, "object") and not (isinstance(kind, list) and "object" in kind):
        return None
    alternatives = [(key, part) for key in _LISTS if key in schema for part in _members_of(schema, key)]
    if not alternatives:
        return schema if kind == "object" else {**schema, "type": "object"}
    properties: Json = {}
    for _, part in reversed(alternatives):
        properties |= _properties(part)
    properties |= _properties(schema)
    required = _required(schema)
    for key in _LISTS:
        wanted = [_required(part) for of, part in alternatives if of == key]
        required |= _union(wanted) if key == "allOf" else _common(wanted)
    rest = {key: value for key, value in schema.items() if key not in _LISTS}
    return {**rest, "type": "object", "properties": properties} | ({"required": list(required)} if required else {})


def _members_of(schema: Json, key: str) -> Iterator[Json]:
    """The schemas under a keyword, looked up where they stand among the definitions, and each of those once: a few
    bytes name it again, however long it is.
    """
    named: set[str] = set()
    for part in _dicts(schema.get(key)):
        if not isinstance(place := part.get("$ref"), str):
            yield part
        elif place not in named:
            named.add(place)
            _, group, name = (*place.split("/", 3), "", "", "")[:3]
            yield from _dicts([_object(schema.get(group)).get(name)])


def _union(wanted: Iterable[dict[str, None]]) -> dict[str, None]:
    return {name: None for names in wanted for name in names}


def _common(wanted: Sequence[dict[str, None]]) -> dict[str, None]:
    """What is in all of them, in the order of the first; in steps as many as they have names."""
    common = wanted[0] if wanted else {}
    for names in wanted[1:]:
        common = {name: None for name in common if name in names}
    return common


def _dicts(value: object) -> Iterator[Json]:
    """The objects of a list; none of what is no list."""
    return (part for part in (value if isinstance(value, list) else ()) if isinstance(part, dict))


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _properties(schema: Json) -> Json:
    return _object(schema.get("properties"))


def _required(schema: Json) -> dict[str, None]:
    names = schema.get("required")
    return {name: None for name in (names if isinstance(names, list) else ()) if isinstance(name, str)}


# --- strict -----------------------------------------------------------------------------------------


def _strictly(schema: Json) -> Json | None:
    """The schema as OpenAI can hold a model to it; None where it cannot."""
    if is_strict(schema):
        return schema
    narrower, told = within(schema, _STRICTS)
    return narrower if is_strict(narrower) and not told else None
