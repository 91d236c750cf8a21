"""What every API's answer is made of: a head, words, usage; and how each API's writer is called."""

from dataclasses import dataclass
from typing import Protocol

import msgspec

FINGERPRINT = "vllm-0.32.0-simulated"
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Usage:
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class Head:
    """What is known of an answer before its first word. `number` is unique in the engine, `created` in Unix seconds."""

    number: str
    created: int
    model: str
    prompt_tokens: int
    finish: str
    include_usage: bool = False


class Writer(Protocol):
    """One answer in one API, as events of a stream or as a whole."""

    def opening(self) -> list[bytes]:
        """What goes before the first word."""
        ...

    def word(self, text: str) -> bytes: ...
    def last_word(self, text: str) -> bytes: ...

    def closing(self, usage: Usage) -> list[bytes]:
        """What goes after the last word."""
        ...

    def whole(self, text: str, usage: Usage) -> bytes:
        """The answer to a request that did not ask for a stream."""
        ...


def sse(payload: object) -> bytes:
    """An event without a name, as OpenAI's older APIs stream them."""
    return b"data: " + msgspec.json.encode(payload) + b"\n\n"


def named_sse(payload: dict[str, object]) -> bytes:
    """An event named by its payload's `type`."""
    return b"event: " + str(payload["type"]).encode() + b"\n" + sse(payload)


def openai_usage(usage: Usage) -> dict[str, object]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "total_tokens": usage.total_tokens,
        "completion_tokens": usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens, "created_cache_tokens": 0},
    }
