"""Tools, tool choice, thinking and answer format of a Messages request."""

from collections.abc import Iterator, Sequence
from typing import Final

from kinference.shapes.client_tools import form_of
from kinference.shapes.code_execution import is_messages_tool
from kinference.shapes.ir import (
    CacheMark,
    Effort,
    Format,
    FormatKind,
    Json,
    Thinking,
    Tool,
    ToolChoice,
    ToolMode,
)
from kinference.shapes.json_text import bool_of, count_of, list_of, object_of, string_of
from kinference.shapes.lost import Untranslatable
from kinference.shapes.mcp import TOOLSET
from kinference.shapes.scan import BadBody
from kinference.shapes.web_search import is_search

CHATS: Final = "is of a Chat Completions body; send that to /v1/chat/completions"
_BY_WORD: Final = {effort.word: effort for effort in Effort}


def tools_of(value: object) -> tuple[Tool, ...]:
    """The tools. Raises BadBody."""
    return tuple(_tools(list_of(value, "tools")))


def _tools(tools: Sequence[object]) -> Iterator[Tool]:
    for at, value in enumerate(tools):
        where = f"tools[{at}]"
        tool = object_of(value, where)
        if "function" in tool:
            raise BadBody(f"{where}.function: {CHATS}")
        kind = tool.get("type")
        if is_search(tool) or is_messages_tool(tool) or is_tool_search(kind) or kind == TOOLSET:
            continue  # what a search for tools would find is offered as it is
        name = string_of(tool.get("name"), f"{where}.name")
        if not name:
            raise BadBody(f"{where}.name: missing or empty")
        about, schema = _form(tool, where)
        yield Tool(name, about, schema, strict=bool_of(tool.get("strict"), f"{where}.strict"), cache=mark_of(tool))


def _form(tool: Json, where: str) -> tuple[str, Json]:
    """What a tool that the client runs does and takes."""
    form = form_of(tool)
    if form is not None:
        return form
    if tool.get("type") not in (None, "custom") or "input_schema" not in tool:
        raise Untranslatable(f"{where}.type: only its own provider knows this kind of tool")
    about = string_of(tool.get("description"), f"{where}.description")
    return about, object_of(tool.get("input_schema"), f"{where}.input_schema")


def is_tool_search(kind: object) -> bool:
    """Whether this is what finds tools among those that are not told of at once."""
    return isinstance(kind, str) and kind.startswith("tool_search_tool_")


def choice_of(choice: Json) -> ToolChoice | None:
    """The tool choice. Raises BadBody."""
    match choice.get("type"):
        case None:
            return None
        case "auto":
            return ToolChoice(ToolMode.AUTO)
        case "none":
            return ToolChoice(ToolMode.NONE)
        case "any":
            return ToolChoice(ToolMode.REQUIRED)
        case "tool":
            return ToolChoice(ToolMode.REQUIRED, (string_of(choice.get("name"), "tool_choice.name"),))
        case _:
            raise BadBody("tool_choice.type: unknown; give auto, any, tool or none")


def parallel_of(choice: Json) -> bool | None:
    """Whether tools may be called side by side, where the client says. Raises BadBody."""
    disabled = bool_of(choice.get("disable_parallel_tool_use"), "tool_choice.disable_parallel_tool_use")
    return None if disabled is None else not disabled


def thinking_of(body: Json) -> Thinking | None:
    """How much to think, from `thinking` and `output_config.effort`. Raises BadBody."""
    config = object_of(body.get("thinking") or {}, "thinking")
    word = object_of(body.get("output_config") or {}, "output_config").get("effort")
    effort = None if word is None else _BY_WORD.get(string_of(word, "output_config.effort"))
    if word is not None and effort is None:
        raise BadBody("output_config.effort: unknown")
    match config.get("type"):
        case None:
            return None if effort is None else Thinking(effort)
        case "disabled":
            return Thinking(Effort.NONE)
        case "enabled":
            budget = count_of(config.get("budget_tokens"), "thinking.budget_tokens") or 0
            return Thinking(effort or Effort.within(budget), budget, is_shown=True)
        case _:
            return Thinking(effort or Effort.HIGH, is_shown=config.get("display") != "omitted")


def format_of(body: Json) -> Format | None:
    """The answer's format, also under its older name; None where it is free. Raises BadBody."""
    form = object_of(body.get("output_config") or {}, "output_config").get("format")
    if form is None:
        form = body.get("output_format")
    if form is None:
        return None
    form = object_of(form, "output_config.format")
    if form.get("type") != "json_schema":
        raise BadBody("output_config.format.type: unknown; give json_schema")
    schema = object_of(form.get("schema"), "output_config.format.schema")
    return Format(FormatKind.JSON_SCHEMA, schema=schema, strict=True)  # it has no other way


def mark_of(block: Json) -> CacheMark | None:
    """The cache mark of a tool or a block. Raises BadBody."""
    mark = block.get("cache_control")
    return CacheMark(string_of(mark.get("ttl"), "cache_control.ttl")) if isinstance(mark, dict) else None
