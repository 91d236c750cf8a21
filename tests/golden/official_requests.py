"""Requests held against the official SDKs' own types: no member that they do not know, none missing, none of another type."""

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

import botocore.session  # type: ignore[import-untyped]  # it ships no types
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming
from botocore.validate import ParamValidator  # type: ignore[import-untyped]  # it ships no types
from google.genai import types as google
from openai.types import completion_create_params as completions
from openai.types.chat import completion_create_params as chat
from openai.types.embedding_create_params import EmbeddingCreateParams
from openai.types.responses import response_create_params as responses
from pydantic import BaseModel, ValidationError
from typing_extensions import get_type_hints, is_typeddict

from kinference.vocabulary import Api

_WRAPPERS = (Annotated, Required, NotRequired)
_PLAIN: Mapping[Any, tuple[type, ...]] = {float: (int, float), int: (int,), bool: (bool,), str: (str,)}


_SAMPLING = ("temperature", "top_p", "top_k")
"""Which Anthropic's version that we ask for takes, and the one that its SDK writes no longer."""

_HELD = {"ResponseOutputMessageParam": {"id", "status"}, "ResponseReasoningItemParam": {"id"}}
"""Members of items that the provider holds: what comes from elsewhere has none, and Codex leaves them out too."""


def faults(api: Api, body: Any) -> list[str]:
    """Where a request is not what the API's own client could have sent."""
    if api is Api.ANTHROPIC_MESSAGES:
        body = {name: value for name, value in body.items() if name not in _SAMPLING}
    return _OF[api](body)


def _typed(streaming: Any, whole: Any) -> Callable[[Any], list[str]]:
    return lambda body: list(_walk(body, streaming if body.get("stream") else whole, "body"))


def _walk(value: Any, kind: Any, where: str) -> Iterator[str]:
    while get_origin(kind) in _WRAPPERS:
        kind = get_args(kind)[0]
    origin = get_origin(kind)
    if kind is Any or kind is object:
        return
    if origin in (Union, UnionType):
        found = [list(_walk(value, one, where)) for one in get_args(kind)]
        if all(found):  # tell of the one that it comes nearest to
            yield from min(found, key=lambda told: (-max(text.count(".") for text in told), len(told)))
    elif origin is Literal:
        if value not in get_args(kind):
            yield f"{where}.: {value!r} is none of {get_args(kind)}"
    elif is_typeddict(kind):
        yield from _members(value, kind, where)
    elif origin is not None:
        yield from _held(value, origin, get_args(kind), where)
    elif kind in (NoneType, None):
        if value is not None:
            yield f"{where}: not null"
    elif not isinstance(value, _PLAIN.get(kind, ())) or (isinstance(value, bool) and kind is not bool):
        yield f"{where}: no {kind}"


def _held(value: Any, origin: Any, kinds: tuple[Any, ...], where: str) -> Iterator[str]:
    """What an object of free keys or an array holds."""
    inside: Iterable[tuple[object, Any]]
    if issubclass(origin, Mapping) and isinstance(value, dict):
        inside = value.items()
    elif not issubclass(origin, Mapping) and isinstance(value, list):
        inside = enumerate(value)
    else:
        yield f"{where}: no {origin.__name__}"
        return
    for key, inner in inside:
        yield from _walk(inner, kinds[-1], f"{where}.{key}")


def _members(value: Any, kind: Any, where: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{where}: no object"
        return
    hints = get_type_hints(kind, include_extras=True)
    required = {name for name, hint in hints.items() if str(get_origin(hint)) == str(Required)} | kind.__required_keys__
    for name in sorted(required - value.keys() - _HELD.get(kind.__name__, set())):
        yield f"{where}: no {name}"
    for name, inner in value.items():
        if name not in hints:
            yield f"{where}.{name}: unknown to {kind.__name__}"
        else:
            yield from _walk(inner, hints[name], f"{where}.{name}")


def _gemini(body: Any) -> list[str]:
    kinds: Mapping[str, type[BaseModel]] = {
        "contents": google.Content,
        "tools": google.Tool,
        "systemInstruction": google.Content,
        "toolConfig": google.ToolConfig,
        "generationConfig": google.GenerationConfig,
    }
    told = [f"body.{name}: unknown" for name in body if name not in kinds and name != "serviceTier"]
    if (tier := body.get("serviceTier", "flex")) not in [*google.ServiceTier]:
        told.append(f"body.serviceTier: {tier}")
    for name, kind in kinds.items():
        given = body.get(name, [])
        for one in given if isinstance(given, list) else [given]:
            try:
                kind.model_validate(one, strict=False)
            except ValidationError as error:
                told += [f"body.{name}: {detail['loc']} {detail['msg']}" for detail in error.errors()]
    return told


def _converse(body: Any) -> list[str]:
    model = botocore.session.get_session().get_service_model("bedrock-runtime")
    shape = model.operation_model("Converse").input_shape
    report = ParamValidator().validate({"modelId": "m", **_blobs(body)}, shape)
    return [report.generate_report()] if report.has_errors() else []


def _blobs(value: Any) -> Any:
    """Base64 as the bytes that the SDK takes."""
    if isinstance(value, list):
        return [_blobs(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: base64.b64decode(one) if name in ("bytes", "redactedContent") and isinstance(one, str) else _blobs(one)
        for name, one in value.items()
    }


_OF: Mapping[Api, Callable[[Any], list[str]]] = {
    Api.OPENAI_CHAT: _typed(chat.CompletionCreateParamsStreaming, chat.CompletionCreateParamsNonStreaming),
    Api.OPENAI_RESPONSES: _typed(responses.ResponseCreateParamsStreaming, responses.ResponseCreateParamsNonStreaming),
    Api.OPENAI_COMPLETIONS: _typed(
        completions.CompletionCreateParamsStreaming, completions.CompletionCreateParamsNonStreaming
    ),
    Api.OPENAI_EMBEDDINGS: _typed(EmbeddingCreateParams, EmbeddingCreateParams),
    Api.ANTHROPIC_MESSAGES: _typed(MessageCreateParamsStreaming, MessageCreateParamsNonStreaming),
    Api.GEMINI: _gemini,
    Api.BEDROCK_CONVERSE: _converse,
}
