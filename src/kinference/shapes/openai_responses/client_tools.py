"""Tools of Responses that the client runs and whose form OpenAI's models alone know by heart: two shells, and patches
of files. To any other model each is a function, and its calls are items of the tool's own kind again.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from kinference.shapes.ir import Json, Text, Tool, ToolCall, ToolResult
from kinference.shapes.json_text import as_object, dumps, list_of, object_of, string_of
from kinference.shapes.lost import Untranslatable

SHELL: Final = "shell"
LOCAL_SHELL: Final = "local_shell"
APPLY_PATCH: Final = "apply_patch"
SEARCH: Final = "tool_search"
"""How a tool is called that has the client find more tools."""

_TEXT: Final[Json] = {"type": "string"}
_NUMBER: Final[Json] = {"type": "integer"}
_TEXTS: Final[Json] = {"type": "array", "items": _TEXT}
_TIMEOUT: Final[Json] = _NUMBER | {"description": "After how many milliseconds to give up."}
_PATCH: Final = (
    "For `create_file`: every line of the file, each after a `+`. For `update_file`: what changes, each place after a "
    "line `@@`: lines that stay after a space, lines that go after a `-`, lines that come after a `+`."
)


def _form(required: tuple[str, ...], members: Json) -> Json:
    return {"type": "object", "properties": members, "required": list(required)}


_FORMS: Final[Mapping[str, tuple[str, Json]]] = {
    SHELL: (
        "Runs commands in a shell, one after another, and shows what each wrote and how it ended.",
        _form(
            ("commands",),
            {
                "commands": _TEXTS,
                "timeout_ms": _TIMEOUT,
                "max_output_length": _NUMBER | {"description": "How many characters of output to show at most."},
            },
        ),
    ),
    LOCAL_SHELL: (
        "Runs a command and shows what it wrote.",
        _form(
            ("command",),
            {
                "command": _TEXTS | {"description": "The program and its arguments."},
                "env": {
                    "type": "object",
                    "additionalProperties": _TEXT,
                    "description": "Variables of its environment.",
                },
                "timeout_ms": _TIMEOUT,
                "user": _TEXT,
                "working_directory": _TEXT,
            },
        ),
    ),
    APPLY_PATCH: (
        "Creates, changes or deletes a file.",
        _form(
            ("type", "path"),
            {
                "type": {"type": "string", "enum": ["create_file", "update_file", "delete_file"]},
                "path": _TEXT | {"description": "Within the workspace."},
                "diff": _TEXT | {"description": _PATCH},
            },
        ),
    ),
}


# --- reading ----------------------------------------------------------------------------------------


def is_client_tool(tool: Mapping[str, object]) -> bool:
    """Whether it is one of these."""
    return tool.get("type") in _FORMS


def of_tool(tool: Json, where: str) -> Tool:
    """It as a function. Raises BadBody, also where a shell is the provider's."""
    kind = string_of(tool.get("type"), where)
    about, schema = _FORMS[kind]
    environment = object_of(tool.get("environment") or {}, f"{where}.environment")
    if environment.get("type", "local") != "local":
        raise Untranslatable(f"{where}.environment: only its own provider has this container")
    skills = _skills(list_of(environment.get("skills"), f"{where}.environment.skills"), where)
    return Tool(kind, "\n".join((about, *skills)), schema, form=kind)


def _skills(skills: object, where: str) -> Iterator[str]:
    for at, value in enumerate(skills if isinstance(skills, list) else ()):
        skill = object_of(value, f"{where}.environment.skills[{at}]")
        name, path, about = (string_of(skill.get(member), where) for member in ("name", "path", "description"))
        yield f"There is a skill `{name}` in {path}: {about}"


def choice_name(tool: Json) -> Json:
    """A choice of one of these with the name that it has as a function; any other stays."""
    return {"type": "function", "name": tool["type"]} if is_client_tool(tool) and not tool.get("name") else tool


def of_call(item: Json, where: str) -> ToolCall:
    """Of an item that calls one of these."""
    kind = string_of(item.get("type"), where).removesuffix("_call")
    member = "operation" if kind == APPLY_PATCH else "action"
    given = object_of(item.get(member) or {}, f"{where}.{member}")
    if kind == LOCAL_SHELL:
        given = {name: value for name, value in given.items() if name != "type"}
    arguments = {name: value for name, value in given.items() if value not in (None, {})}
    return ToolCall(string_of(item.get("call_id"), f"{where}.call_id"), kind, dumps(arguments).decode())


def of_output(item: Json, calls: Mapping[str, str], where: str) -> ToolResult:
    """Of an item with what came of such a call. `calls` are their ids by those of the items that called."""
    if item.get("type") == "local_shell_call_output":
        named = string_of(item.get("call_id") or item.get("id"), f"{where}.id")
        return ToolResult(calls.get(named, named), _said(string_of(item.get("output"), f"{where}.output")))
    call = string_of(item.get("call_id"), f"{where}.call_id")
    if item.get("type") == "apply_patch_call_output":
        status = string_of(item.get("status"), f"{where}.status")
        said = string_of(item.get("output"), f"{where}.output") or status
        return ToolResult(call, _said(said), is_error=status == "failed")
    chunks = list_of(item.get("output"), f"{where}.output")
    return ToolResult(call, _said("\n".join(_chunk(object_of(chunk, where), where) for chunk in chunks)))


def _said(text: str) -> tuple[Text, ...]:
    return (Text(text),) if text else ()


def _chunk(chunk: Json, where: str) -> str:
    """What a command wrote, and how it ended."""
    outcome = object_of(chunk.get("outcome") or {}, f"{where}.outcome")
    ended = "[it took too long]" if outcome.get("type") == "timeout" else f"[exit code {outcome.get('exit_code', 0)}]"
    said = (string_of(chunk.get(name), f"{where}.{name}").rstrip("\n") for name in ("stdout", "stderr"))
    return "\n".join(text for text in (*said, ended) if text)


# --- writing ----------------------------------------------------------------------------------------


def call_item(item_id: str, call: ToolCall, status: str) -> Json:
    """The item of a call, as far as the model filled in the form."""
    given = as_object(call.arguments) or {}
    item: Json = {"type": f"{call.form}_call", "id": item_id, "call_id": call.id, "status": status}
    if call.form == SEARCH:
        return item | {"execution": "client", "arguments": given}
    if call.form == APPLY_PATCH:
        return item | {"operation": _operation(given)}
    return item | {"action": _action(given) if call.form == SHELL else _exec(given)}


def commands_of(item: Json) -> list[str]:
    """The commands of such an item; none of any other."""
    commands: list[str] = item["action"]["commands"] if item["type"] == "shell_call" else []
    return commands


def _action(given: Json) -> Json:
    limits = {name: _count(given.get(name)) for name in ("timeout_ms", "max_output_length")}
    return {"commands": _texts(given.get("commands")), **limits}


def _exec(given: Json) -> Json:
    command, env = given.get("command"), given.get("env")
    words = ["sh", "-c", command] if isinstance(command, str) else _texts(command)
    texts = {name: str(value) for name, value in env.items()} if isinstance(env, dict) else {}
    places = {name: _text(given, name) or None for name in ("user", "working_directory")}
    return {"type": "exec", "command": words, "env": texts, "timeout_ms": _count(given.get("timeout_ms")), **places}


def _operation(given: Json) -> Json:
    kind, path = _text(given, "type") or "update_file", _text(given, "path")
    if kind == "delete_file":
        return {"type": kind, "path": path}
    return {"type": kind if kind == "create_file" else "update_file", "path": path, "diff": _text(given, "diff")}


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [str(one) for one in value] if isinstance(value, list) else []


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(given: Json, name: str) -> str:
    value = given.get(name)
    return value if isinstance(value, str) else ""
