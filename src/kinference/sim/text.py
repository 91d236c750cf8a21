"""A cheap pseudo-tokenizer, four bytes a token, and the words that simulated models say.

Every message starts on a token boundary and every word of an answer is exactly one token, so the tokens of a
conversation's turn, with its answer, are a prefix of the tokens of its next turn, as with a real chat template.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeGuard

import msgspec
import xxhash

from kinference.sim.kv_cache import BlockHash

TOKEN_BYTES = 4

_VOCABULARY = (
    "all and any ask big box can car day dog eat end far few fly get got had has her him how ice its job joy key let "
    "low man map new not now oak odd off old one our out own pen put ran red run sad saw say sea see set she sky sun "
    "tea ten the two use van war was way who why yes you zip "
)
"""Words of three letters and a space: four bytes, one token each."""

_PART_TEXTS = ("text", "input_text", "output_text", "thinking", "refusal")


def pad(text: str) -> bytes:
    """The bytes of a text, filled up to a whole number of tokens."""
    raw = text.encode()
    return raw + b"\0" * (-len(raw) % TOKEN_BYTES)


def token_count(tokens: bytes) -> int:
    return len(tokens) // TOKEN_BYTES


def token_ids(tokens: bytes) -> list[int]:
    """The tokens as numbers, 32 bits each."""
    return memoryview(tokens).cast("I").tolist()


def from_token_ids(ids: Iterable[int]) -> bytes:
    """The way back; numbers beyond 32 bits are cut, since nobody's vocabulary has them."""
    return b"".join((number & 0xFFFFFFFF).to_bytes(TOKEN_BYTES, "little") for number in ids)


def render_chat(messages: Iterable[Mapping[str, object]], preamble: object = None) -> bytes:
    """Messages as a chat template would lay them out, up to where the assistant begins to speak."""
    parts = [pad(_plain(preamble))] if preamble else []
    for message in messages:
        parts.append(pad(f"<|{message.get('role', '')}|>"))
        parts.append(pad(_plain(message.get("content"))))
        calls = message.get("tool_calls")
        if calls:
            parts.append(pad(_plain(calls)))
        parts.append(pad("<|end|>"))
    parts.append(pad("<|assistant|>"))
    return b"".join(parts)


def _plain(content: object) -> str:
    """The text of a message's content: a string, or a list of parts; what is not text stands as its JSON."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_part_text(part) for part in content)
    return msgspec.json.encode(content).decode()


def _part_text(part: object) -> str:
    if isinstance(part, dict) and part.get("type") in _PART_TEXTS:
        text = part.get("text")
        if isinstance(text, str):
            return text
    return part if isinstance(part, str) else msgspec.json.encode(part).decode()


def words(prompt: bytes, count: int) -> Iterator[str]:
    """The answer to a prompt: always the same, another one for another prompt, each word one token."""
    state = xxhash.xxh3_64_intdigest(prompt)
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        start = (state >> 33) % (len(_VOCABULARY) // TOKEN_BYTES) * TOKEN_BYTES
        yield _VOCABULARY[start : start + TOKEN_BYTES]


def block_hashes(tokens: bytes, block_tokens: int, root: int) -> tuple[BlockHash, ...]:
    """The names of the full blocks: each the hash of its own tokens, seeded with the name of the block before."""
    size = block_tokens * TOKEN_BYTES
    names: list[BlockHash] = []
    name = root
    for start in range(0, len(tokens) - size + 1, size):
        name = xxhash.xxh3_64_intdigest(tokens[start : start + size], name)
        names.append(BlockHash(name))
    return tuple(names)


def root_hash(seed: int, salt: str) -> int:
    """Where a chain starts. Engines with other seeds name the same tokens otherwise, as real ones do."""
    return xxhash.xxh3_64_intdigest(salt.encode(), seed & 0xFFFFFFFFFFFFFFFF)


def as_prompts(prompt: object) -> Sequence[bytes]:
    """A completion's or an embedding's input: a text, token ids, or a list of either. Empty when it is none of them."""
    if isinstance(prompt, list) and not _is_token_ids(prompt):
        found = [_as_prompt(item) for item in prompt]
    else:
        found = [_as_prompt(prompt)]
    prompts = [one for one in found if one]
    return prompts if len(prompts) == len(found) else []


def _as_prompt(prompt: object) -> bytes:
    if isinstance(prompt, str):
        return pad(prompt)
    if isinstance(prompt, list) and _is_token_ids(prompt):
        return from_token_ids(prompt)
    return b""


def _is_token_ids(prompt: list[object]) -> TypeGuard[list[int]]:
    return bool(prompt) and all(isinstance(item, int) for item in prompt)
