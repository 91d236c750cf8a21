"""An engine's own model list (`/v1/models`), read as from a stranger, and what it tells of the engine."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

import msgspec

from kinference.vocabulary import Engine

MODELS_MAX = 1000
_MODEL_CHARS_MAX = 256
_CONTEXT_TOKENS_MAX = 1 << 31

_OWNERS: Mapping[str, Engine] = {
    "vllm": Engine.VLLM,
    "sglang": Engine.SGLANG,
    "tensorrt_llm": Engine.TRTLLM,
    "llamacpp": Engine.LLAMACPP,
}


@dataclass(frozen=True, slots=True)
class ModelList:
    """What an engine serves. At most MODELS_MAX names; more are left out."""

    names: tuple[str, ...]
    max_model_tokens: int | None
    engine: Engine
    adapters: tuple[str, ...] = ()
    """Those of the names that stand for an adapter on another model."""


class _Card(msgspec.Struct):
    id: object = None
    owned_by: object = None
    max_model_len: object = None
    parent: object = None


class _List(msgspec.Struct):
    data: list[_Card]


def read_model_list(body: bytes) -> ModelList | None:
    """None when it is not a model list at all; entries that make no sense are passed over."""
    try:
        cards = msgspec.json.decode(body, type=_List).data
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    names = dict.fromkeys(card.id for card in cards if _is_name(card.id))
    lengths = [card.max_model_len for card in cards if _is_length(card.max_model_len)]
    adapters = tuple(card.id for card in cards if _is_name(card.id) and _is_name(card.parent))
    return ModelList(tuple(names)[:MODELS_MAX], min(lengths, default=None), _engine(cards), adapters[:MODELS_MAX])


def _is_name(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= _MODEL_CHARS_MAX and value.isprintable()


def _is_length(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _CONTEXT_TOKENS_MAX


def _engine(cards: list[_Card]) -> Engine:
    """The engine whose name the cards bear; one that is unknown is only known to speak OpenAI's API."""
    for card in cards:
        if isinstance(card.owned_by, str) and card.owned_by in _OWNERS:
            return _OWNERS[card.owned_by]
    return Engine.OPENAI
