"""A Messages request read into the one representation."""

from collections.abc import Iterator, Sequence
from typing import Final

from kinference.shapes import mcp, mcp_calls, media
from kinference.shapes.anthropic_messages.fields import DEFAULTS, FIELDS
from kinference.shapes.anthropic_messages.settings import (
    CHATS,
    choice_of,
    format_of,
    is_tool_search,
    mark_of,
    parallel_of,
    thinking_of,
    tools_of,
)
from kinference.shapes.code_execution import MESSAGES_NAME, is_messages_tool
from kinference.shapes.code_execution import of_messages as of_messages_run
from kinference.shapes.extras import extras
from kinference.shapes.ir import (
    ASSISTANT,
    SYSTEM,
    USER,
    Block,
    File,
    Image,
    Json,
    Media,
    Reasoning,
    Request,
    Sampling,
    Sealed,
    Searched,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from kinference.shapes.json_text import (
    bool_of,
    count_of,
    dumps,
    list_of,
    number_of,
    object_of,
    string_of,
    strings_of,
)
from kinference.shapes.lost import Untranslatable
from kinference.shapes.scan import BadBody
from kinference.shapes.seals import unsealed
from kinference.shapes.web_search import NAME, check_choice, made_of_messages, of_messages
from kinference.vocabulary import Api

_BILLING: Final = "x-anthropic-billing-header"
"""A system text with a hash of its own in every request, which no other provider's cache survives."""
_ROLES: Final = {"user": USER, "assistant": ASSISTANT, "system": SYSTEM}


def parse_request(body: Json) -> Request:
    """Read a request. Raises BadBody."""
    tools = tools_of(body.get("tools"))
    choice = object_of(body.get("tool_choice") or {}, "tool_choice")
    output = object_of(body.get("output_config") or {}, "output_config")
    metadata = object_of(body.get("metadata") or {}, "metadata")
    search = of_messages(list_of(body.get("tools"), "tools"), FIELDS)
    runs_code = any(isinstance(tool, dict) and is_messages_tool(tool) for tool in list_of(body.get("tools"), "tools"))
    is_demanded = choice.get("name") in (NAME, MESSAGES_NAME) or (choice.get("type") == "any" and not tools)
    servers = mcp.of_messages(body)
    check_choice(is_demanded=is_demanded and (runs_code or search is not None or bool(servers)))
    return Request(
        model=string_of(body.get("model"), "model"),
        system=tuple(_system(body.get("system"))),
        turns=tuple(_turns(list_of(body.get("messages"), "messages"))),
        tools=tools,
        web_search=search,
        mcp=servers,
        runs_code=runs_code,
        tool_choice=choice_of(choice) if tools else None,
        parallel_tools=parallel_of(choice),
        max_tokens=count_of(body.get("max_tokens"), "max_tokens"),
        sampling=Sampling(
            number_of(body.get("temperature"), "temperature"),
            number_of(body.get("top_p"), "top_p"),
            number_of(body.get("top_k"), "top_k"),
        ),
        stop=strings_of(body.get("stop_sequences"), "stop_sequences"),
        thinking=thinking_of(body),
        format=format_of(body),
        is_streaming=bool(bool_of(body.get("stream"), "stream")),
        wants_usage=True,
        end_user=string_of(metadata.get("user_id"), "metadata.user_id"),
        service_tier=string_of(body.get("service_tier"), "service_tier"),
        extras=(
            *extras(body, FIELDS, "", DEFAULTS),
            *extras(output, FIELDS, "output_config", DEFAULTS),
            *_only_claudes(body),
        ),
    )


def _only_claudes(body: Json) -> Iterator[str]:
    """A way to think that no other model has, which is to think all the same."""
    thinking = body.get("thinking")
    if isinstance(thinking, dict) and thinking.get("type") == "between_tools":
        yield "thinking.type"


def _system(value: object) -> Iterator[Text]:
    if isinstance(value, str):
        if value:
            yield Text(value)
        return
    for at, block in enumerate(list_of(value, "system")):
        part = object_of(block, f"system[{at}]")
        text = string_of(part.get("text"), f"system[{at}].text")
        if text and not text.startswith(_BILLING):
            yield Text(text, mark_of(part))


def _turns(messages: Sequence[object]) -> Iterator[Turn]:
    if not messages:
        raise BadBody("messages: empty; the body has to carry its prompt")
    for at, value in enumerate(messages):
        where = f"messages[{at}]"
        message = object_of(value, where)
        role = _ROLES.get(str(message.get("role")))
        if message.get("role") == "tool":
            raise BadBody(f"{where}.role: {CHATS}")
        if role is None:
            raise BadBody(f"{where}.role: unknown; give user or assistant")
        yield Turn(role, _content(message.get("content"), where))


def _content(content: object, where: str) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(content),) if content else ()
    blocks: list[Block] = []
    for at, value in enumerate(list_of(content, f"{where}.content")):
        if type(value) is dict and (plain := _plain(value)) is not None:
            blocks.append(plain)
            continue
        place = f"{where}.content[{at}]"
        given = object_of(value, place)
        block = _block(given, place)
        if not isinstance(block, Text) or block.text:
            blocks.append(block)
        if given.get("type") == "document":
            blocks += _beside(given, place)
    return tuple(blocks)


def _plain(block: Json) -> Block | None:
    """A block as most are, of a text, of a call or of its result in words; None of any other."""
    kind, said = block.get("type"), block.get("content")
    if kind == "text":
        text = block.get("text")
        return Text(text, mark_of(block)) if type(text) is str and text else None
    if kind == "tool_use":
        call, name, given = block.get("id"), block.get("name"), block.get("input")
        if type(call) is str and type(name) is str and type(given) is dict:
            return ToolCall(call, name, dumps(given).decode(), cache=mark_of(block))
    elif kind == "tool_result" and type(said) is str and type(call := block.get("tool_use_id")) is str:
        return ToolResult(call, (Text(said),) if said else (), bool(block.get("is_error")), mark_of(block))
    return None


def _beside(document: Json, where: str) -> Iterator[Text | Image]:
    """What no other API has within a document: what is said about it where it is no text itself, and the images of one
    that is made of blocks.
    """
    source = object_of(document.get("source"), f"{where}.source")
    context = string_of(document.get("context"), f"{where}.context")
    if context and source.get("type") != "text":
        yield Text(context)
    if source.get("type") == "content":
        yield from (block for block in _content(source.get("content"), where) if isinstance(block, Image))


def _block(block: Json, where: str) -> Block:
    match block.get("type"):
        case "text":
            return Text(string_of(block.get("text"), f"{where}.text"), mark_of(block))
        case "tool_use":
            arguments = dumps(object_of(block.get("input") or {}, f"{where}.input")).decode()
            call, name = string_of(block.get("id"), f"{where}.id"), string_of(block.get("name"), f"{where}.name")
            return ToolCall(call, name, arguments, cache=mark_of(block))
        case "tool_result":
            call = string_of(block.get("tool_use_id"), f"{where}.tool_use_id")
            content = _content(block.get("content"), where)
            return ToolResult(call, content, bool(block.get("is_error")), mark_of(block))
        case "thinking":
            return _thought(block, where)
        case "redacted_thinking":
            data = string_of(block.get("data"), f"{where}.data")
            return unsealed(data, "") or Sealed(data, Api.ANTHROPIC_MESSAGES)
        case "image":
            source = _source(object_of(block.get("source"), f"{where}.source"), where)
            return Image(media.image(source, where), cache=mark_of(block))
        case "document":
            return _document(block, where)
        case "search_result":
            return _search_result(block, where)
        case "tool_reference":
            return Text(string_of(block.get("tool_name"), f"{where}.tool_name"))
        case "image_url" | "input_audio":
            raise BadBody(f"{where}.type: {CHATS}")
        case _:
            return _providers(block, where)


def _providers(block: Json, where: str) -> Block:
    """What the provider did itself: searches, code and what came of it, calls of servers."""
    kind = block.get("type")
    if kind == "tool_search_tool_result" or (kind == "server_tool_use" and is_tool_search(block.get("name"))):
        return Searched()
    done = made_of_messages(block) or of_messages_run(block) or mcp_calls.of_messages(block)
    if done is None:
        raise Untranslatable(f"{where}.type: only its own provider knows this kind of block")
    return done


def _thought(block: Json, where: str) -> Reasoning | Sealed:
    text = string_of(block.get("thinking"), f"{where}.thinking")
    signature = string_of(block.get("signature"), f"{where}.signature")
    issuer = Api.ANTHROPIC_MESSAGES if signature else None
    return unsealed(signature, text) or Reasoning(text, signature, issuer)


def _source(source: Json, where: str) -> Media:
    match source.get("type"):
        case "base64":
            data = media.plain_base64(string_of(source.get("data"), f"{where}.source.data"), where)
            return Media(mime=media.normal(string_of(source.get("media_type"), where)), data=data)
        case "url":
            return media.from_url(string_of(source.get("url"), f"{where}.source.url"), where)
        case "file":
            return Media(file_id=string_of(source.get("file_id"), f"{where}.source.file_id"))
        case _:
            raise BadBody(f"{where}.source.type: unknown; give base64, url or file")


def _document(block: Json, where: str) -> File:
    source = object_of(block.get("source"), f"{where}.source")
    name = string_of(block.get("title"), f"{where}.title")
    cites = object_of(block.get("citations") or {}, f"{where}.citations").get("enabled") is True
    context = string_of(block.get("context"), f"{where}.context")
    mark = mark_of(block)
    if source.get("type") == "text":
        text = string_of(source.get("data"), f"{where}.source.data")
        return File(Media(), name, f"{context}\n{text}" if context else text, cites, mark)
    if source.get("type") == "content":
        return File(Media(), name, _text(source.get("content"), where), cites, mark)
    return File(_source(source, where), name, cites=cites, cache=mark)


def _search_result(block: Json, where: str) -> Text | File:
    """A result that the client found: its title, its address and its text."""
    title, source = string_of(block.get("title"), where), string_of(block.get("source"), where)
    said, mark = f"{source}\n{_text(block.get('content'), where)}", mark_of(block)
    if object_of(block.get("citations") or {}, f"{where}.citations").get("enabled") is True:
        return File(Media(), title, said, cites=True, cache=mark)
    return Text(f"{title}\n{said}", mark)


def _text(content: object, where: str) -> str:
    return "\n".join(block.text for block in _content(content, where) if isinstance(block, Text))
