"""What translated answers left in a conversation for their issuers, taken out where it goes on in its own API to
another: that one would refuse the whole request. Nothing else of the body changes.
"""

import base64
import re
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from kinference.shapes.patch import splice, without_member
from kinference.shapes.scan import Member, decode, has, members
from kinference.shapes.seals import MARK, NO_SIGNATURE
from kinference.vocabulary import Api

_CHAT: Final = Api.OPENAI_CHAT
"""Read once: Python 3.11 finds a member of an enum by a hook of its metaclass, at ten times the price of a constant."""
_MARK: Final = MARK.encode()
_IN_BASE64: Final = base64.b64encode(_MARK)[:-2]  # the last characters depend on what follows
_GEMINIS: Final = re.compile(rb'("thought_?[sS]ignature"\s*:\s*)"%b[^"]*"' % _IN_BASE64)
_THINKS: Final = b'thinking"'
"""In the type of every thought of Messages; each search costs microseconds, and most bodies have none."""
_UNSIGNED: Final = re.compile(rb'"signature"\s*:\s*""')
_CITED: Final = re.compile(rb'"encrypted_index"\s*:\s*"%b"' % _MARK)
"""What a page is cited by that another provider's answer rests on."""
_EMPTY: Final = re.compile(rb'"content"\s*:\s*\[\]')
_NO_BLOCKS: Final = re.compile(rb'"thinking_blocks"\s*:\s*\[\]')
_LIST: Final = msgspec.json.Decoder(list[msgspec.Raw])


class _Thought(msgspec.Struct):
    """A block of Messages or an item of Responses, as far as it tells whose thought it is."""

    type: str = ""
    signature: str | None = None
    data: str | None = None
    encrypted_content: str | None = None
    container_id: str | None = None


_THOUGHT: Final = msgspec.json.Decoder(_Thought)


def without_foreign_thoughts(body: bytes, api: Api, *, at_provider: bool) -> bytes:
    """The body without thoughts that we sealed for somebody else, and at a provider without those that nobody signed;
    the very same object where there are none.
    """
    if not at_provider and api is _CHAT:  # engines pass over what they do not know
        return body
    match api:
        case Api.ANTHROPIC_MESSAGES if has(body, _THINKS) or has(body, _MARK):
            is_unsigned = at_provider and has(body, _THINKS) and _UNSIGNED.search(body) is not None
            if is_unsigned or has(body, _MARK):
                return _within(body, "messages", lambda message: _kept_message(message, at_provider=at_provider))
        case Api.OPENAI_RESPONSES if has(body, _MARK):
            return _within(body, "input", _kept_item)
        case Api.OPENAI_CHAT if has(body, _MARK):
            return _within(body, "messages", _kept_turn)
        case Api.GEMINI if has(body, _IN_BASE64):
            return _GEMINIS.sub(rb'\1"%b"' % NO_SIGNATURE.encode(), body)
    return body


def _within(text: bytes, key: str, kept: Callable[[bytes], bytes | None]) -> bytes:
    """The object with the list at a key changed element by element, where it is one."""
    found = ((member, _changed(text, member, kept)) for member in members(text) if member.key == key)
    return splice(text, [(member, change) for member, change in found if change is not None])


def _changed(text: bytes, member: Member, kept: Callable[[bytes], bytes | None]) -> bytes | None:
    value = text[member.start : member.end]
    if not value.startswith(b"["):
        return None
    before = [bytes(element) for element in decode(_LIST, value)]
    after = [made for element in before if (made := kept(element)) is not None]
    return None if after == before else b"[" + b",".join(after) + b"]"


def _kept_item(item: bytes) -> bytes | None:
    """An item of Responses or a block, None where it is a thought that we sealed."""
    return None if any(content.startswith(MARK) for content in _seals_of(item)) else item


def _kept_turn(message: bytes) -> bytes:
    """A message of Chat's without blocks that we sealed, and without a member for them where it has no others."""
    if not message.startswith(b"{") or _MARK not in message:
        return message
    shorter = _within(message, "thinking_blocks", _kept_item)
    return without_member(shorter, "thinking_blocks") if _NO_BLOCKS.search(shorter) else shorter


def _kept_message(message: bytes, *, at_provider: bool) -> bytes | None:
    """A message without such blocks; None where it has nothing else."""
    if not message.startswith(b"{") or (_MARK not in message and b'"signature"' not in message):
        return message

    def kept(block: bytes) -> bytes | None:
        thought = _thought(block)
        if thought.type == "text":
            return without_member(block, "citations") if _CITED.search(block) else block
        is_unsigned = at_provider and thought.type == "thinking" and not thought.signature
        return None if is_unsigned or any(seal.startswith(MARK) for seal in _seals_of(block)) else block

    shorter = _within(message, "content", kept)
    return None if shorter is not message and _EMPTY.search(shorter) else shorter


def _seals_of(text: bytes) -> Iterator[str]:
    thought = _thought(text)
    given = (thought.signature, thought.data, thought.encrypted_content, thought.container_id)
    yield from (seal for seal in given if seal)


def _thought(text: bytes) -> _Thought:
    try:
        return _THOUGHT.decode(text)
    except msgspec.DecodeError:
        return _Thought()
