from itertools import chain
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinference.core.prefix.engine_blocks import BlocksCleared, BlocksRemoved, BlocksStored
from kinference.fleet.kv_batch import GROUPS_MAX, BatchReader, KvBatch, encode_extra

SAMPLES = Path(__file__).parent / "samples"
"""Captured from vLLM 0.32."""
STORED = {
    "type": "BlockStored",
    "block_hashes": [7, 8],
    "parent_block_hash": 6,
    "token_ids": [1, 2, 3, 4],
    "block_size": 2,
}
AS_ARRAY = ["BlockStored", [7, 8], 6, [1, 2, 3, 4], 2]


def batch(*events: object) -> bytes:
    return msgspec.msgpack.encode([5.0, list(events), 0])


def read(*events: object) -> KvBatch:
    found = BatchReader().read(batch(*events))
    assert found is not None
    return found


def stored(*extras: bytes, parent: int | None = 6) -> BlocksStored:
    return BlocksStored((7, 8), parent, read(AS_ARRAY).events[0].tokens, 2, extras)  # type: ignore[union-attr]


def test_a_real_batch_with_a_salt_is_read() -> None:
    payload = (SAMPLES / "kv_vllm" / "0000.frame2.bin").read_bytes()
    found = BatchReader().read(payload)
    assert found is not None
    cleared, event = found.events
    assert (cleared, found.malformed) == (BlocksCleared(), 0)
    assert isinstance(event, BlocksStored)
    assert (len(event.hashes), event.parent, len(event.tokens), event.block_tokens) == (3, None, 96, 32)
    assert event.extras == (encode_extra("tenantA"), b"", b"")


def test_real_batches_with_evictions_are_read() -> None:
    reader = BatchReader()
    batches = [reader.read(path.read_bytes()) for path in sorted((SAMPLES / "kv_vllm_evict").glob("*.frame2.bin"))]
    events = list(chain.from_iterable(found.events for found in batches if found is not None))
    assert len(batches) == 12
    assert sum(found.malformed for found in batches if found is not None) == 0
    kept = {name for event in events if isinstance(event, BlocksStored) for name in event.hashes}
    gone = {name for event in events if isinstance(event, BlocksRemoved) for name in event.hashes}
    assert gone
    assert gone <= kept


@pytest.mark.parametrize(
    "told",
    [
        STORED,
        AS_ARRAY,
        [*AS_ARRAY, None],
        [*AS_ARRAY, None, "GPU", None, None, 0, "full_attention", None, "more", {"to": "come"}],
        STORED | {"medium": "GPU", "session_id": "s", "group_idx": None, "extra_keys": [None, None]},
    ],
)
def test_maps_and_arrays_of_any_age_say_the_same(told: object) -> None:
    assert read(told).events == (stored(b"", b""),)
    assert read(told).malformed == 0


def test_removals_and_clearings_are_read_in_both_spellings() -> None:
    events = read({"type": "BlockRemoved", "block_hashes": [1], "medium": "GPU"}, {"type": "AllBlocksCleared"})
    assert events.events == (BlocksRemoved((1,)), BlocksCleared())
    assert read(["BlockRemoved", [1]], ["AllBlocksCleared"]).events == events.events


@pytest.mark.parametrize(
    ("fields", "extras"),
    [
        ({"lora_name": "ada"}, (encode_extra("ada"), encode_extra("ada"))),
        (
            {"lora_name": "ada", "extra_keys": [["ada", "salt"], ["ada"]]},
            (encode_extra("ada", "salt"), encode_extra("ada")),
        ),
        ({"lora_id": 3}, (encode_extra(3), encode_extra(3))),
        ({"extra_keys": [["picture"], None]}, (encode_extra("picture"), b"")),
        ({"extra_keys": [["picture"]]}, (encode_extra("picture"), b"")),
    ],
)
def test_what_sets_blocks_apart_beside_their_tokens_is_told(
    fields: dict[str, object], extras: tuple[bytes, ...]
) -> None:
    assert read(STORED | fields).events == (stored(*extras),)


def test_sglang_tells_its_salt_as_a_field() -> None:
    told = STORED | {"parent_block_hash": None, "cache_salt": "s"}
    assert read(told).events == (stored(encode_extra("s"), b"", parent=None),)


def test_a_digest_is_known_by_its_end() -> None:
    digest = bytes(24) + (9).to_bytes(8, "big")
    assert read({"type": "BlockRemoved", "block_hashes": [digest]}).events == (BlocksRemoved((9,)),)


@pytest.mark.parametrize(
    "told",
    [
        {"type": "SomethingNew", "x": 1},
        ["SomethingNew"],
        STORED | {"medium": "CPU_PINNED"},
        {"type": "BlockRemoved", "block_hashes": [1], "medium": "DISK"},
        STORED | {"kv_cache_spec_kind": "sliding_window", "group_idx": 1},
    ],
)
def test_what_is_not_followed_is_passed_over(told: object) -> None:
    assert (read(told).events, read(told).malformed) == ((), 0)


def test_removals_from_a_cache_that_is_not_followed_are_passed_over() -> None:
    window = STORED | {"kv_cache_spec_kind": "sliding_window", "group_idx": 1}
    removed = {"type": "BlockRemoved", "block_hashes": [7]}
    found = read(window, removed | {"group_idx": 1}, removed | {"group_idx": 0})
    assert found.events == (BlocksRemoved((7,)),)
    many = [window | {"group_idx": number} for number in range(GROUPS_MAX + 2)]
    assert read(*many, removed | {"group_idx": GROUPS_MAX + 1}).events == (BlocksRemoved((7,)),)


@pytest.mark.parametrize(
    "told",
    [
        None,
        7,
        [],
        [7],
        ["BlockStored"],
        {"type": "BlockRemoved", "block_hashes": 5},
        {"type": "BlockRemoved", "block_hashes": ["text"]},
        {"type": "BlockRemoved", "block_hashes": [1], "group_idx": []},
        STORED | {"block_size": 0},
        STORED | {"block_size": 10**6},
        STORED | {"block_size": "2"},
        STORED | {"token_ids": [1, 2, 3]},
        STORED | {"token_ids": [1, 2, 3, -4]},
        STORED | {"token_ids": [1, 2, 3, 2**32]},
        STORED | {"token_ids": [1, 2, 3, 4.5]},
        STORED | {"token_ids": None},
        STORED | {"block_hashes": None},
        STORED | {"parent_block_hash": "text"},
    ],
)
def test_an_event_that_makes_no_sense_is_counted_and_the_others_count(told: object) -> None:
    found = read(told, AS_ARRAY)
    assert (found.events, found.malformed) == ((stored(b"", b""),), 1)


@pytest.mark.parametrize(
    "payload",
    [
        b"\x81\x91\x01\x02",
        b"",
        b"\xc1",
        b"\x91" * 5_000,
        *map(msgspec.msgpack.encode, [1, [], [5.0], [5.0, 1], ["x", []], [True, []]]),
    ],
)
def test_what_is_no_batch_is_none(payload: bytes) -> None:
    assert BatchReader().read(payload) is None


PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary()
ANYTHING = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
FIELD = st.sampled_from([*STORED, "medium", "extra_keys", "group_idx", "lora_name", "cache_salt", "kv_cache_spec_kind"])


@settings(max_examples=60)
@given(st.lists(ANYTHING | st.dictionaries(FIELD, ANYTHING).map(lambda fields: STORED | fields), max_size=5))
def test_no_batch_of_a_hostile_engine_raises(events: list[object]) -> None:
    found = BatchReader().read(batch(*events))
    assert found is not None
    assert len(found.events) + found.malformed <= len(events)


@given(st.binary())
def test_no_bytes_raise(payload: bytes) -> None:
    BatchReader().read(payload)
