"""Servers of the Model Context Protocol whose tools the provider calls itself, as Responses and Messages ask for
them.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from kinference.shapes.ir import Json, McpServer
from kinference.shapes.json_text import bool_of, list_of, object_of, string_of, strings_of
from kinference.shapes.lost import Untranslatable
from kinference.shapes.scan import BadBody, has

TOOL: Final = "mcp"
TOOLSET: Final = "mcp_toolset"
BETA: Final = b"mcp-client-2025-11-20"
"""By which Anthropic is asked for it."""
_WRITTEN: Final = b'"mcp_servers":[{"type":"url"'
_ELSEWHERE: Final = ("connector_id", "tunnel_id", "headers")
"""How Responses reaches servers that nobody else could."""


# --- Responses --------------------------------------------------------------------------------------


def of_responses(tools: Sequence[object]) -> tuple[McpServer, ...]:
    """The servers among the tools of Responses. Raises BadBody, also where one can be reached by OpenAI alone or the
    client is to be asked before a call, which Messages never does.
    """
    return tuple(
        _of_responses(tool, f"tools[{at}]")
        for at, tool in enumerate(tools)
        if isinstance(tool, dict) and tool.get("type") == TOOL
    )


def _of_responses(tool: Json, where: str) -> McpServer:
    for name in _ELSEWHERE:
        if tool.get(name):
            raise Untranslatable(f"{where}.{name}: only its own provider reaches a server so")
    if tool.get("require_approval") != "never":
        raise Untranslatable(f"{where}.require_approval: only `never` is known to other providers")
    allowed = tool.get("allowed_tools")
    if isinstance(allowed, dict):
        if allowed.get("read_only") is not None:
            raise Untranslatable(f"{where}.allowed_tools.read_only: only its own provider knows which those are")
        allowed = allowed.get("tool_names")
    return McpServer(
        _given(tool, "server_label", where),
        _given(tool, "server_url", where),
        string_of(tool.get("authorization"), f"{where}.authorization"),
        None if allowed is None else strings_of(allowed, f"{where}.allowed_tools"),
    )


def to_responses(server: McpServer) -> Json:
    """A tool of Responses."""
    tool: Json = {"type": TOOL, "server_label": server.name, "server_url": server.url}
    if server.token:
        tool["authorization"] = server.token
    if server.allowed is not None:
        tool["allowed_tools"] = list(server.allowed)
    return tool | {"require_approval": "never"}


# --- Messages ---------------------------------------------------------------------------------------


def of_messages(body: Json) -> tuple[McpServer, ...]:
    """The servers of a Messages request, each with what its toolset offers of it. Raises BadBody."""
    tools = [tool for tool in list_of(body.get("tools"), "tools") if isinstance(tool, dict)]
    toolsets = {str(tool.get("mcp_server_name")): tool for tool in tools if tool.get("type") == TOOLSET}
    given = list_of(body.get("mcp_servers"), "mcp_servers")
    servers = tuple(_of_messages(object_of(one, f"mcp_servers[{at}]"), toolsets, at) for at, one in enumerate(given))
    if unknown := toolsets.keys() - {server.name for server in servers}:
        raise BadBody(f"tools.mcp_server_name: none of mcp_servers is called {min(unknown)!r}")
    return tuple(server for server in servers if server.allowed != ())


def _of_messages(server: Json, toolsets: dict[str, Json], at: int) -> McpServer:
    where = f"mcp_servers[{at}]"
    name = _given(server, "name", where)
    older = object_of(server.get("tool_configuration") or {}, f"{where}.tool_configuration")
    allowed = _enabled(toolsets[name]) if name in toolsets else _listed(older, where)
    token = string_of(server.get("authorization_token"), f"{where}.authorization_token")
    return McpServer(name, _given(server, "url", where), token, allowed)


def _listed(configuration: Json, where: str) -> tuple[str, ...] | None:
    """What the older form offers of a server: None is all of it."""
    if bool_of(configuration.get("enabled"), f"{where}.tool_configuration.enabled") is False:
        return ()
    allowed = configuration.get("allowed_tools")
    return None if allowed is None else strings_of(allowed, f"{where}.tool_configuration.allowed_tools")


def _enabled(toolset: Json) -> tuple[str, ...] | None:
    """What a toolset offers of its server: None is all of it."""
    default = object_of(toolset.get("default_config") or {}, "tools.default_config").get("enabled")
    configs = object_of(toolset.get("configs") or {}, "tools.configs")
    states = {name: object_of(config, "tools.configs").get("enabled", default) for name, config in configs.items()}
    if default is False:
        return tuple(name for name, enabled in states.items() if enabled is True)
    if False in states.values():
        raise Untranslatable("tools.configs: no other provider can be told which tools of a server to leave alone")
    return None


def to_messages(servers: Sequence[McpServer]) -> Json:
    """The field of a Messages body."""
    return {"mcp_servers": [_to_messages(server) for server in servers]} if servers else {}


def _to_messages(server: McpServer) -> Json:
    found: Json = {"type": "url", "url": server.url, "name": server.name}
    return found | ({"authorization_token": server.token} if server.token else {})


def is_in(body: bytes) -> bool:
    """Whether a Messages body that was written here has servers."""
    return has(body, _WRITTEN)


def toolsets(servers: Sequence[McpServer]) -> Iterator[Json]:
    """The tools of a Messages body that go with it."""
    for server in servers:
        toolset: Json = {"type": TOOLSET, "mcp_server_name": server.name}
        if server.allowed is not None:
            configs = {name: {"enabled": True} for name in server.allowed}
            toolset |= {"default_config": {"enabled": False}, "configs": configs}
        yield toolset


def _given(members: Json, name: str, where: str) -> str:
    text = string_of(members.get(name), f"{where}.{name}")
    if not text:
        raise BadBody(f"{where}.{name}: missing or empty")
    return text
