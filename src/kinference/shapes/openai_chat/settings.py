"""Tools, tool choice, response format and effort of a Chat Completions request."""

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from kinference.shapes.anthropic_messages.settings import thinking_of as messages_thinking
from kinference.shapes.ir import (
    CacheMark,
    Effort,
    Format,
    FormatKind,
    Grammar,
    Json,
    Thinking,
    Tool,
    ToolChoice,
    ToolMode,
)
from kinference.shapes.json_text import bool_of, count_of, list_of, object_of, string_of
from kinference.shapes.lost import Untranslatable
from kinference.shapes.scan import BadBody

EFFORTS: Final = {effort.word: effort for effort in Effort}
MESSAGES: Final = "is of an Anthropic Messages body; send that to /v1/messages"
MODES: Final = {mode.value: mode for mode in ToolMode}


def tools_of(body: Json) -> tuple[Tool, ...]:
    """The tools, also under their older name. Raises BadBody."""
    old = (_function(function, "functions") for function in list_of(body.get("functions"), "functions"))
    return (*_tools(body), *old)


def _tools(body: Json) -> Iterator[Tool]:
    for at, value in enumerate(list_of(body.get("tools"), "tools")):
        where = f"tools[{at}]"
        tool = object_of(value, where)
        if "input_schema" in tool:
            raise BadBody(f"{where}.input_schema: {MESSAGES}")
        cache = mark_of(tool)
        match tool.get("type", "function"):
            case "function":
                yield _function(tool.get("function"), f"{where}.function", cache)
            case "custom":
                custom = object_of(tool.get("custom"), f"{where}.custom")
                name = named(custom, f"{where}.custom")
                form = object_of(custom.get("format") or {}, f"{where}.custom.format")
                grammar = grammar_of(object_of(form.get("grammar") or {}, f"{where}.custom.format"), where)
                yield Tool(name, string_of(custom.get("description"), where), None, None, True, grammar, cache)
            case _:
                raise Untranslatable(f"{where}.type: a tool that its own provider runs cannot go to another")


def grammar_of(grammar: Json, where: str) -> Grammar | None:
    """What the input of a custom tool has to obey; None where anything goes. Raises BadBody."""
    definition = string_of(grammar.get("definition"), f"{where}.definition")
    return Grammar(string_of(grammar.get("syntax"), f"{where}.syntax"), definition) if definition else None


def _function(value: object, where: str, cache: CacheMark | None = None) -> Tool:
    function = object_of(value, where)
    schema = function.get("parameters")
    return Tool(
        name=named(function, where),
        description=string_of(function.get("description"), f"{where}.description"),
        schema=None if schema is None else object_of(schema, f"{where}.parameters"),
        strict=bool_of(function.get("strict"), f"{where}.strict"),
        cache=cache or mark_of(function),
    )


def named(tool: Json, where: str) -> str:
    """A tool's name. Raises BadBody."""
    if name := string_of(tool.get("name"), f"{where}.name"):
        return name
    raise BadBody(f"{where}.name: missing or empty")


def tool_choice_of(body: Json) -> ToolChoice | None:
    """The tool choice, also under its older name. Raises BadBody."""
    choice = body.get("tool_choice")
    if choice is None and (old := body.get("function_call")) is not None:
        choice = old if isinstance(old, str) else {"type": "function", "function": old}
    if choice is None:
        return None
    if isinstance(choice, str):
        if choice not in MODES:
            raise BadBody("tool_choice: unknown; give auto, none or required, or name a function")
        return ToolChoice(MODES[choice])
    choice = object_of(choice, "tool_choice")
    kind = choice.get("type")
    if kind == "allowed_tools":
        return allowed(object_of(choice.get("allowed_tools"), "tool_choice.allowed_tools"))
    if kind in ("function", "custom"):
        return ToolChoice(ToolMode.REQUIRED, (named(object_of(choice.get(kind), "tool_choice"), "tool_choice"),))
    raise Untranslatable("tool_choice: a tool that its own provider runs cannot go to another")


def allowed(choice: Json) -> ToolChoice:
    """A choice among some of the tools. Raises BadBody."""
    tools = [object_of(tool, "tool_choice.tools") for tool in list_of(choice.get("tools"), "tool_choice.tools")]
    names = (named(object_of(tool.get("function") or tool, "tool_choice.tools"), "tool_choice.tools") for tool in tools)
    return ToolChoice(MODES.get(str(choice.get("mode")), ToolMode.AUTO), tuple(names), is_list=True)


def format_of(value: object) -> Format | None:
    """The response format; None where it is plain text. Raises BadBody."""
    if value is None:
        return None
    form = object_of(value, "response_format")
    match form.get("type"):
        case "text":
            return None
        case "json_object":
            return Format(FormatKind.JSON_OBJECT)
        case "json_schema":
            return schema_format(object_of(form.get("json_schema"), "response_format.json_schema"))
        case _:
            raise Untranslatable("response_format.type: no other API has it; give text, json_object or json_schema")


def schema_format(form: Json) -> Format:
    """A format by schema, from its name, description, schema and strictness. Raises BadBody."""
    return Format(
        FormatKind.JSON_SCHEMA,
        string_of(form.get("name"), "response_format.name"),
        object_of(form.get("schema") or {}, "response_format.schema"),
        bool_of(form.get("strict"), "response_format.strict"),
        string_of(form.get("description"), "response_format.description"),
    )


def effort_of(value: object, where: str) -> Thinking | None:
    """How much to think, by OpenAI's word. Raises BadBody."""
    if value is None:
        return None
    effort = EFFORTS.get(string_of(value, where))
    if effort is None:
        raise BadBody(f"{where}: unknown; give one of {', '.join(EFFORTS)}")
    return Thinking(effort)


def thinking_of(body: Json) -> Thinking | None:
    """How much to think: in OpenAI's word, else as OpenRouter's clients say it, else as Anthropic's. Raises BadBody."""
    if body.get("reasoning_effort") is not None:
        return effort_of(body["reasoning_effort"], "reasoning_effort")
    config = object_of(body.get("reasoning") or {}, "reasoning")
    if not config:
        return messages_thinking({"thinking": body.get("thinking")})
    is_shown = not bool_of(config.get("exclude"), "reasoning.exclude")
    if bool_of(config.get("enabled"), "reasoning.enabled") is False:
        return Thinking(Effort.NONE)
    if budget := count_of(config.get("max_tokens"), "reasoning.max_tokens"):
        return Thinking(Effort.within(budget), budget, is_shown)
    thinking = effort_of(config.get("effort"), "reasoning.effort")
    if thinking is None and config.get("enabled"):
        thinking = Thinking(Effort.MEDIUM)
    return None if thinking is None else replace(thinking, is_shown=is_shown)


def mark_of(part: Json) -> CacheMark | None:
    """A cache mark in Anthropic's spelling, which clients of many gateways use, or in OpenAI's. Raises BadBody."""
    mark = part.get("cache_control") or part.get("prompt_cache_breakpoint")
    return CacheMark(string_of(mark.get("ttl"), "ttl")) if isinstance(mark, dict) else None
