"""Bodies of Anthropic Messages and OpenAI Responses as the chat that an engine itself makes of them.

Engines that serve these APIs put such a body into the messages of a chat before their template renders it. Each has
its own ways with tools, pictures, thoughts and texts in several parts, and they change from version to version. Here
are the bodies that leave no choice: texts in one part each, and no field beside them that a template could see.
"""

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from kinference.vocabulary import Api


class _Part(msgspec.Struct, forbid_unknown_fields=True):
    """A text; marks for a provider's cache change no prompt."""

    type: Literal["text", "input_text"]
    text: str
    cache_control: msgspec.Raw = msgspec.Raw()


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[_Part]
    type: Literal["message"] = "message"


class _Sampling(msgspec.Struct, forbid_unknown_fields=True):
    """What no template sees."""

    model: str
    stream: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    metadata: msgspec.Raw = msgspec.Raw()
    service_tier: str | None = None


class _Anthropic(_Sampling, forbid_unknown_fields=True, kw_only=True):
    messages: list[_Message]
    max_tokens: int
    system: str | list[_Part] = ""
    top_k: int | None = None
    stop_sequences: list[str] | None = None


class _Responses(_Sampling, forbid_unknown_fields=True, kw_only=True):
    input: str | list[_Message]
    instructions: str | None = None
    max_output_tokens: int | None = None
    store: bool | None = None
    user: str | None = None
    prompt_cache_key: str | None = None


class Chat(msgspec.Struct, frozen=True):
    """A model and the messages of a chat, each with one text."""

    model: str
    messages: list[dict[str, str]]


_KINDS: Final[Mapping[Api, msgspec.json.Decoder[_Anthropic] | msgspec.json.Decoder[_Responses]]] = {
    Api.ANTHROPIC_MESSAGES: msgspec.json.Decoder(_Anthropic),
    Api.OPENAI_RESPONSES: msgspec.json.Decoder(_Responses),
}
_MESSAGE: Final = msgspec.json.Decoder(_Message)
_ADDED_BY_CLIENTS: Final = "x-anthropic-billing-header"
"""A system prompt that begins so is cut by some engines, and by others not."""


def plain_chat(api: Api, body: bytes) -> Chat | None:
    """The chat; None where engines may differ on it, or the body is none of this API."""
    decoder = _KINDS.get(api)
    if decoder is None:
        return None
    try:
        asked: _Anthropic | _Responses = decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if isinstance(asked, _Anthropic):
        system, said = asked.system, asked.messages
        if any(message.role not in ("user", "assistant") for message in said):
            return None
    else:
        system = asked.instructions or ""
        said = [_Message("user", asked.input)] if isinstance(asked.input, str) else asked.input
    whole = ([_Message("system", system)] if system else []) + said
    texts = [_text(message.content) for message in whole]
    if not said or None in texts or (texts[0] or "").startswith(_ADDED_BY_CLIENTS):
        return None
    messages = [{"role": one.role, "content": text or ""} for one, text in zip(whole, texts, strict=True)]
    return Chat(asked.model, messages)


def plain_text(item: bytes | msgspec.Raw) -> dict[str, str] | None:
    """One message or item as a turn of a chat; None where engines may differ on it."""
    try:
        message = _MESSAGE.decode(item)
    except msgspec.DecodeError:
        return None
    text = _text(message.content)
    return None if text is None else {"role": message.role, "content": text}


def _text(content: str | list[_Part]) -> str | None:
    if isinstance(content, str):
        return content
    return content[0].text if len(content) == 1 else None
