"""A Responses request read into the one representation."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from kinference.shapes import mcp, mcp_calls, media
from kinference.shapes.code_execution import RESPONSES_TOOL, is_responses_tool
from kinference.shapes.code_execution import of_responses as of_responses_run
from kinference.shapes.extras import extras
from kinference.shapes.ir import (
    ASSISTANT,
    SYSTEM,
    USER,
    Block,
    CacheMark,
    File,
    Image,
    Json,
    Media,
    Reasoning,
    Refusal,
    Request,
    Sampling,
    Sealed,
    Text,
    ToolCall,
    ToolResult,
    Turn,
    blocks_of,
)
from kinference.shapes.json_text import bool_of, count_of, dumps, list_of, number_of, object_of, string_of
from kinference.shapes.lost import Untranslatable
from kinference.shapes.made_images import TOOL, is_maker, made
from kinference.shapes.openai_responses import client_tools
from kinference.shapes.openai_responses.client_tools import SEARCH
from kinference.shapes.openai_responses.fields import DEFAULTS, FIELDS
from kinference.shapes.openai_responses.settings import (
    format_of,
    loaded_tools,
    thinking_of,
    tool_choice_of,
    tools_of,
    verbosity_of,
)
from kinference.shapes.scan import BadBody
from kinference.shapes.seals import unsealed
from kinference.shapes.tooling import whole_name
from kinference.shapes.web_search import check_choice, made_of_responses, of_responses
from kinference.vocabulary import Api

_ROLES: Final = {"user": USER, "assistant": ASSISTANT, "system": SYSTEM, "developer": SYSTEM}

_SEARCHES: Final = (f"{SEARCH}_call", f"{SEARCH}_output")
_NO_TURNS = ("additional_tools", mcp_calls.RESPONSES_LISTING)
"""Items that say what there is to call, and nothing else."""

_CLIENT_CALLS = ("shell_call", "local_shell_call", "apply_patch_call")
_CLIENT_OUTPUTS: Final = tuple(f"{kind}_output" for kind in _CLIENT_CALLS)

LOGPROBS: Final = "message.output_text.logprobs"


def parse_request(body: Json) -> Request:
    """Read a request. Raises BadBody."""
    turns = list(_joined(_turns(body.get("input"))))
    leading = next((at for at, turn in enumerate(turns) if turn.role is not SYSTEM), len(turns))
    instructions = string_of(body.get("instructions"), "instructions")
    said = (block for turn in turns[:leading] for block in turn.blocks if isinstance(block, Text))
    offered = (*tools_of(body.get("tools")), *loaded_tools(body.get("input")))
    tools = tuple({tool.name: tool for tool in offered}.values())
    search = of_responses(list_of(body.get("tools"), "tools"), FIELDS)
    given = [tool for tool in list_of(body.get("tools"), "tools") if isinstance(tool, dict)]
    makers, runners = [*filter(is_maker, given)], [*filter(is_responses_tool, given)]
    is_demanded = body.get("tool_choice") == "required" and not tools
    servers = mcp.of_responses(given)
    check_choice(is_demanded=is_demanded and (search is not None or bool(runners) or bool(servers)))
    details = [name for tool in makers for name in extras(tool, FIELDS, TOOL, {})]
    for tool in runners:
        container = object_of(tool.get("container") or {}, "tools.container")
        details += extras(container, FIELDS, f"{RESPONSES_TOOL}.container", {})
    return Request(
        model=string_of(body.get("model"), "model"),
        system=(*((Text(instructions),) if instructions else ()), *said),
        turns=tuple(turns[leading:]),
        tools=tools,
        mcp=servers,
        runs_code=bool(runners),
        wants_images=bool(makers),
        web_search=search,
        tool_choice=tool_choice_of(body.get("tool_choice")) if tools else None,
        parallel_tools=bool_of(body.get("parallel_tool_calls"), "parallel_tool_calls"),
        max_tokens=count_of(body.get("max_output_tokens"), "max_output_tokens"),
        sampling=Sampling(number_of(body.get("temperature"), "temperature"), number_of(body.get("top_p"), "top_p")),
        thinking=thinking_of(body.get("reasoning")),
        format=format_of(body.get("text")),
        is_streaming=bool(bool_of(body.get("stream"), "stream")),
        wants_usage=True,
        end_user=string_of(body.get("safety_identifier") or body.get("user"), "user"),
        service_tier=string_of(body.get("service_tier"), "service_tier"),
        cache_key=string_of(body.get("prompt_cache_key"), "prompt_cache_key"),
        verbosity=verbosity_of(body.get("text")),
        logprobs=_logprobs(body),
        extras=(*extras(body, FIELDS, "", DEFAULTS), *details),
    )


def _logprobs(body: Json) -> int | None:
    """Either field asks for them."""
    tops = count_of(body.get("top_logprobs"), "top_logprobs")
    is_included = LOGPROBS in list_of(body.get("include"), "include")
    return tops or 0 if tops or is_included else None


def _turns(value: object) -> Iterator[Turn]:
    if isinstance(value, str):
        yield Turn(USER, (Text(value),) if value else ())
        return
    items = list_of(value, "input")
    if not items:
        raise BadBody("input: empty; the body has to carry its prompt")
    calls: dict[str, str] = {}
    for at, one in enumerate(items):
        item = object_of(one, f"input[{at}]")
        if item.get("type") in _CLIENT_OUTPUTS:
            yield Turn(USER, (client_tools.of_output(item, calls, f"input[{at}]"),))
        elif item.get("type") in _CLIENT_CALLS:
            call = client_tools.of_call(item, f"input[{at}]")
            calls[string_of(item.get("id"), f"input[{at}].id")] = call.id
            yield Turn(ASSISTANT, (call,))
        elif not _is_providers_search(item) and item.get("type") not in _NO_TURNS:
            yield _turn(item, f"input[{at}]")


def _is_providers_search(item: Json) -> bool:
    """Whether this is of a search for tools that the provider made itself: all of them are offered."""
    return item.get("type") in _SEARCHES and item.get("execution") == "server"


def _joined(turns: Iterable[Turn]) -> Iterator[Turn]:
    """What the assistant said, thought and called in one go is one turn."""
    for role, group in groupby(turns, key=lambda turn: turn.role):
        if role is ASSISTANT:
            yield Turn(role, tuple(blocks_of(group)))
        else:
            yield from group


def _turn(item: Json, where: str) -> Turn:
    kind = item.get("type", "message")
    match kind:
        case "message":
            role = _ROLES.get(str(item.get("role")))
            if role is None:
                raise BadBody(f"{where}.role: unknown; give system, developer, user or assistant")
            return Turn(role, _content(item.get("content"), where))
        case "function_call" | "custom_tool_call":
            return Turn(ASSISTANT, (_call(item, where),))
        case "function_call_output" | "custom_tool_call_output":
            call = string_of(item.get("call_id"), f"{where}.call_id")
            return Turn(USER, (ToolResult(call, _content(item.get("output"), where)),))
        case "tool_search_call":
            return Turn(ASSISTANT, (_search(item, where),))
        case "tool_search_output":
            call, found = string_of(item.get("call_id"), f"{where}.call_id"), loaded_tools([item])
            names = ", ".join(tool.name for tool in found)
            return Turn(USER, (ToolResult(call, (Text(f"Tools found: {names or 'none'}"),)),))
        case "reasoning":
            return Turn(ASSISTANT, tuple(_thought(item, where)))
        case "mcp_approval_response":
            return Turn(USER, (mcp_calls.asked_in_words(item),))
        case _:
            return Turn(ASSISTANT, (_providers(item, where),))


def _providers(item: Json, where: str) -> Block:
    """What the provider did itself, or asked to be allowed to do."""
    match item.get("type"):
        case "image_generation_call" if item.get("result"):
            return made(string_of(item["result"], f"{where}.result"))
        case "code_interpreter_call":
            return of_responses_run(item)
        case "web_search_call":
            return made_of_responses(item)
        case "mcp_call":
            return mcp_calls.call_of_responses(item)
        case "mcp_approval_request":
            return mcp_calls.asked_in_words(item)
        case _:
            raise Untranslatable(f"{where}.type: only its own provider knows this kind of item")


def _search(item: Json, where: str) -> ToolCall:
    """A call for more tools, whose arguments are an object."""
    given = item.get("arguments")
    arguments = given if isinstance(given, str) else dumps(given or {}).decode()
    return ToolCall(string_of(item.get("call_id"), f"{where}.call_id"), SEARCH, arguments)


def _call(item: Json, where: str) -> ToolCall:
    call, name = string_of(item.get("call_id"), f"{where}.call_id"), string_of(item.get("name"), f"{where}.name")
    name = whole_name(string_of(item.get("namespace"), f"{where}.namespace"), name)
    if item.get("type") == "custom_tool_call":
        return ToolCall(call, name, string_of(item.get("input"), f"{where}.input"), is_free_form=True)
    return ToolCall(call, name, string_of(item.get("arguments"), f"{where}.arguments"))


def _thought(item: Json, where: str) -> Iterator[Reasoning | Sealed]:
    parts = [*list_of(item.get("summary"), f"{where}.summary"), *list_of(item.get("content"), f"{where}.content")]
    texts = (object_of(part, where).get("text") for part in parts)
    text = "\n".join(text for text in texts if isinstance(text, str))
    content = string_of(item.get("encrypted_content"), f"{where}.encrypted_content")
    if content:
        yield unsealed(content, text) or Sealed(content, Api.OPENAI_RESPONSES)
    elif text:
        yield Reasoning(text)


def _content(content: object, where: str) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(content),) if content else ()
    parts = list_of(content, f"{where}.content")
    blocks = (_part(object_of(part, where), f"{where}.content[{at}]") for at, part in enumerate(parts))
    return tuple(block for block in blocks if not isinstance(block, Text) or block.text)


def _part(part: Json, where: str) -> Block:
    mark = part.get("prompt_cache_breakpoint")
    cache = CacheMark(string_of(mark.get("ttl"), where)) if isinstance(mark, dict) else None
    match part.get("type"):
        case "input_text" | "output_text" | "text":
            return Text(string_of(part.get("text"), f"{where}.text"), cache)
        case "refusal":
            return Refusal(string_of(part.get("refusal"), f"{where}.refusal"))
        case "input_image":
            detail = string_of(part.get("detail"), f"{where}.detail")
            if file_id := part.get("file_id"):
                return Image(Media(file_id=string_of(file_id, f"{where}.file_id")), detail, cache)
            source = media.from_url(string_of(part.get("image_url"), f"{where}.image_url"), where)
            return Image(media.image(source, where), detail, cache)
        case "input_file":
            return _file(part, where, cache)
        case _:
            raise BadBody(f"{where}.type: unknown; give input_text, input_image or input_file")


def _file(part: Json, where: str, cache: CacheMark | None) -> File:
    name = string_of(part.get("filename"), f"{where}.filename")
    if file_id := part.get("file_id"):
        return File(Media(file_id=string_of(file_id, f"{where}.file_id")), name, cache=cache)
    if url := part.get("file_url"):
        return File(media.from_url(string_of(url, f"{where}.file_url"), where), name, cache=cache)
    source = media.from_data(string_of(part.get("file_data"), f"{where}.file_data"), where)
    if source.mime.startswith("text/"):
        return File(Media(), name, media.decoded_text(source.data, where), cache=cache)
    return File(source, name, cache=cache)
