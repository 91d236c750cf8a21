"""The leading part of a conversation that an engine can be asked about, where the whole is beyond that.

Engines make tokens of a picture that no template shows, and of calls, results and thoughts in Messages and Responses
each makes its own. What stands before the first of these is text, the tools and the system prompt above all: it is
what prompts share. Engines mostly make the same chat of it; whether one did is for its events to say.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

import msgspec

from kinference.shapes.detect import parse
from kinference.shapes.plain_chat import plain_text
from kinference.shapes.scan import BadBody
from kinference.vocabulary import Api

# Inside a JSON string the quotes would be escaped, so this matches structure and never text.
_MEDIA: Final = re.compile(
    rb'"type"\s{0,32}:\s{0,32}"(?:image|image_url|input_image|image_embeds|image_pil|video|video_url'
    rb'|audio|audio_url|input_audio|file|input_file|document)"'
)
_ABSENT: Final = msgspec.Raw()
_CHATS: Final = frozenset({Api.OPENAI_CHAT, Api.ANTHROPIC_MESSAGES, Api.OPENAI_RESPONSES})
_MEMBERS: Final = ("messages", "input", "system", "instructions", "tools")


class _Body(msgspec.Struct):
    model: str
    messages: msgspec.Raw = _ABSENT
    input: msgspec.Raw = _ABSENT
    system: msgspec.Raw = _ABSENT
    instructions: msgspec.Raw = _ABSENT
    tools: msgspec.Raw = _ABSENT
    tool_choice: msgspec.Raw = _ABSENT
    chat_template_kwargs: msgspec.Raw = _ABSENT
    cache_salt: str | None = None


class _Tool(msgspec.Struct):
    name: str
    type: str = "custom"
    description: str | None = None
    input_schema: msgspec.Raw = _ABSENT
    parameters: msgspec.Raw = _ABSENT


class _Part(msgspec.Struct):
    text: str
    type: str = "text"


@dataclass(frozen=True, slots=True)
class LeadingChat:
    """A chat that begins as a conversation does."""

    body: bytes
    """As OpenAI's API has it, for an engine that is asked for its tokens."""
    prompt_bytes: int
    """How many of the first bytes of the conversation's own canonical stream it is."""
    model: str
    salt: str


def is_text(body: bytes) -> bool:
    """Whether nothing in a chat's body is a picture, a sound or a file."""
    return _MEDIA.search(body) is None


def leading_chat(api: Api, body: bytes, path: str) -> LeadingChat | None:
    """The chat; None where not even the first message is text, or the body is none of these APIs."""
    try:
        return _leading(api, body, path) if api in _CHATS else None
    except (BadBody, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _leading(api: Api, body: bytes, path: str) -> LeadingChat | None:
    asked = msgspec.json.decode(body, type=_Body)
    name = "input" if api is Api.OPENAI_RESPONSES else "messages"
    said = bytes(getattr(asked, name))
    if said.startswith(b'"'):
        cut, turns = said, [{"role": "user", "content": msgspec.json.decode(said, type=str)}]
    else:
        items = msgspec.json.decode(said, type=list[msgspec.Raw])
        turns = _texts(api, items)
        cut = _cut(said, items[: len(turns)])
    if not turns:
        return None
    leading = {member: raw for member in _MEMBERS if bytes(raw := getattr(asked, member))}
    leading[name] = msgspec.Raw(cut)
    prompt = parse(msgspec.json.encode({"model": asked.model, **leading}), path)
    chat: dict[str, object] = {"model": asked.model, "messages": leading[name], "add_generation_prompt": False}
    if api is not Api.OPENAI_CHAT:
        chat["messages"] = [*_system(asked), *turns]
    if bytes(asked.tools) and bytes(asked.tool_choice) != b'"none"':
        chat["tools"] = asked.tools if api is Api.OPENAI_CHAT else _functions(asked.tools)
    if bytes(asked.chat_template_kwargs):
        chat["chat_template_kwargs"] = asked.chat_template_kwargs
    return LeadingChat(msgspec.json.encode(chat), prompt.prompt_bytes, asked.model, asked.cache_salt or "")


def _texts(api: Api, items: Sequence[msgspec.Raw]) -> list[dict[str, str]]:
    """The first items that are text, as turns of a chat; of a chat itself only their number tells."""
    if api is Api.OPENAI_CHAT:
        return [{} for _ in takewhile(is_text, map(bytes, items))]
    return [turn for turn in takewhile(bool, map(plain_text, items)) if turn]


def _cut(said: bytes, items: Sequence[msgspec.Raw]) -> bytes:
    """The list up to the last of these, what stands between them as it is."""
    end = 0
    for item in map(bytes, items):
        end = said.index(item, end) + len(item)
    return said[:end] + b"]"


def _system(asked: _Body) -> list[dict[str, str]]:
    raw = bytes(asked.system) or bytes(asked.instructions)
    if not raw or raw == b"null":
        return []
    given = msgspec.json.decode(raw, type=str | list[_Part])
    text = given if isinstance(given, str) else "".join(part.text for part in given)
    return [{"role": "system", "content": text}] if text else []


def _functions(tools: msgspec.Raw) -> list[dict[str, object]]:
    """The tools as a chat has them; those that run at a provider are none."""
    return [
        {"type": "function", "function": _function(tool)}
        for tool in msgspec.json.decode(tools, type=list[_Tool] | None) or ()
        if tool.type in ("custom", "function")
    ]


def _function(tool: _Tool) -> dict[str, object]:
    schema = bytes(tool.input_schema) or bytes(tool.parameters)
    described = {} if tool.description is None else {"description": tool.description}
    return {"name": tool.name, **described, "parameters": msgspec.Raw(schema or b"{}")}
