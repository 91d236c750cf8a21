"""Tools, tool choice, thinking and answer format of a generateContent request."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kinference.shapes.choices import choice_of
from kinference.shapes.extras import extras
from kinference.shapes.gemini.fields import FIELDS, camel
from kinference.shapes.ir import Effort, Format, FormatKind, Json, Thinking, Tool, ToolChoice, ToolMode, WebSearch
from kinference.shapes.json_text import count_of, list_of, object_of, string_of, strings_of
from kinference.shapes.openai_chat.settings import named
from kinference.shapes.scan import BadBody
from kinference.shapes.web_search import of_gemini

_MODES: Final[Mapping[str, ToolMode]] = {
    "AUTO": ToolMode.AUTO,
    "VALIDATED": ToolMode.AUTO,
    "ANY": ToolMode.REQUIRED,
    "NONE": ToolMode.NONE,
}
_COUNTS: Final = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
_OWN_FORMATS: Final = tuple(("format", name) for name in ("enum", "int32", "int64", "float", "double"))
"""Which say no more than the type does."""
_HOLDING: Final = ("items", "anyOf", "additionalProperties", "prefixItems")
"""Keywords of a schema that hold others."""
_LEVELS: Final[Mapping[str, Effort]] = {
    "MINIMAL": Effort.MINIMAL,
    "LOW": Effort.LOW,
    "MEDIUM": Effort.MEDIUM,
    "HIGH": Effort.HIGH,
    "XHIGH": Effort.XHIGH,
}


def tools_of(value: object) -> tuple[Tool, ...]:
    """The tools. Raises BadBody."""
    return tuple(_tools([value] if isinstance(value, dict) else list_of(value, "tools")))


def search_of(value: object) -> WebSearch | None:
    """The search among the tools. Raises BadBody."""
    tools = [value] if isinstance(value, dict) else list_of(value, "tools")
    asked = (camel(tool).get("googleSearch") for tool in tools if isinstance(tool, dict))
    found = next((search for search in asked if search is not None), None)
    return of_gemini(camel(found) if isinstance(found, dict) else found, FIELDS)


def runs_code(value: object) -> bool:
    """Whether Google may run code."""
    tools = [value] if isinstance(value, dict) else list_of(value, "tools")
    return any(camel(tool).get("codeExecution") is not None for tool in tools if isinstance(tool, dict))


def _tools(tools: Sequence[object]) -> Iterator[Tool]:
    for at, value in enumerate(tools):
        tool = camel(object_of(value, f"tools[{at}]"))
        list(extras(tool, FIELDS, "tools", {}))  # refuses what Google itself would run
        for place, each in enumerate(list_of(tool.get("functionDeclarations"), f"tools[{at}].functionDeclarations")):
            yield _tool(camel(object_of(each, f"tools[{at}]")), f"tools[{at}].functionDeclarations[{place}]")


def _tool(function: Json, where: str) -> Tool:
    schema = function.get("parametersJsonSchema")
    if schema is None and function.get("parameters") is not None:
        schema = lowered(function["parameters"])
    return Tool(
        named(function, where),
        string_of(function.get("description"), f"{where}.description"),
        None if schema is None else object_of(schema, f"{where}.parameters"),
    )


def lowered(schema: Any) -> Any:  # noqa: ANN401 - any JSON value
    """A schema of Google's own kind as JSON Schema: types are in capitals, counts in strings, names in either case, and
    there is a word for what may be null.
    """
    if isinstance(schema, list):
        return [lowered(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    members: Json = {}
    for name, value in camel(schema).items():
        if name in ("properties", "$defs") and isinstance(value, dict):
            members[name] = {own: lowered(inner) for own, inner in value.items()}
        elif name in _COUNTS and isinstance(value, str) and value.isdecimal():
            members[name] = int(value)
        elif name not in ("nullable", "propertyOrdering") and (name, value) not in _OWN_FORMATS:
            members[name] = lowered(value) if name in _HOLDING else value
    if isinstance(kind := schema.get("type"), str):
        members["type"] = [kind.lower(), "null"] if schema.get("nullable") is True else kind.lower()
    return members


def tool_choice_of(value: object) -> ToolChoice | None:
    """The tool choice. Raises BadBody."""
    config = camel(object_of(value or {}, "toolConfig")).get("functionCallingConfig")
    if config is None:
        return None
    config = camel(object_of(config, "toolConfig.functionCallingConfig"))
    mode = _MODES.get(string_of(config.get("mode"), "toolConfig.functionCallingConfig.mode") or "AUTO")
    if mode is None:
        raise BadBody("toolConfig.functionCallingConfig.mode: unknown; give AUTO, ANY or NONE")
    names = strings_of(config.get("allowedFunctionNames"), "toolConfig.functionCallingConfig.allowedFunctionNames")
    return ToolChoice(mode, names)


def thinking_of(value: object) -> Thinking | None:
    """How much to think. Raises BadBody."""
    if value is None:
        return None
    config = camel(object_of(value, "generationConfig.thinkingConfig"))
    is_shown = config.get("includeThoughts") is True
    if (level := config.get("thinkingLevel")) is not None:
        effort = _LEVELS.get(string_of(level, "generationConfig.thinkingConfig.thinkingLevel").upper())
        if effort is None:
            raise BadBody("generationConfig.thinkingConfig.thinkingLevel: unknown")
        return Thinking(effort, is_shown=is_shown)
    if config.get("thinkingBudget") in (None, -1):  # as the model likes
        return Thinking(Effort.HIGH, is_shown=True) if is_shown else None
    budget = count_of(config["thinkingBudget"], "generationConfig.thinkingConfig.thinkingBudget") or 0
    return Thinking(Effort.within(budget), budget, is_shown) if budget else Thinking(Effort.NONE)


def format_of(config: Json) -> Format | None:
    """The answer's format; None where it is free. Raises BadBody."""
    schema = config.get("responseJsonSchema") or lowered(config.get("responseSchema"))
    if config.get("responseMimeType") == "text/x.enum":
        return choice_of(object_of(schema or {}, "generationConfig.responseSchema"), "generationConfig.responseSchema")
    if schema:
        schema = object_of(schema, "generationConfig.responseSchema")
        return Format(FormatKind.JSON_SCHEMA, schema=schema, strict=True)  # it has no other way
    is_json = string_of(config.get("responseMimeType"), "generationConfig.responseMimeType") == "application/json"
    return Format(FormatKind.JSON_OBJECT) if is_json else None
