"""The prefix index at its budgets: longest match, memory, eviction, and the engines' events.

    python bench/prefix_index.py

512 endpoints, prompts of 64K tokens (512 blocks of 512 bytes at four bytes a token). Memory is what the allocator
counts, so it is exact; a time is the least of many runs, to which the load of others adds nothing, and the cost of one
xxh3 of 64 bytes stands beside them.
"""

import gc
import tracemalloc
from collections.abc import Callable
from random import Random
from time import perf_counter

from xxhash import xxh3_64_intdigest

from kinference.core.prefix.engine_blocks import BlocksRemoved, BlocksStored, EngineBlocks, LinkedPrompt
from kinference.core.prefix.hashing import chain_seed, hash_prompt
from kinference.core.prefix.index import PrefixIndex
from kinference.fleet.kv_batch import BatchReader
from kinference.sim.kv_events import BlockStored, encode_batch

ENDPOINTS = 512
PROMPT_TOKENS = 65_536
PROMPT_BYTES = 4 * PROMPT_TOKENS
BLOCKS = 1_000_000
EVENT_BLOCKS, BLOCK_TOKENS = 128, 16
ALL = (1 << ENDPOINTS) - 1


def main() -> None:
    rng = Random(1)
    print(f"one xxh3 of 64 bytes: {1e9 * timed(lambda: xxh3_64_intdigest(b'x' * 64), 20_000):.0f} ns")
    match(rng)
    memory(rng)
    eviction(rng)
    events(rng)


def timed(work: Callable[[], object], times: int) -> float:
    spans = []
    for _ in range(times):
        began = perf_counter()
        work()
        spans.append(perf_counter() - began)
    return min(spans)


def match(rng: Random) -> None:
    text = rng.randbytes(PROMPT_BYTES)
    hashed = timed(lambda: hash_prompt((text,), chain_seed("m", "")), 200)
    blocks = hash_prompt((text,), chain_seed("m", "")).blocks
    for name, depths in (
        ("all hold all of it", [len(blocks)] * ENDPOINTS),
        ("each holds another share of it", [rng.randrange(len(blocks) + 1) for _ in range(ENDPOINTS)]),
        ("one in eight holds half of it", [len(blocks) // 2 if slot % 8 == 0 else 0 for slot in range(ENDPOINTS)]),
    ):
        index = PrefixIndex()
        for slot, depth in enumerate(depths):
            index.insert(slot, blocks[:depth])
        took = timed(lambda index=index: index.match(blocks, ALL), 200)  # type: ignore[misc]
        print(f"match, 64K tokens, {ENDPOINTS} endpoints, {name}: {1e6 * took:.0f} us")
    print(f"hashing the same prompt: {1e6 * hashed:.0f} us")


def memory(rng: Random) -> None:
    index = PrefixIndex()
    paths = [[rng.getrandbits(64) for _ in range(500)] for _ in range(BLOCKS // 500)]
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number, path in enumerate(paths):
        index.resize(number % 64, BLOCKS)
        index.insert(number % 64, path)
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    own = 36 * BLOCKS
    print(f"memory, {len(index):,} blocks on 64 endpoints: {(held + own) / 1e6:.0f} MB, the hashes themselves included")
    blocks = EngineBlocks(PrefixIndex())
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(BLOCKS // EVENT_BLOCKS):
        blocks.apply(number % 64, 0, stored(rng))
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    tracked = sum(blocks.tracked(slot) for slot in range(64))
    print(f"memory, {tracked:,} engine blocks by name: {held / 1e6:.0f} MB")


def eviction(rng: Random) -> None:
    """The same insertions into caches of growing size, all full: the time for a block stays what it is."""
    for capacity in (1_000, 10_000, 100_000, 1_000_000):
        index = PrefixIndex()
        index.resize(0, capacity)
        paths = [[rng.getrandbits(64) for _ in range(100)] for _ in range(capacity // 100 + 2_000)]
        for path in paths[:-2_000]:
            index.insert(0, path)
        began = perf_counter()
        for path in paths[-2_000:]:
            index.insert(0, path)
        print(
            f"insertion and eviction, cache of {capacity:,}: {1e6 * (perf_counter() - began) / 200_000:.2f} us a block"
        )


def events(rng: Random) -> None:
    blocks, reader = EngineBlocks(PrefixIndex()), BatchReader()
    tokens = [rng.randrange(150_000) for _ in range(EVENT_BLOCKS * BLOCK_TOKENS)]
    names = [rng.getrandbits(64) for _ in range(EVENT_BLOCKS)]
    payload = encode_batch(
        1.0, [BlockStored(block_hashes=names, parent_block_hash=None, token_ids=tokens, block_size=BLOCK_TOKENS)]
    )
    read = timed(lambda: reader.read(payload), 500)
    batch = reader.read(payload)
    assert batch is not None

    def both() -> None:
        blocks.apply(0, 0, batch.events[0])
        blocks.apply(0, 0, BlocksRemoved(tuple(names)))

    took = timed(both, 500)
    print(
        f"events: {1e6 * read / EVENT_BLOCKS:.2f} us a stored block to read, {1e6 * took / EVENT_BLOCKS:.2f} us to store and remove it"
    )
    text = rng.randbytes(PROMPT_BYTES)
    long = [rng.randrange(150_000) for _ in range(PROMPT_TOKENS)]
    prompts = [LinkedPrompt(hash_prompt((text,), number).blocks, PROMPT_BYTES, long) for number in range(20)]
    several = iter(prompts)
    print(f"linking a prompt of 64K tokens: {1e3 * timed(lambda: blocks.link(next(several)), 20):.1f} ms, aside")


def stored(rng: Random) -> BlocksStored:
    names = tuple(rng.getrandbits(64) for _ in range(EVENT_BLOCKS))
    tokens = [rng.randrange(150_000) for _ in range(EVENT_BLOCKS)]
    return BlocksStored(names, None, tokens, 1, ())


if __name__ == "__main__":
    main()
