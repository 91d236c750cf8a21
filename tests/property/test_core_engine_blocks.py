"""The index and the engines' events together, under any sequence of calls: consistent, bounded, and never stuck."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kinference.core.prefix.engine_blocks import (
    BlocksCleared,
    BlocksRemoved,
    BlocksStored,
    CacheEvent,
    EngineBlocks,
    LinkedPrompt,
)
from kinference.core.prefix.hashing import BLOCK_BYTES
from kinference.core.prefix.index import Insertion, PrefixIndex

SLOTS = st.integers(0, 2)
NAMES = st.integers(0, 9)
PATHS = st.lists(st.integers(0, 1), min_size=1, max_size=8)
EVENTS: st.SearchStrategy[CacheEvent] = st.one_of(
    st.just(BlocksCleared()),
    st.builds(BlocksRemoved, st.lists(NAMES, max_size=4).map(tuple)),
    st.builds(
        BlocksStored,
        st.lists(NAMES, max_size=4).map(tuple),
        st.none() | NAMES,
        st.lists(st.integers(0, 1), max_size=8),
        st.integers(1, 2),
        st.lists(st.sampled_from([b"", b"a"]), max_size=4).map(tuple),
    ),
)


def path(prompt: list[int]) -> list[int]:
    return [hash(tuple(prompt[: depth + 1])) & 0xFFFF_FFFF for depth in range(len(prompt))]


class AnyEvents(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.index = PrefixIndex(total_capacity=60)
        self.blocks = EngineBlocks(self.index, tracked_max=12, links_max=10)
        self.prompts: list[list[int]] = []
        self.insertions: list[Insertion] = []

    @rule(slot=SLOTS, prompt=PATHS)
    def insert(self, slot: int, prompt: list[int]) -> None:
        self.prompts.append(path(prompt))
        self.insertions.append(self.index.insert(slot, path(prompt)))

    @rule(place=st.integers(0, 1_000))
    def rollback(self, place: int) -> None:
        if self.insertions:
            self.index.rollback(self.insertions.pop(place % len(self.insertions)))

    @rule(place=st.integers(0, 1_000), cached=st.integers(0, 8))
    def correct(self, place: int, cached: int) -> None:
        if self.insertions:
            self.index.correct(self.insertions[place % len(self.insertions)], cached)

    @rule(slot=SLOTS, rank=st.integers(0, 1), event=EVENTS)
    def engine(self, slot: int, rank: int, event: CacheEvent) -> None:
        if isinstance(event, BlocksCleared):
            self.insertions = [one for one in self.insertions if one.slot != slot]
        self.blocks.apply(slot, rank, event)

    @rule(slot=SLOTS, rank=st.integers(0, 1))
    def lose(self, slot: int, rank: int) -> None:
        self.blocks.lose(slot, rank)

    @rule(prompt=PATHS, tokens=st.lists(st.integers(0, 1), max_size=16))
    def link(self, prompt: list[int], tokens: list[int]) -> None:
        self.blocks.link(LinkedPrompt(path(prompt), len(prompt) * BLOCK_BYTES, tokens))

    @rule(slot=SLOTS, prompt=PATHS, confirmed=st.none() | st.integers(0, 8))
    def settle(self, slot: int, prompt: list[int], confirmed: int | None) -> None:
        self.blocks.settle(slot, path(prompt), confirmed)

    @rule(slot=SLOTS)
    def forget(self, slot: int) -> None:
        self.insertions = [one for one in self.insertions if one.slot != slot]
        self.index.forget(slot)
        self.blocks.forget(slot)

    @invariant()
    def everything_is_bounded(self) -> None:
        assert sum(self.blocks.tracked(slot) for slot in range(3)) <= 2 * 12
        assert len(self.index) <= sum(self.index.held(slot) for slot in range(3)) <= 3 * 60

    @invariant()
    def who_is_said_to_hold_a_block_holds_it(self) -> None:
        for blocks in self.prompts[-5:]:
            for slot, depth in self.index.match(blocks, 0b111).items():
                assert 0 < depth <= len(blocks)
                assert self.index.match([blocks[depth - 1]], 1 << slot) == {slot: 1}


TestAnyEvents = AnyEvents.TestCase
TestAnyEvents.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
