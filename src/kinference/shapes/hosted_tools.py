"""Tools that a provider runs itself, left out where no destination is left that can run them: a client that offers them
beside its own goes on without, as it does where the model never calls them, and is told.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from kinference.shapes.client_tools import form_of
from kinference.shapes.ir import Json
from kinference.shapes.lost import Lost, safe
from kinference.shapes.mcp import TOOLSET
from kinference.shapes.openai_responses.client_tools import is_client_tool
from kinference.structs import Frozen
from kinference.vocabulary import Api

TRIED_MAX: Final = 16
"""Of more than this many none is tried by itself: each trial reads the body once more."""
_FUNCTIONS: Final = "functionDeclarations"
_SEARCH: Final = "web_search_options"
_SERVERS: Final = "mcp_servers"
_NAMES: Final[tuple[bytes, ...]] = (b'"tools"', b'"web_search_options"', b'"mcp_servers"')
_OWN: Final[Mapping[Api, tuple[object, ...]]] = {
    Api.OPENAI_CHAT: (None, "function", "custom"),
    Api.OPENAI_RESPONSES: ("function", "custom", "namespace", "tool_search"),
    Api.ANTHROPIC_MESSAGES: (None, "custom"),
}
"""Kinds of tools that the client runs, or that only say what there is to call."""


def may_have_hosted(body: bytes) -> bool:
    """Whether a body can have any, as a look at its bytes tells."""
    return any(name in body for name in _NAMES)


class _Hosted(Frozen, frozen=True):
    """One such tool: a field of the request, an element of its tools, or a member of an element; or several."""

    kind: str
    fields: tuple[str, ...] = ()
    elements: frozenset[int] = frozenset()
    members: tuple[int, str] | None = None


def without_hosted(body: Json, client: Api, can: Callable[[Json], bool]) -> tuple[Json, tuple[Lost, ...]]:
    """The body without those of its hosted tools with which it cannot be told to a destination, and what they were; the
    very same body where it has none, or they are not what is in the way.
    """
    hosted = list(_hosted(body, client))
    if not hosted or _is_demanded(body, _less(body, hosted)) or not can(_less(body, hosted)):
        return body, ()
    dropped = hosted
    for one in hosted if len(hosted) <= TRIED_MAX else ():
        fewer = [other for other in dropped if other is not one]
        if can(_less(body, fewer)):
            dropped = fewer
    names = dict.fromkeys(safe(one.kind) for one in dropped)
    return _less(body, dropped), tuple(Lost("dropped", "tools", name) for name in names)


def _is_demanded(body: Json, less: Json) -> bool:
    """Whether one of the tools that are left out has to be called."""
    choice, tools = body.get("tool_choice"), less.get("tools", ())
    if not isinstance(choice, dict):
        return choice == "required" and not tools
    if choice.get("type") == "tool":
        return all(tool.get("name") != choice.get("name") for tool in tools if isinstance(tool, dict))
    return not tools and choice.get("type") not in ("auto", "none")


def _hosted(body: Json, client: Api) -> Iterator[_Hosted]:
    given = body.get("tools")
    tools = given if isinstance(given, list) else []
    if client is Api.GEMINI:
        for at, tool in enumerate(tools):
            names = (
                name
                for name in (tool if isinstance(tool, dict) else ())
                if name not in (_FUNCTIONS, "function_declarations")
            )
            yield from (_Hosted(name, members=(at, name)) for name in names)
        return
    if client is Api.OPENAI_CHAT and body.get(_SEARCH) is not None:
        yield _Hosted(_SEARCH, fields=(_SEARCH,))
    sets = frozenset(at for at, tool in enumerate(tools) if isinstance(tool, dict) and tool.get("type") == TOOLSET)
    if client is Api.ANTHROPIC_MESSAGES and (sets or body.get(_SERVERS)):
        yield _Hosted(_SERVERS, fields=(_SERVERS,), elements=sets)
    for at, tool in enumerate(tools):
        if at not in sets and isinstance(tool, dict) and client in _OWN and not _is_clients(tool, client):
            yield _Hosted(str(tool.get("type")), elements=frozenset((at,)))


def _is_clients(tool: Json, client: Api) -> bool:
    """Whether the client runs it."""
    kind = tool.get("type")
    if kind in _OWN[client]:
        return True
    if client is Api.ANTHROPIC_MESSAGES:
        return form_of(tool) is not None or (isinstance(kind, str) and kind.startswith("tool_search_tool_"))
    environment = tool.get("environment")
    is_local = not isinstance(environment, dict) or environment.get("type", "local") == "local"
    return client is Api.OPENAI_RESPONSES and is_client_tool(tool) and is_local


def _less(body: Json, hosted: Sequence[_Hosted]) -> Json:
    """The body without these."""
    fields = {name for one in hosted for name in one.fields}
    elements = {at for one in hosted for at in one.elements}
    members = {one.members for one in hosted}
    less = {name: value for name, value in body.items() if name not in fields}
    tools = less.get("tools")
    if isinstance(tools, list):
        kept = [_without(tool, at, members) for at, tool in enumerate(tools) if at not in elements]
        less["tools"] = [tool for tool in kept if tool != {}]
        if not less["tools"]:
            del less["tools"]
    return less


def _without(tool: Any, at: int, members: set[tuple[int, str] | None]) -> Any:  # noqa: ANN401 - any JSON value
    if not isinstance(tool, dict):
        return tool
    return {name: value for name, value in tool.items() if (at, name) not in members}
