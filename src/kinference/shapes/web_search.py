"""A search of the web that the provider makes itself, asked for in every API's form and written in every other's; and
those that it made.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from kinference.shapes.concepts import Fields
from kinference.shapes.extras import extras
from kinference.shapes.ir import Block, Json, Searched, Text, Turn, WebSearch
from kinference.shapes.json_text import bool_of, count_of, object_of, string_of, strings_of
from kinference.shapes.lost import Untranslatable

MESSAGES_TYPE: Final = "web_search_20250305"
NAME: Final = "web_search"
_LOCATED: Final = ("city", "country", "region", "timezone")
RESPONSES_ITEM: Final = "web_search_call"
_FOUND: Final = "web_search_tool_result"
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


# --- searches that were made ------------------------------------------------------------------------


def made_of_messages(block: Json) -> Searched | None:
    """Of a block that searches, or has what was found; None of any other."""
    given = block.get("input")
    if block.get("type") == "server_tool_use" and block.get("name") == NAME:
        query = given.get("query") if isinstance(given, dict) else None
        return Searched((query,) if isinstance(query, str) else ())
    if block.get("type") == _FOUND:
        content = block.get("content")
        found = (page for page in (content if isinstance(content, list) else ()) if isinstance(page, dict))
        return Searched(pages=tuple(_page(page) for page in found))
    return None


def made_of_responses(item: Json) -> Searched:
    """Of an item that searched, opened a page or looked for something in it."""
    action = item.get("action")
    members = action if isinstance(action, dict) else {}
    several, sources = members.get("queries"), members.get("sources")
    asked = [*(several if isinstance(several, list) else ()), *(() if several else (members.get("query"),))]
    found = (page for page in (sources if isinstance(sources, list) else ()) if isinstance(page, dict))
    asked += [members.get("url"), members.get("pattern")]
    return Searched(tuple(one for one in asked if isinstance(one, str) and one), tuple(_page(page) for page in found))


def made_to_responses(item_id: str, made: Searched, status: str = "completed") -> Json:
    """An item that searched."""
    action = {"type": "search", "query": made.queries[0], "queries": list(made.queries)}
    return {"id": item_id, "type": RESPONSES_ITEM, "status": status, "action": action}


def in_words(turns: Iterable[Turn]) -> Iterator[Turn]:
    """The turns with earlier searches as text: their own form means something to their own provider alone."""
    for turn in turns:
        is_told = any(type(block) is Searched for block in turn.blocks)
        if not is_told:
            yield turn
        elif blocks := tuple(_told(turn.blocks)):
            yield replace(turn, blocks=blocks)


def _told(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        if type(block) is not Searched:
            yield block
            continue
        if block.queries:
            yield Text(f"[searched the web for: {'; '.join(block.queries)}]")
        if block.pages:
            yield Text("[found]\n" + "\n".join(block.pages))


def _page(page: Json) -> str:
    title, url = page.get("title"), page.get("url")
    return " ".join(text for text in (title, url) if isinstance(text, str) and text)


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
