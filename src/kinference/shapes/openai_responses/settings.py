"""Tools, tool choice, text format and reasoning of a Responses request."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from kinference.shapes.ir import Format, FormatKind, Json, Thinking, Tool, ToolChoice, ToolMode
from kinference.shapes.json_text import bool_of, list_of, object_of, string_of
from kinference.shapes.lost import Untranslatable
from kinference.shapes.made_images import is_maker
from kinference.shapes.mcp import TOOL as MCP
from kinference.shapes.openai_chat.settings import MODES, allowed, effort_of, grammar_of, named, schema_format
from kinference.shapes.openai_responses.client_tools import SEARCH, choice_name, is_client_tool, of_tool
from kinference.shapes.scan import BadBody
from kinference.shapes.tooling import whole_name
from kinference.shapes.web_search import is_search

LOADING: Final = ("tool_search_output", "additional_tools")
"""Items that bring tools."""


def tools_of(value: object) -> tuple[Tool, ...]:
    """The tools. Raises BadBody."""
    return tuple(_tools(list_of(value, "tools"), "tools"))


def loaded_tools(items: object) -> Iterator[Tool]:
    """Those that came within the conversation, as somebody found them. Raises BadBody."""
    for at, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, dict) and item.get("type") in LOADING:
            where = f"input[{at}].tools"
            yield from _tools(list_of(item.get("tools"), where), where)


def _tools(tools: Sequence[object], place: str) -> Iterator[Tool]:
    for at, value in enumerate(tools):
        where = f"{place}[{at}]"
        tool = object_of(value, where)
        match tool.get("type"):
            case "function" | "custom":
                yield _tool(tool, where)
            case "namespace":
                inner = _tools(list_of(tool.get("tools"), f"{where}.tools"), f"{where}.tools")
                yield from _within(inner, named(tool, where), string_of(tool.get("description"), where))
            case "tool_search" if tool.get("execution") == "client":
                yield replace(_tool({"name": SEARCH, **tool}, where), form=SEARCH)
            case "tool_search":
                pass  # all that could be found is offered at once
            case _ if is_client_tool(tool):
                yield of_tool(tool, where)
            case "code_interpreter":
                _check_container(tool.get("container"), where)
            case _ if is_search(tool) or is_maker(tool) or tool.get("type") == MCP:
                pass
            case _:
                raise Untranslatable(f"{where}.type: a tool that its own provider runs cannot go to another")


def _check_container(container: object, where: str) -> None:
    if isinstance(container, str) or (isinstance(container, dict) and container.get("file_ids")):
        raise Untranslatable(f"{where}.container: only its own provider holds it")


def _within(tools: Iterable[Tool], namespace: str, about: str) -> Iterator[Tool]:
    """The tools of a namespace, each by a name with it and with what is said of all."""
    for tool in tools:
        described = "\n\n".join(text for text in (about, tool.description) if text)
        yield replace(tool, name=whole_name(namespace, tool.name), description=described, namespace=namespace)


def _tool(tool: Json, where: str) -> Tool:
    name, description = named(tool, where), string_of(tool.get("description"), f"{where}.description")
    if tool["type"] == "custom":
        form = object_of(tool.get("format") or {}, f"{where}.format")
        return Tool(name, description, is_free_form=True, grammar=grammar_of(form, f"{where}.format"))
    schema = tool.get("parameters")
    return Tool(
        name,
        description,
        None if schema is None else object_of(schema, f"{where}.parameters"),
        bool_of(tool.get("strict"), f"{where}.strict"),
    )


def tool_choice_of(value: object) -> ToolChoice | None:
    """The tool choice. Raises BadBody."""
    if value is None:
        return None
    if isinstance(value, str):
        if value not in MODES:
            raise BadBody("tool_choice: unknown; give auto, none or required, or name a function")
        return ToolChoice(MODES[value])
    choice = choice_name(object_of(value, "tool_choice"))
    match choice.get("type"):
        case "function" | "custom":
            return ToolChoice(ToolMode.REQUIRED, (named(choice, "tool_choice"),))
        case "allowed_tools":
            tools = [object_of(tool, "tool_choice.tools") for tool in list_of(choice.get("tools"), "tool_choice.tools")]
            return allowed(choice | {"tools": [*map(choice_name, tools)]})
        case _:
            raise Untranslatable("tool_choice.type: a tool that its own provider runs cannot go to another")


def format_of(value: object) -> Format | None:
    """The answer's format; None where it is plain text. Raises BadBody."""
    form = _text(value).get("format")
    if form is None:
        return None
    form = object_of(form, "text.format")
    match form.get("type"):
        case "text":
            return None
        case "json_object":
            return Format(FormatKind.JSON_OBJECT)
        case "json_schema":
            return schema_format(form)
        case _:
            raise BadBody("text.format.type: unknown; give text, json_object or json_schema")


def verbosity_of(value: object) -> str:
    """How much to say. Raises BadBody."""
    return string_of(_text(value).get("verbosity"), "text.verbosity")


def _text(value: object) -> Json:
    return object_of(value or {}, "text")


def thinking_of(value: object) -> Thinking | None:
    """How much to think. Raises BadBody."""
    config = object_of(value or {}, "reasoning")
    thinking = effort_of(config.get("effort"), "reasoning.effort")
    is_shown = bool(config.get("summary") or config.get("generate_summary"))
    return None if thinking is None else replace(thinking, is_shown=is_shown)
