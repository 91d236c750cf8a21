"""A Chat Completions request read into the one representation."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from kinference.shapes import made_images, media, web_search
from kinference.shapes.extras import extras
from kinference.shapes.ir import (
    ASSISTANT,
    SYSTEM,
    USER,
    Audio,
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
)
from kinference.shapes.json_text import bool_of, count_of, list_of, number_of, object_of, string_of, strings_of
from kinference.shapes.openai_chat.answer import geminis_signature
from kinference.shapes.openai_chat.fields import DEFAULTS, FIELDS
from kinference.shapes.openai_chat.settings import MESSAGES, format_of, mark_of, thinking_of, tool_choice_of, tools_of
from kinference.shapes.scan import BadBody
from kinference.shapes.seals import unsealed
from kinference.vocabulary import Api

ANSWERS_MAX: Final = 128
_SYSTEM = ("system", "developer")
_CALL = ("id", "type", "function")
_SAMPLING: Final = Sampling.__struct_fields__
_UNSHAPED: Final = Sampling()
_USUAL: Final = frozenset(
    ("model", "messages", "max_tokens", "max_completion_tokens", "stream", "tools", "functions", *_SAMPLING)
)
"""Fields beside which most bodies have none."""


def parse_request(body: Json) -> Request:
    """Read a request. Raises BadBody."""
    if body.get("system"):
        raise BadBody(f"system: {MESSAGES}")
    turns = list(_turns(list_of(body.get("messages"), "messages")))
    leading = next((at for at, turn in enumerate(turns) if turn.role is not SYSTEM), len(turns))
    request = Request(
        model=string_of(body.get("model"), "model"),
        system=tuple([block for turn in turns[:leading] for block in turn.blocks if isinstance(block, Text)]),
        is_system_named=any(turn.name for turn in turns[:leading]),
        turns=tuple(turns[leading:]),
        tools=tools_of(body) if "tools" in body or "functions" in body else (),
        max_tokens=_cap(body),
        sampling=sampling_of(body),
        is_streaming=bool(bool_of(body.get("stream"), "stream")),
    )
    return request if body.keys() <= _USUAL else _with_settings(request, body)


def _with_settings(request: Request, body: Json) -> Request:
    """With what few ask for."""
    stream_options = object_of(body.get("stream_options") or {}, "stream_options")
    choice = tool_choice_of(body)
    return replace(
        request,
        wants_images=made_images.wants_images(body.get("modalities"), "modalities"),
        web_search=web_search.of_chat(body.get("web_search_options"), FIELDS),
        tool_choice=choice if request.tools else None,
        parallel_tools=bool_of(body.get("parallel_tool_calls"), "parallel_tool_calls"),
        stop=strings_of(body.get("stop"), "stop"),
        thinking=thinking_of(body),
        format=format_of(body.get("response_format")),
        wants_usage=stream_options.get("include_usage") is True,
        end_user=string_of(body.get("safety_identifier") or body.get("user"), "user"),
        service_tier=string_of(body.get("service_tier"), "service_tier"),
        cache_key=string_of(body.get("prompt_cache_key"), "prompt_cache_key"),
        verbosity=string_of(body.get("verbosity"), "verbosity"),
        answers=answers_of(body.get("n"), "n"),
        logprobs=_logprobs(body),
        logit_bias=object_of(body.get("logit_bias") or {}, "logit_bias") or None,
        extras=tuple(_extras(body)),
    )


def _extras(body: Json) -> Iterator[str]:
    yield from extras(body, FIELDS, "", DEFAULTS)
    for kind in ("reasoning", "thinking"):
        yield from extras(object_of(body.get(kind) or {}, kind), FIELDS, kind, {})


def sampling_of(body: Json) -> Sampling:
    """The numbers that shape sampling, under OpenAI's names and those that engines add."""
    given = {name: number_of(body[name], name) for name in _SAMPLING if name in body}
    return Sampling(**given) if given else _UNSHAPED


def answers_of(value: object, where: str) -> int:
    """How many answers are wanted. Raises BadBody."""
    wanted = count_of(value, where)
    if wanted is not None and not 0 < wanted <= ANSWERS_MAX:
        raise BadBody(f"{where}: out of range; give 1 to {ANSWERS_MAX}")
    return wanted or 1


def _logprobs(body: Json) -> int | None:
    tops = count_of(body.get("top_logprobs"), "top_logprobs")
    return tops or 0 if bool_of(body.get("logprobs"), "logprobs") else None


def _cap(body: Json) -> int | None:
    name = "max_completion_tokens" if body.get("max_completion_tokens") is not None else "max_tokens"
    return count_of(body.get(name), name)


# --- messages ---------------------------------------------------------------------------------------


def _turns(messages: Sequence[object]) -> Iterator[Turn]:
    if not messages:
        raise BadBody("messages: empty; the body has to carry its prompt")
    last_function_call = ""
    for at, value in enumerate(messages):
        if type(value) is dict and (plain := _plain(value)) is not None:
            yield plain
            continue
        where = f"messages[{at}]"
        message = object_of(value, where)
        role, name = message.get("role"), message.get("name") or ""
        if role == "user":
            yield Turn(USER, _marked(_content(message.get("content"), where), message), string_of(name, where))
        elif role == "assistant":
            if message.get("function_call"):
                last_function_call = f"call_fn_{at}"
            said = tuple(_assistant(message, where, last_function_call))
            yield Turn(ASSISTANT, _marked(said, message), string_of(name, where))
        elif role == "tool":
            call = string_of(message.get("tool_call_id"), f"{where}.tool_call_id")
            yield Turn(USER, (ToolResult(call, _content(message.get("content"), where), cache=mark_of(message)),))
        elif role == "function":
            yield Turn(USER, (ToolResult(last_function_call, _content(message.get("content"), where)),))
        elif role in _SYSTEM:
            yield Turn(SYSTEM, _marked(_content(message.get("content"), where), message), string_of(name, where))
        else:
            raise BadBody(f"{where}.role: unknown; give system, developer, user, assistant or tool")


def _marked(blocks: tuple[Block, ...], message: Json) -> tuple[Block, ...]:
    """The blocks of a message that has a cache mark itself, where clients of other gateways put it."""
    mark = mark_of(message)
    if mark is None or not blocks or not isinstance(blocks[-1], Text | Image | File | ToolCall):
        return blocks
    return (*blocks[:-1], replace(blocks[-1], cache=blocks[-1].cache or mark))


def _plain(message: Json) -> Turn | None:
    """A message as most are, of a text, of calls of functions or of a result in words; None of any other."""
    role, content, members = message.get("role"), message.get("content"), len(message)
    said = (Text(content),) if type(content) is str and content else ()
    if members == len(("role", "content")) and said:
        if role == "user":
            return Turn(USER, said)
        if role == "assistant":
            return Turn(ASSISTANT, said)
    elif members == len(("role", "content", "tool_call_id")) and (said or content is None):
        if role == "tool" and type(call := message.get("tool_call_id")) is str:
            return Turn(USER, (ToolResult(call, said),))
        if role == "assistant" and type(calls := message.get("tool_calls")) is list:
            return _plain_calls(said, calls)
    return None


def _plain_calls(said: tuple[Text, ...], calls: Sequence[object]) -> Turn | None:
    blocks: list[Block] = [*said]
    for call in calls:
        function = call.get("function") if type(call) is dict and len(call) == len(_CALL) else None
        if type(call) is not dict or type(function) is not dict:
            return None
        call_id, name, arguments = call.get("id"), function.get("name"), function.get("arguments")
        if type(call_id) is not str or type(name) is not str or type(arguments) is not str:
            return None
        blocks.append(ToolCall(call_id, name, arguments))
    return Turn(ASSISTANT, tuple(blocks))


def _assistant(message: Json, where: str, function_call: str) -> Iterator[Block]:
    if message.get("audio"):
        raise BadBody(f"{where}.audio: earlier audio answers are held by their provider and cannot go to another")
    yield from _thoughts(message, where)
    yield from _content(message.get("content"), where)
    yield from made_images.of_chat(message.get("images"))
    if refusal := message.get("refusal"):
        yield Refusal(string_of(refusal, f"{where}.refusal"))
    has_seals = bool(message.get("thinking_blocks"))  # which a client of ours keeps, and another keeps with the calls
    for at, one in enumerate(list_of(message.get("tool_calls"), f"{where}.tool_calls")):
        call = object_of(one, f"{where}.tool_calls[{at}]")
        if not has_seals and (signature := geminis_signature(call)):
            yield Sealed(signature, Api.GEMINI)
        yield _call(call, f"{where}.tool_calls[{at}]")
    if old := message.get("function_call"):
        old = object_of(old, f"{where}.function_call")
        yield ToolCall(function_call, string_of(old.get("name"), where), string_of(old.get("arguments"), where))


def _call(call: Json, where: str) -> ToolCall:
    call_id = string_of(call.get("id"), f"{where}.id")
    if "custom" in call:
        custom = object_of(call["custom"], f"{where}.custom")
        text = string_of(custom.get("input"), f"{where}.custom.input")
        return ToolCall(call_id, string_of(custom.get("name"), where), text, is_free_form=True)
    function = object_of(call.get("function"), f"{where}.function")
    arguments = string_of(function.get("arguments"), f"{where}.function.arguments")
    return ToolCall(call_id, string_of(function.get("name"), f"{where}.function.name"), arguments)


def _thoughts(message: Json, where: str) -> Iterator[Block]:
    """Signed blocks where the client kept them, else the plain text of what was thought."""
    blocks = list_of(message.get("thinking_blocks"), f"{where}.thinking_blocks")
    plain = message.get("reasoning_content") or message.get("reasoning")
    plain = plain if isinstance(plain, str) else ""
    apart = plain if len(blocks) == 1 else ""  # a client of a stream has a thought's text apart from its signature
    for block in blocks:
        thought = object_of(block, f"{where}.thinking_blocks")
        if thought.get("type") == "redacted_thinking":
            data = string_of(thought.get("data"), where)
            yield unsealed(data, "") or Sealed(data, Api.ANTHROPIC_MESSAGES)
        else:
            signature, text = string_of(thought.get("signature"), where), string_of(thought.get("thinking"), where)
            issuer = Api.ANTHROPIC_MESSAGES if signature else None
            yield unsealed(signature, text or apart) or Reasoning(text or apart, signature, issuer)
    if plain and not blocks:
        yield Reasoning(plain)


def _content(content: object, where: str) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(content),) if content else ()
    parts = list_of(content, f"{where}.content")
    blocks = (_part(part, f"{where}.content[{at}]") for at, part in enumerate(parts))
    return tuple(block for block in blocks if not isinstance(block, Text) or block.text)


def _part(value: object, where: str) -> Block:
    if isinstance(value, str):
        return Text(value)
    part = object_of(value, where)
    match part.get("type"):
        case "text":
            return Text(string_of(part.get("text"), f"{where}.text"), mark_of(part))
        case "image_url":
            return _image(part, where)
        case "input_audio":
            audio = object_of(part.get("input_audio"), f"{where}.input_audio")
            data = media.plain_base64(string_of(audio.get("data"), where), where)
            return Audio(Media(mime=f"audio/{string_of(audio.get('format'), where) or 'wav'}", data=data))
        case "file":
            return _file(object_of(part.get("file"), f"{where}.file"), where, mark_of(part))
        case "refusal":
            return Refusal(string_of(part.get("refusal"), f"{where}.refusal"))
        case "tool_use" | "tool_result" | "thinking" | "document" | "image":
            raise BadBody(f"{where}.type: {MESSAGES}")
        case _:
            raise BadBody(f"{where}.type: unknown; give text, image_url, input_audio or file")


def _image(part: Json, where: str) -> Image:
    image = part.get("image_url")
    if isinstance(image, str):  # as some clients write it
        image = {"url": image}
    image = object_of(image, f"{where}.image_url")
    source = media.image(media.from_url(string_of(image.get("url"), f"{where}.image_url.url"), where), where)
    return Image(source, string_of(image.get("detail"), f"{where}.image_url.detail"), mark_of(part))


def _file(file: Json, where: str, mark: CacheMark | None) -> File:
    name = string_of(file.get("filename"), f"{where}.file.filename")
    if file_id := file.get("file_id"):
        return File(Media(file_id=string_of(file_id, f"{where}.file.file_id")), name, cache=mark)
    source = media.from_data(string_of(file.get("file_data"), f"{where}.file.file_data"), where)
    if source.mime.startswith("text/"):
        return File(Media(), name, media.decoded_text(source.data, where), cache=mark)
    return File(source, name, cache=mark)
