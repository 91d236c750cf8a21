"""A search of the web that the provider makes itself, asked for in every API's form and written in every other's."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kinference.shapes.concepts import Fields
from kinference.shapes.extras import extras
from kinference.shapes.ir import Json, WebSearch
from kinference.shapes.json_text import bool_of, count_of, object_of, string_of, strings_of
from kinference.shapes.lost import Untranslatable

MESSAGES_TYPE: Final = "web_search_20250305"
NAME: Final = "web_search"
_LOCATED: Final = ("city", "country", "region", "timezone")
_SEARCHES: Final = "web_search"
"""How the types of these tools begin, whatever their version."""


def is_search(tool: Mapping[str, Any]) -> bool:
    """Whether a tool of Messages or Responses is a search of the web."""
    kind = tool.get("type")
    return isinstance(kind, str) and (kind == _SEARCHES or kind.startswith(f"{_SEARCHES}_"))


# --- reading ----------------------------------------------------------------------------------------


def of_chat(value: object, fields: Fields) -> WebSearch | None:
    """From Chat's options. Raises BadBody."""
    if value is None:
        return None
    options = object_of(value, "web_search_options")
    where = object_of(options.get("user_location") or {}, "web_search_options.user_location")
    size = string_of(options.get("search_context_size"), "web_search_options.search_context_size")
    return WebSearch(
        place=_place(object_of(where.get("approximate") or {}, "web_search_options.user_location")),
        size=size,
        extras=tuple(extras(options, fields, "web_search_options", {})),
    )


def of_responses(tools: Iterable[object], fields: Fields) -> WebSearch | None:
    """From a tool of Responses. Raises BadBody."""
    for tool in _searches(tools):
        filters = object_of(tool.get("filters") or {}, "tools.filters")
        return WebSearch(
            strings_of(filters.get("allowed_domains"), "tools.filters.allowed_domains"),
            place=_place(object_of(tool.get("user_location") or {}, "tools.user_location")),
            size=string_of(tool.get("search_context_size"), "tools.search_context_size"),
            is_cached=bool_of(tool.get("external_web_access"), "tools.external_web_access") is False,
            extras=tuple(extras(tool, fields, NAME, {})),
        )
    return None


def of_messages(tools: Iterable[object], fields: Fields) -> WebSearch | None:
    """From a tool of Messages. Raises BadBody."""
    for tool in _searches(tools):
        return WebSearch(
            strings_of(tool.get("allowed_domains"), "tools.allowed_domains"),
            strings_of(tool.get("blocked_domains"), "tools.blocked_domains"),
            _place(object_of(tool.get("user_location") or {}, "tools.user_location")),
            uses=count_of(tool.get("max_uses"), "tools.max_uses"),
            extras=tuple(extras(tool, fields, NAME, {})),
        )
    return None


def of_gemini(value: object, fields: Fields) -> WebSearch | None:
    """From Google's own search, whose members are in camel case. Raises BadBody."""
    if value is None:
        return None
    search = object_of(value, "tools.googleSearch")
    return WebSearch(
        blocked=strings_of(search.get("excludeDomains"), "tools.googleSearch.excludeDomains"),
        extras=tuple(extras(search, fields, "googleSearch", {})),
    )


def check_choice(*, is_demanded: bool) -> None:
    """Raise Untranslatable where the client demands that the provider search or run code."""
    if is_demanded:
        raise Untranslatable("tool_choice: no other provider can be made to call a tool of its own")


def _searches(tools: Iterable[object]) -> Iterable[Json]:
    return (tool for tool in tools if isinstance(tool, dict) and is_search(tool))


def _place(members: Json) -> Json:
    return {name: text for name in _LOCATED if (text := string_of(members.get(name), f"user_location.{name}"))}


# --- writing ----------------------------------------------------------------------------------------


def to_chat(search: WebSearch) -> Json:
    """Chat's options."""
    where = {"user_location": {"type": "approximate", "approximate": search.place}} if search.place else {}
    return _sized(search) | where


def to_responses(search: WebSearch) -> Json:
    """A tool of Responses."""
    filters = {"filters": {"allowed_domains": list(search.allowed)}} if search.allowed else {}
    return {"type": "web_search"} | filters | _sized(search) | _located(search)


def to_messages(search: WebSearch) -> Json:
    """A tool of Messages."""
    tool: Json = {"type": MESSAGES_TYPE, "name": NAME}
    if search.allowed:
        tool["allowed_domains"] = list(search.allowed)
    elif search.blocked:
        tool["blocked_domains"] = list(search.blocked)
    return tool | ({"max_uses": search.uses} if search.uses else {}) | _located(search)


def _sized(search: WebSearch) -> Json:
    return {"search_context_size": search.size} if search.size else {}


def _located(search: WebSearch) -> Json:
    return {"user_location": {"type": "approximate", **search.place}} if search.place else {}
