"""Which API a request body speaks, and what routing needs to know of it, from one scan that leaves the prompt as
slices of the body.
"""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

import msgspec

from kinference.shapes.fields import (
    ABSENT,
    Body,
    Conversation,
    Members,
    Metadata,
    Streaming,
    StreamOptions,
    given,
    present,
    string,
    struct,
)
from kinference.shapes.needs import needs_of
from kinference.shapes.payloads import digested
from kinference.shapes.scan import BadBody, check_depth, check_utf8, decode, has
from kinference.structs import Frozen
from kinference.vocabulary import Api, Need, StreamUsage

_GEMINI: Final = Api.GEMINI
_SETTLED: Final = StreamUsage.SETTLED
"""These are read once: Python 3.11 finds a member of an enum by a hook of its metaclass, at ten times the price of a
constant."""
MODEL_CHARS_MAX: Final = 512
SESSION_CHARS_MAX: Final = 512


class Parsed(Frozen, frozen=True):
    """A request body as routing sees it; the fields mean what they mean in `core.request.Request`."""

    api: Api
    model: str
    prompt: tuple[bytes, ...]
    """What a chat template renders first comes first: tools, system, then the conversation as one slice without its
    closing bracket, so that the bytes of turn N are a prefix of those of turn N+1. Payloads in base64, pictures above
    all, are told by their digests and count as what models commonly make of them."""
    prompt_bytes: int
    output_tokens: int | None
    streaming: bool
    needs: frozenset[Need]
    session: str
    salt: str
    usage: StreamUsage = _SETTLED
    has_own_salt: bool = True
    """The salt is the client's own, in its body; else it has to be put there."""


_BODY: Final = msgspec.json.Decoder(Body)
_STREAMING: Final = msgspec.json.Decoder(Streaming)

# Chat before completions: one path ends in the other.
_PATHS: Final = (
    ("/chat/completions", Api.OPENAI_CHAT),
    ("/completions", Api.OPENAI_COMPLETIONS),
    ("/responses", Api.OPENAI_RESPONSES),
    ("/embeddings", Api.OPENAI_EMBEDDINGS),
    ("/messages", Api.ANTHROPIC_MESSAGES),
    ("/messages/count_tokens", Api.ANTHROPIC_MESSAGES),
    ("/responses/input_tokens", Api.OPENAI_RESPONSES),
    (":generateContent", Api.GEMINI),
    (":streamGenerateContent", Api.GEMINI),
    (":countTokens", Api.GEMINI),
)
_USUAL_PATHS: Final = {f"/v1{suffix}": api for suffix, api in _PATHS if suffix.startswith("/")}
_STREAMS: Final = ":streamGenerateContent"
_MODEL_IN_PATH: Final = re.compile(r"/models/([^/]+):\w+\Z")

# Inside a JSON string the quotes would be escaped, so this matches structure and never text.
_ANTHROPIC_BLOCK: Final = re.compile(
    rb'"type"\s*:\s*"(?:tool_use|tool_result|thinking|redacted_thinking|image|document)"'
)
_CACHE_CONTROL: Final = re.compile(rb',\s{0,32}"cache_control"\s{0,32}:\s{0,32}\{[^{}]*\}')
_CONVERSATIONS: Final = frozenset({Api.OPENAI_CHAT, Api.ANTHROPIC_MESSAGES, Api.OPENAI_RESPONSES, Api.GEMINI})
_STREAMS_USAGE_ON_REQUEST: Final = frozenset({Api.OPENAI_CHAT, Api.OPENAI_COMPLETIONS})
_ANTHROPICS: Final = Members("system", "anthropic_version", "stop_sequences", "tools", "thinking", "max_tokens")
"""All that can tell a body of Anthropic's from one of OpenAI's."""
_TYING: Final = Members("prompt_cache_key", "conversation", "previous_response_id", "metadata", "user")
_ARRAY: Final = b"["[0]
_STRING: Final = b'"'[0]
"""What the text of one begins with."""
_TOKENS: Final = re.compile(rb"[1-9][0-9]{0,8}")


def parse(body: bytes, path: str = "") -> Parsed:
    """Read a request body. The client's HTTP path settles the API where it is known. Raises BadBody."""
    check_utf8(body)
    fields = decode(_BODY, body)
    check_depth(body)
    api = api_of_path(path)
    is_gemini = api is _GEMINI
    model = model_of_path(path) if is_gemini else fields.model
    if not model.strip():
        raise BadBody("model: missing or empty; name the model to serve the request")
    if len(model) > MODEL_CHARS_MAX:
        raise BadBody(f"model: longer than {MODEL_CHARS_MAX} characters")
    api = api or _infer(fields)
    if is_gemini and given(fields.generateContentRequest):  # a question for its tokens may hold it whole
        fields = decode(_BODY, bytes(fields.generateContentRequest))
    prompt = tuple(_prompt(api, fields))
    conversation = prompt[-1] if prompt else b""
    return Parsed(
        api=api,
        model=model,
        prompt=prompt,
        prompt_bytes=sum(map(len, prompt)),
        output_tokens=_output_tokens(fields),
        streaming=bool(fields.stream) or (is_gemini and streams_by_path(path)),
        needs=needs_of(api, fields, conversation),
        session=_session(fields)[:SESSION_CHARS_MAX],
        salt=string(fields.cache_salt)[:SESSION_CHARS_MAX],
        usage=_usage(api, bool(fields.stream), fields.stream_options),
    )


def api_of_path(path: str) -> Api | None:
    """The API that an HTTP path names, whatever prefix a provider puts before it; None for any other path."""
    if (known := _USUAL_PATHS.get(path)) is not None:
        return known
    if not path:
        return None
    path = path.partition("?")[0].rstrip("/")
    return next((api for suffix, api in _PATHS if path.endswith(suffix)), None)


def model_of_path(path: str) -> str:
    """The model that a path names, "" when it names none."""
    found = _MODEL_IN_PATH.search(path.partition("?")[0])
    return unquote(found[1]) if found else ""


def streams_by_path(path: str) -> bool:
    """Whether a path asks for a stream, as some APIs have it."""
    return path.partition("?")[0].endswith(_STREAMS)


def stream_usage(api: Api, body: bytes) -> StreamUsage:
    """What a body of an API says of the usage of its stream, and nothing else about it. Raises BadBody."""
    if api not in _STREAMS_USAGE_ON_REQUEST:
        return _SETTLED
    fields = decode(_STREAMING, body)
    return _usage(api, bool(fields.stream), fields.stream_options)


def asked_otherwise(api: Api, path: str, body: bytes, *, is_stream: bool) -> bool:
    """Whether a request did not ask for what came: a stream, or an answer in one piece. To read the body takes less
    than to look for the word in it, and nobody is misled by keys within it, or spelled with escapes.
    """
    if api is Api.GEMINI:
        return streams_by_path(path) is not is_stream
    try:
        return bool(decode(_STREAMING, body).stream) is not is_stream
    except BadBody:
        return False


# --- which API ----------------------------------------------------------------------------------


def _infer(fields: Body) -> Api:
    if present(fields.messages):
        return Api.ANTHROPIC_MESSAGES if _is_anthropic(fields) else Api.OPENAI_CHAT
    if present(fields.prompt):
        return Api.OPENAI_COMPLETIONS
    if present(fields.input):
        return Api.OPENAI_RESPONSES if _is_responses(fields) else Api.OPENAI_EMBEDDINGS
    if given(fields.previous_response_id):
        return Api.OPENAI_RESPONSES
    raise BadBody("body has no prompt; give messages, prompt or input")


def _is_anthropic(fields: Body) -> bool:
    if _ANTHROPICS.are_absent(fields):
        return False
    if any(map(given, (fields.system, fields.anthropic_version, fields.stop_sequences))):
        return True
    if b'"input_schema"' in bytes(fields.tools) or b'"budget_tokens"' in bytes(fields.thinking):
        return True
    return given(fields.max_tokens) and _ANTHROPIC_BLOCK.search(fields.messages) is not None


def _is_responses(fields: Body) -> bool:
    if any(map(given, (fields.encoding_format, fields.dimensions))):
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
    return fields.stream is not None or is_list_of_items or any(map(given, telling))


# --- the canonical stream -----------------------------------------------------------------------


def _prompt(api: Api, fields: Body) -> Iterator[bytes]:
    if api in _CONVERSATIONS:
        for part in (fields.tools, fields.functions):
            if given(part):
                yield _steady(part)
    match api:
        case Api.OPENAI_CHAT:
            yield _list("messages", fields.messages)
        case Api.ANTHROPIC_MESSAGES:
            if given(fields.system):
                yield _steady(fields.system)
            yield _list("messages", _steady(fields.messages))
        case Api.GEMINI:
            yield from (bytes(part) for part in (fields.systemInstruction, fields.system_instruction) if given(part))
            yield _list("contents", fields.contents)
        case Api.OPENAI_RESPONSES:
            if given(fields.instructions):
                yield bytes(fields.instructions)
            held_elsewhere = (fields.previous_response_id, fields.conversation, fields.prompt)
            if present(fields.input) or not any(map(given, held_elsewhere)):
                yield _list_or_string("input", fields.input)
        case Api.OPENAI_COMPLETIONS:
            yield _list_or_string("prompt", fields.prompt)
        case Api.OPENAI_EMBEDDINGS if present(fields.messages) and not present(fields.input):
            yield _list("messages", fields.messages)  # vLLM embeds whole conversations too
        case Api.OPENAI_EMBEDDINGS:
            yield _list_or_string("input", fields.input)


def _list(name: str, value: msgspec.Raw | bytes) -> bytes:
    text = memoryview(value)
    if text[0] == _ARRAY:
        return _inside(name, text)
    if bytes(text[:5]) == b"null":
        raise BadBody(f"{name}: missing; the body has to carry its prompt")
    raise BadBody(f"{name}: wrong type; expected an array")


def _list_or_string(name: str, value: msgspec.Raw) -> bytes:
    text = memoryview(value)
    return _inside(name, text) if text[0] == _STRING else _list(name, value)


def _inside(name: str, text: memoryview) -> bytes:
    """Without the delimiters, since a closing one would end the prefix that the next turn extends; pictures and other
    payloads by their digests.
    """
    if not (inner := bytes(text[1:-1]).strip()):
        raise BadBody(f"{name}: empty; the body has to carry its prompt")
    return digested(inner)


def _steady(value: msgspec.Raw) -> bytes:
    """The bytes without cache breakpoints: clients move them each turn, and no engine sees them in its prompt."""
    text = bytes(value)
    return _CACHE_CONTROL.sub(b"", text) if has(text, b'"cache_control"') else text


# --- the rest -----------------------------------------------------------------------------------


def _output_tokens(fields: Body) -> int | None:
    for value in (fields.max_completion_tokens, fields.max_output_tokens, fields.max_tokens):
        if value is not ABSENT and (digits := _TOKENS.fullmatch(value)):
            return int(digits[0])
    return None


def _usage(api: Api, streams: bool, options: msgspec.Raw) -> StreamUsage:
    if not streams or api not in _STREAMS_USAGE_ON_REQUEST:
        return _SETTLED
    if options is ABSENT:
        return StreamUsage.NOT_ASKED
    return _SETTLED if struct(StreamOptions, options).include_usage else StreamUsage.REFUSED


def _session(fields: Body) -> str:
    """The most specific of what ties a client's turns together."""
    if _TYING.are_absent(fields):
        return ""
    metadata = struct(Metadata, fields.metadata)
    return (
        string(fields.prompt_cache_key)
        or string(fields.conversation)
        or struct(Conversation, fields.conversation).id
        or string(fields.previous_response_id)
        or string(metadata.session_id)
        or string(metadata.user_id)
        or string(fields.user)
    )
