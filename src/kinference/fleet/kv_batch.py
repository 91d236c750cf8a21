"""One batch of KV-cache events as vLLM and SGLang publish them, read as from a stranger.

A batch is a msgpack array: time, events, and further fields that are not needed. An event is a map with its kind under
`type`, or, from older engines, an array with its kind first and its fields in the order of `_FIELDS`. Fields may be
missing at the end or be added there; kinds of event that are not known are passed over.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Final

import msgspec

from kinference.core.prefix.engine_blocks import BlocksCleared, BlocksRemoved, BlocksStored, CacheEvent
from kinference.ids import Seconds

BLOCK_TOKENS_MAX = 8_192
GROUPS_MAX = 64
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "BlockStored": (
        "block_hashes",
        "parent_block_hash",
        "token_ids",
        "block_size",
        "lora_id",
        "medium",
        "lora_name",
        "extra_keys",
        "group_idx",
        "kv_cache_spec_kind",
    ),
    "BlockRemoved": ("block_hashes", "medium", "group_idx"),
    "AllBlocksCleared": (),
}
_ON_DEVICE = (None, "GPU", "gpu")
"""What has left for slower memory is not counted as cached."""
_WHOLE_PREFIX = (None, "full_attention", "mla_attention")
"""Kinds of cache whose blocks hold a prompt from its beginning on: what a sliding window or a state holds, does not."""


@dataclass(frozen=True, slots=True)
class KvBatch:
    """What an engine did in one step."""

    at: Seconds
    """By the engine's own wall clock."""
    events: tuple[CacheEvent, ...]
    malformed: int
    """Events that made no sense."""


class _Malformed(Exception):
    """An event that makes no sense."""


def encode_extra(*parts: object) -> bytes:
    """What sets a block apart beside its tokens, in one spelling: an adapter, a salt, a picture; b"" for nothing."""
    return msgspec.msgpack.encode(parts) if parts else b""


class BatchReader:
    """Reads the batches of one publisher. It remembers which of the engine's caches are not of the kind we follow."""

    def __init__(self) -> None:
        self._others: set[object] = set()

    def read(self, payload: bytes) -> KvBatch | None:
        """None when it is no batch at all."""
        try:
            batch = msgspec.msgpack.decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError, TypeError):
            return None
        if not isinstance(batch, list) or len(batch) < 2 or not isinstance(batch[1], list):  # noqa: PLR2004 - time, events
            return None
        at = batch[0]
        if isinstance(at, bool) or not isinstance(at, int | float) or not isfinite(at):
            return None
        events: list[CacheEvent] = []
        malformed = 0
        for told in batch[1]:
            try:
                event = self._event(told)
            except _Malformed:
                malformed += 1
            else:
                if event is not None:
                    events.append(event)
        return KvBatch(float(at), tuple(events), malformed)

    def _event(self, told: object) -> CacheEvent | None:
        kind, event = _named(told)
        if kind == "AllBlocksCleared":
            return BlocksCleared()
        if kind not in _FIELDS or event.get("medium") not in _ON_DEVICE:
            return None
        group = event.get("group_idx")
        if not isinstance(group, int | None):
            raise _Malformed
        if kind == "BlockRemoved":
            return None if group in self._others else BlocksRemoved(_hashes(event.get("block_hashes")))
        if event.get("kv_cache_spec_kind") not in _WHOLE_PREFIX:
            if len(self._others) < GROUPS_MAX:
                self._others.add(group)
            return None
        return _stored(event)


def _named(told: object) -> tuple[str, Mapping[object, object]]:
    """An event's kind and its fields by name."""
    if isinstance(told, dict) and isinstance(kind := told.get("type"), str):
        return kind, told
    if isinstance(told, list) and told and isinstance(told[0], str):
        return told[0], dict(zip(_FIELDS.get(told[0], ()), told[1:], strict=False))
    raise _Malformed


def _stored(event: Mapping[object, object]) -> BlocksStored:
    hashes, parent = _hashes(event.get("block_hashes")), event.get("parent_block_hash")
    size, tokens = event.get("block_size"), _tokens(event.get("token_ids"))
    if not isinstance(size, int) or not 0 < size <= BLOCK_TOKENS_MAX or len(tokens) != size * len(hashes):
        raise _Malformed
    return BlocksStored(hashes, None if parent is None else _hash(parent), tokens, size, _extras(event, len(hashes)))


def _extras(event: Mapping[object, object], count: int) -> tuple[bytes, ...]:
    """What sets each block apart. An engine that does not list it tells at least the adapter and the salt."""
    listed, adapter = event.get("extra_keys"), event.get("lora_name") or event.get("lora_id")
    usual = [] if adapter is None else [adapter]
    salt = [event["cache_salt"]] if event.get("cache_salt") and event.get("parent_block_hash") is None else []
    entries: Sequence[object] = listed if isinstance(listed, list) else ()
    extras = []
    for place in range(count):
        entry = entries[place] if place < len(entries) else None
        parts = entry if isinstance(entry, list) else [*usual, *(salt if place == 0 else ())]
        extras.append(encode_extra(*parts))
    return tuple(extras)


def _tokens(told: object) -> Sequence[int]:
    if not isinstance(told, list):
        raise _Malformed
    try:
        return array("I", told)
    except (TypeError, OverflowError):
        raise _Malformed from None


def _hashes(told: object) -> tuple[int, ...]:
    if not isinstance(told, list):
        raise _Malformed
    return tuple([_hash(one) for one in told])


def _hash(told: object) -> int:
    """An engine's name for a block: a number, or a digest of which the end is enough."""
    if isinstance(told, int):
        return told
    if isinstance(told, bytes):
        return int.from_bytes(told[-8:], "big")
    raise _Malformed
