"""The prefix index against a naive model, and its invariants, under any sequence of calls."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kinference.core.prefix.index import Insertion, PrefixIndex

SLOTS = 5
PROMPTS = st.lists(st.integers(0, 2), max_size=12)


def path(prompt: list[int]) -> list[int]:
    """Chained hashes of a prompt: equal prompts up to a depth have equal hashes up to there."""
    return [hash(tuple(prompt[: depth + 1])) & 0xFFFF_FFFF for depth in range(len(prompt))]


class IndexAgainstModel(RuleBasedStateMachine):
    """The model is told the presence by the index itself (one block at a time) and checks what `match` makes of it."""

    def __init__(self) -> None:
        super().__init__()
        self.index = PrefixIndex(total_capacity=100)
        self.prompts: dict[tuple[int, ...], list[int]] = {}
        self.insertions: list[Insertion] = []
        self.capacities: dict[int, int] = {}
        self.seen: tuple[int, dict[tuple[int, ...], dict[int, int]]] = (0, {})
        """The changes there had been a step ago, and what of each prompt each slot held then."""

    @initialize(capacities=st.lists(st.integers(1, 30), min_size=SLOTS, max_size=SLOTS))
    def sizes(self, capacities: list[int]) -> None:
        for slot, capacity in enumerate(capacities):
            self.index.resize(slot, capacity)
            self.capacities[slot] = capacity

    @rule(slot=st.integers(0, SLOTS - 1), prompt=PROMPTS)
    def insert(self, slot: int, prompt: list[int]) -> None:
        blocks = path(prompt)
        self.prompts[tuple(prompt)] = blocks
        held_before = self._presence(slot, blocks).count(True)
        insertion = self.index.insert(slot, blocks)
        self.insertions.append(insertion)
        assert insertion.known == min(held_before, self.index.capacity(slot))

    @rule(place=st.integers(0, 1_000))
    def rollback(self, place: int) -> None:
        if self.insertions:
            self.index.rollback(self.insertions.pop(place % len(self.insertions)))

    @rule(place=st.integers(0, 1_000), cached=st.integers(0, 12))
    def correct(self, place: int, cached: int) -> None:
        if self.insertions:
            self.index.correct(self.insertions[place % len(self.insertions)], cached)

    @rule(slot=st.integers(0, SLOTS - 1), capacity=st.integers(1, 30))
    def resize(self, slot: int, capacity: int) -> None:
        self.index.resize(slot, capacity)
        self.capacities[slot] = capacity

    @rule(slot=st.integers(0, SLOTS - 1))
    def forget(self, slot: int) -> None:
        self.index.forget(slot)
        self.insertions = [one for one in self.insertions if one.slot != slot]
        self.index.resize(slot, self.capacities[slot])
        assert self.index.held(slot) == 0

    @invariant()
    def whoever_holds_more_or_less_than_a_step_ago_has_changed_since(self) -> None:
        changes, before = self.seen
        now = {prompt: self.index.match(blocks, (1 << SLOTS) - 1) for prompt, blocks in self.prompts.items()}
        changed = self.index.changed_since(changes)
        for prompt, held in before.items():
            for slot in range(SLOTS):
                assert held.get(slot, 0) == now[prompt].get(slot, 0) or changed >> slot & 1
        assert bool(changed) == (self.index.changes > changes)
        self.seen = self.index.changes, now

    @invariant()
    def match_is_the_naive_longest_prefix_and_presence_is_monotone(self) -> None:
        for blocks in self.prompts.values():
            found = self.index.match(blocks, (1 << SLOTS) - 1)
            for slot in range(SLOTS):
                presence = self._presence(slot, blocks)
                depth = presence.index(False) if False in presence else len(presence)
                assert True not in presence[depth:]
                assert found.get(slot, 0) == depth

    @invariant()
    def the_oldest_generation_is_known_without_looking_at_each_block(self) -> None:
        for holding in self.index._holdings.values():
            assert holding.oldest() == holding.listed(0)

    @invariant()
    def what_is_held_is_bounded(self) -> None:
        for slot, capacity in self.capacities.items():
            assert self.index.held(slot) <= capacity
        assert len(self.index) <= sum(self.index.held(slot) for slot in range(SLOTS))

    def _presence(self, slot: int, blocks: list[int]) -> list[bool]:
        return [slot in self.index.match([block], 1 << slot) for block in blocks]


TestIndexAgainstModel = IndexAgainstModel.TestCase
TestIndexAgainstModel.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
