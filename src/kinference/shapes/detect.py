"""Which API a request body speaks, and what routing needs to know of it, from one scan that leaves the prompt as
slices of the body.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from kinference.shapes.scan import BadBody, check_depth, check_utf8, decode
from kinference.vocabulary import Api, Need

MODEL_CHARS_MAX: Final = 512
SESSION_CHARS_MAX: Final = 512

S = TypeVar("S", bound=msgspec.Struct)

_ABSENT: Final = msgspec.Raw(b"null")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A request body as routing sees it; the fields mean what they mean in `core.request.Request`."""

    api: Api
    model: str
    prompt: tuple[bytes, ...]
    """What a chat template renders first comes first: tools, system, then the conversation as one slice without its
    closing bracket, so that the bytes of turn N are a prefix of those of turn N+1."""
    prompt_bytes: int
    output_tokens: int | None
    streaming: bool
    include_usage: bool
    """The client itself asked for the stream's usage chunk."""
    needs: frozenset[Need]
    session: str
    salt: str


class _Body(msgspec.Struct):
    """Every member that routing reads of any API. Raw where a type that we do not expect must not refuse the body."""

    model: str = ""
    stream: bool | None = None
    messages: msgspec.Raw = _ABSENT
    prompt: msgspec.Raw = _ABSENT
    input: msgspec.Raw = _ABSENT

    system: msgspec.Raw = _ABSENT
    instructions: msgspec.Raw = _ABSENT
    tools: msgspec.Raw = _ABSENT
    functions: msgspec.Raw = _ABSENT

    max_completion_tokens: msgspec.Raw = _ABSENT
    max_output_tokens: msgspec.Raw = _ABSENT
    max_tokens: msgspec.Raw = _ABSENT
    stream_options: msgspec.Raw = _ABSENT

    modalities: msgspec.Raw = _ABSENT
    include: msgspec.Raw = _ABSENT
    logprobs: msgspec.Raw = _ABSENT
    top_logprobs: msgspec.Raw = _ABSENT
    prompt_logprobs: msgspec.Raw = _ABSENT
    response_format: msgspec.Raw = _ABSENT
    output_format: msgspec.Raw = _ABSENT
    output_config: msgspec.Raw = _ABSENT
    text: msgspec.Raw = _ABSENT
    structured_outputs: msgspec.Raw = _ABSENT
    guided_json: msgspec.Raw = _ABSENT
    guided_regex: msgspec.Raw = _ABSENT
    guided_choice: msgspec.Raw = _ABSENT
    guided_grammar: msgspec.Raw = _ABSENT

    prompt_cache_key: msgspec.Raw = _ABSENT
    conversation: msgspec.Raw = _ABSENT
    previous_response_id: msgspec.Raw = _ABSENT
    metadata: msgspec.Raw = _ABSENT
    user: msgspec.Raw = _ABSENT
    cache_salt: msgspec.Raw = _ABSENT

    anthropic_version: msgspec.Raw = _ABSENT
    stop_sequences: msgspec.Raw = _ABSENT
    thinking: msgspec.Raw = _ABSENT
    reasoning: msgspec.Raw = _ABSENT
    encoding_format: msgspec.Raw = _ABSENT
    dimensions: msgspec.Raw = _ABSENT


class _StreamOptions(msgspec.Struct):
    include_usage: bool | None = None


class _Metadata(msgspec.Struct):
    session_id: msgspec.Raw = _ABSENT
    user_id: msgspec.Raw = _ABSENT


class _Conversation(msgspec.Struct):
    id: str = ""


class _Text(msgspec.Struct):
    format: msgspec.Raw = _ABSENT


_BODY = msgspec.json.Decoder(_Body)

# Chat before completions: one path ends in the other.
_PATHS: Final = (
    ("/chat/completions", Api.OPENAI_CHAT),
    ("/completions", Api.OPENAI_COMPLETIONS),
    ("/responses", Api.OPENAI_RESPONSES),
    ("/embeddings", Api.OPENAI_EMBEDDINGS),
    ("/messages", Api.ANTHROPIC_MESSAGES),
    ("/messages/count_tokens", Api.ANTHROPIC_MESSAGES),
)

# Inside a JSON string the quotes would be escaped, so these match structure and never text.
_ANTHROPIC_BLOCK = re.compile(rb'"type"\s*:\s*"(?:tool_use|tool_result|thinking|redacted_thinking|image|document)"')
_MEDIA_PART = re.compile(
    rb'"type"\s*:\s*"(image|image_url|input_image|image_embeds|video_url|input_audio|audio_url|audio)"'
)
_AUDIO_TYPES: Final = frozenset({b"input_audio", b"audio_url", b"audio"})
_CACHE_CONTROL = re.compile(rb',\s{0,32}"cache_control"\s{0,32}:\s{0,32}\{[^{}]*\}')
_FORMAT_TYPE = re.compile(rb'"type"\s*:\s*"(?!text")')
_TOKENS = re.compile(rb"[1-9][0-9]{0,8}")


def parse(body: bytes, path: str = "") -> Parsed:
    """Read a request body. The client's HTTP path settles the API where it is known. Raises BadBody."""
    check_utf8(body)
    fields = decode(_BODY, body)
    check_depth(body)
    if not fields.model.strip():
        raise BadBody("model: missing or empty; name the model to serve the request")
    if len(fields.model) > MODEL_CHARS_MAX:
        raise BadBody(f"model: longer than {MODEL_CHARS_MAX} characters")
    api = api_of_path(path) or _infer(fields)
    prompt = tuple(_prompt(api, fields))
    conversation = prompt[-1] if prompt else b""
    return Parsed(
        api=api,
        model=fields.model,
        prompt=prompt,
        prompt_bytes=sum(map(len, prompt)),
        output_tokens=_output_tokens(fields),
        streaming=bool(fields.stream),
        include_usage=_includes_usage(fields.stream_options),
        needs=frozenset(_needs(api, fields, conversation)),
        session=_session(fields)[:SESSION_CHARS_MAX],
        salt=_string(fields.cache_salt)[:SESSION_CHARS_MAX],
    )


def api_of_path(path: str) -> Api | None:
    """The API that an HTTP path names, whatever prefix a provider puts before it; None for any other path."""
    path = path.partition("?")[0].rstrip("/")
    return next((api for suffix, api in _PATHS if path.endswith(suffix)), None)


# --- which API ----------------------------------------------------------------------------------


def _infer(fields: _Body) -> Api:
    if _present(fields.messages):
        return Api.ANTHROPIC_MESSAGES if _is_anthropic(fields) else Api.OPENAI_CHAT
    if _present(fields.prompt):
        return Api.OPENAI_COMPLETIONS
    if _present(fields.input):
        return Api.OPENAI_RESPONSES if _is_responses(fields) else Api.OPENAI_EMBEDDINGS
    if _given(fields.previous_response_id):
        return Api.OPENAI_RESPONSES
    raise BadBody("body has no prompt; give messages, prompt or input")


def _is_anthropic(fields: _Body) -> bool:
    if any(map(_given, (fields.system, fields.anthropic_version, fields.stop_sequences))):
        return True
    if b'"input_schema"' in bytes(fields.tools) or b'"budget_tokens"' in bytes(fields.thinking):
        return True
    return _given(fields.max_tokens) and _ANTHROPIC_BLOCK.search(fields.messages) is not None


def _is_responses(fields: _Body) -> bool:
    if any(map(_given, (fields.encoding_format, fields.dimensions))):
        return False
    telling = (
        fields.instructions,
        fields.tools,
        fields.max_output_tokens,
        fields.text,
        fields.previous_response_id,
        fields.reasoning,
        fields.conversation,
        fields.include,
    )
    is_list_of_items = bytes(memoryview(fields.input)[:64]).lstrip(b"[ \t\r\n").startswith(b"{")
    return fields.stream is not None or is_list_of_items or any(map(_given, telling))


# --- the canonical stream -----------------------------------------------------------------------


def _prompt(api: Api, fields: _Body) -> Iterator[bytes]:
    if api in _CONVERSATIONS:
        yield from (_steady(part) for part in (fields.tools, fields.functions) if _given(part))
    match api:
        case Api.OPENAI_CHAT:
            yield _list("messages", bytes(fields.messages))
        case Api.ANTHROPIC_MESSAGES:
            if _given(fields.system):
                yield _steady(fields.system)
            yield _list("messages", _steady(fields.messages))
        case Api.OPENAI_RESPONSES:
            if _given(fields.instructions):
                yield bytes(fields.instructions)
            held_elsewhere = (fields.previous_response_id, fields.conversation, fields.prompt)
            if _present(fields.input) or not any(map(_given, held_elsewhere)):
                yield _list_or_string("input", bytes(fields.input))
        case Api.OPENAI_COMPLETIONS:
            yield _list_or_string("prompt", bytes(fields.prompt))
        case Api.OPENAI_EMBEDDINGS if _present(fields.messages) and not _present(fields.input):
            yield _list("messages", bytes(fields.messages))  # vLLM embeds whole conversations too
        case Api.OPENAI_EMBEDDINGS:
            yield _list_or_string("input", bytes(fields.input))


_CONVERSATIONS: Final = frozenset({Api.OPENAI_CHAT, Api.ANTHROPIC_MESSAGES, Api.OPENAI_RESPONSES})


def _list(name: str, text: bytes) -> bytes:
    if text == b"null":
        raise BadBody(f"{name}: missing; the body has to carry its prompt")
    if not text.startswith(b"["):
        raise BadBody(f"{name}: wrong type; expected an array")
    return _inside(name, text)


def _list_or_string(name: str, text: bytes) -> bytes:
    return _inside(name, text) if text.startswith(b'"') else _list(name, text)


def _inside(name: str, text: bytes) -> bytes:
    """Without the delimiters, since a closing one would end the prefix that the next turn extends."""
    if not (inner := text[1:-1].strip()):
        raise BadBody(f"{name}: empty; the body has to carry its prompt")
    return inner


def _steady(value: msgspec.Raw) -> bytes:
    """The bytes without cache breakpoints: clients move them each turn, and no engine sees them in its prompt."""
    text = bytes(value)
    return _CACHE_CONTROL.sub(b"", text) if b'"cache_control"' in text else text


# --- the rest -----------------------------------------------------------------------------------


def _needs(api: Api, fields: _Body, conversation: bytes) -> Iterator[Need]:
    if _given(fields.tools) or _given(fields.functions):
        yield Need.TOOLS
    media = {kind[1] for kind in _MEDIA_PART.finditer(conversation)} if b"[" in conversation else set()
    if media - _AUDIO_TYPES:
        yield Need.VISION
    if media & _AUDIO_TYPES or b'"audio"' in bytes(fields.modalities):
        yield Need.AUDIO
    if _wants_logprobs(api, fields):
        yield Need.LOGPROBS
    if _wants_structure(fields):
        yield Need.STRUCTURED_OUTPUT


def _wants_logprobs(api: Api, fields: _Body) -> bool:
    if api is Api.OPENAI_COMPLETIONS and bytes(fields.logprobs) == b"0":  # the chosen token's own is still wanted
        return True
    return any(map(_given, (fields.logprobs, fields.top_logprobs, fields.prompt_logprobs))) or (
        b"output_text.logprobs" in bytes(fields.include)
    )


def _wants_structure(fields: _Body) -> bool:
    if any(_given(value) and _FORMAT_TYPE.search(value) for value in (fields.response_format, fields.output_format)):
        return True
    guided = (
        fields.structured_outputs,
        fields.guided_json,
        fields.guided_regex,
        fields.guided_choice,
        fields.guided_grammar,
    )
    if any(map(_given, guided)):
        return True
    return any(_FORMAT_TYPE.search(_fields(_Text, value).format) for value in (fields.text, fields.output_config))


def _output_tokens(fields: _Body) -> int | None:
    for value in (fields.max_completion_tokens, fields.max_output_tokens, fields.max_tokens):
        if digits := _TOKENS.fullmatch(value):
            return int(digits[0])
    return None


def _session(fields: _Body) -> str:
    """The most specific of what ties a client's turns together."""
    metadata = _fields(_Metadata, fields.metadata)
    return (
        _string(fields.prompt_cache_key)
        or _string(fields.conversation)
        or _fields(_Conversation, fields.conversation).id
        or _string(fields.previous_response_id)
        or _string(metadata.session_id)
        or _string(metadata.user_id)
        or _string(fields.user)
    )


def _includes_usage(stream_options: msgspec.Raw) -> bool:
    return bool(_fields(_StreamOptions, stream_options).include_usage)


def _present(value: msgspec.Raw) -> bool:
    return value is not _ABSENT and bytes(memoryview(value)[:4]) != b"null"


def _given(value: msgspec.Raw) -> bool:
    """Present and asking for something: neither null, false, zero nor empty."""
    return value is not _ABSENT and bytes(memoryview(value)[:6]) not in _NOTHING


_NOTHING: Final = frozenset({b"null", b"false", b"0", b'""', b"[]", b"{}"})


def _string(value: msgspec.Raw) -> str:
    """A hint of another type is no hint."""
    return msgspec.json.decode(value, type=str) if value is not _ABSENT and bytes(value).startswith(b'"') else ""


def _fields(kind: type[S], value: msgspec.Raw) -> S:
    """The fields of a small object; their defaults when it is none or holds other types."""
    if value is _ABSENT:
        return kind()
    try:
        return msgspec.json.decode(value, type=kind)
    except msgspec.ValidationError:
        return kind()
