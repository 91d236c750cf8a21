"""Engines' events, in tokens, against the index of prompts, in bytes."""

from collections.abc import Sequence

import pytest

from kinference.core.prefix.engine_blocks import (
    BLOCK_SIZES_MAX,
    BlocksCleared,
    BlocksRemoved,
    BlocksStored,
    EngineBlocks,
    LinkedPrompt,
)
from kinference.core.prefix.hashing import BLOCK_BYTES
from kinference.core.prefix.index import PrefixIndex

SIZE = 64
"""Tokens of an engine's block; two of them are as long as one block of the prompt, at four bytes a token."""
TOKENS = list(range(1_000, 1_000 + 8 * SIZE))
BLOCKS = [11, 12, 13, 14]
PROMPT = LinkedPrompt(BLOCKS, 4 * BLOCK_BYTES, TOKENS)
ALL = 0b1111


class Engines:
    """An index, and engines that name their blocks in ways of their own."""

    def __init__(self, *, tracked_max: int = 1_000, links_max: int = 1_000) -> None:
        self.index = PrefixIndex()
        self.blocks = EngineBlocks(self.index, tracked_max, links_max)

    def store(
        self, slot: int, until: int, begin: int = 0, *, rank: int = 0, size: int = SIZE, first: bytes = b""
    ) -> None:
        """The engine stores these of its blocks of the prompt, the first of which has this extra."""
        names = [self.name(slot, rank, place) for place in range(begin, until)]
        parent = self.name(slot, rank, begin - 1) if begin else None
        extras = (first, *[b""] * (until - begin - 1))
        tokens = TOKENS[begin * size : until * size]
        self.blocks.apply(slot, rank, BlocksStored(tuple(names), parent, tokens, size, extras))

    def remove(self, slot: int, *places: int, rank: int = 0) -> None:
        self.blocks.apply(slot, rank, BlocksRemoved(tuple(self.name(slot, rank, place) for place in places)))

    def match(self, blocks: Sequence[int] = BLOCKS) -> dict[int, int]:
        return self.index.match(list(blocks), ALL)

    @staticmethod
    def name(slot: int, rank: int, place: int) -> int:
        return (slot + 1) * 10_000 + rank * 1_000 + place


def test_what_an_engine_stored_is_known_once_the_prompt_is_linked() -> None:
    engines = Engines()
    engines.store(0, 8)
    engines.store(2, 5)
    assert engines.match() == {}
    engines.blocks.link(PROMPT)
    assert engines.match() == {0: 4, 2: 2}


def test_what_an_engine_stores_of_a_linked_prompt_is_known_at_once_whoever_sent_it() -> None:
    engines = Engines()
    engines.store(0, 8)
    engines.blocks.link(PROMPT)
    engines.store(1, 3)
    assert engines.match() == {0: 4, 1: 1}
    engines.store(1, 8, begin=3)
    assert engines.match() == {0: 4, 1: 4}


def test_what_an_engine_removes_is_gone_for_the_index() -> None:
    engines = Engines()
    engines.store(0, 8)
    engines.blocks.link(PROMPT)
    engines.index.insert(0, BLOCKS)
    engines.remove(0, 7, 6, 5)
    assert engines.match() == {0: 2}
    engines.remove(0, 4, 3, 2, 1, 0, 0, 99)
    assert (engines.match(), engines.blocks.tracked(0)) == ({}, 0)


def test_a_cleared_cache_is_forgotten_whether_it_was_linked_or_not() -> None:
    engines = Engines()
    engines.index.insert(0, [1, 2])
    engines.index.insert(1, [1, 2])
    engines.store(0, 8)
    engines.blocks.apply(0, 0, BlocksCleared())
    assert (engines.match([1, 2]), engines.blocks.tracked(0)) == ({1: 2}, 0)
    engines.store(0, 8)
    engines.blocks.link(PROMPT)
    assert engines.match() == {0: 4}


def test_what_was_sent_to_an_engine_before_it_was_heard_of_stays_and_what_its_earlier_life_held_does_not() -> None:
    engines = Engines()
    engines.index.insert(0, [1, 2])
    engines.blocks.begin(0, 0)
    assert engines.match([1, 2]) == {0: 2}
    engines.blocks.begin(0, 0)
    assert engines.match([1, 2]) == {}


def test_an_endpoint_holds_what_any_of_its_ranks_holds() -> None:
    engines = Engines()
    engines.store(0, 8, rank=0)
    engines.store(0, 8, rank=1)
    engines.blocks.link(PROMPT)
    engines.remove(0, 7, 6, 5, 4, 3, 2, 1, 0, rank=0)
    assert engines.match() == {0: 4}
    engines.blocks.apply(0, 1, BlocksCleared())
    assert engines.match() == {}


def test_a_chain_whose_beginning_is_not_known_is_passed_over() -> None:
    engines = Engines()
    engines.store(0, 8, begin=4)
    assert engines.blocks.tracked(0) == 0


def test_tokens_under_another_adapter_or_salt_are_another_prompt() -> None:
    engines = Engines()
    engines.store(0, 8, first=b"salt")
    engines.blocks.link(PROMPT)
    assert engines.match() == {}
    engines.blocks.link(LinkedPrompt([21, 22, 23, 24], 4 * BLOCK_BYTES, TOKENS, first_extra=b"salt"))
    assert engines.match([21, 22, 23, 24]) == {0: 4}


def test_engines_with_blocks_of_different_sizes_are_understood_side_by_side() -> None:
    engines = Engines()
    engines.store(0, 8)
    engines.store(1, 16, size=SIZE // 2)
    engines.blocks.link(PROMPT)
    assert engines.match() == {0: 4, 1: 4}


def test_sizes_without_end_are_not_followed() -> None:
    engines = Engines()
    for slot in range(BLOCK_SIZES_MAX + 2):
        engines.store(slot, 2, size=SIZE + slot)
    assert engines.blocks.tracked(BLOCK_SIZES_MAX) == engines.blocks.tracked(BLOCK_SIZES_MAX + 1) == 0
    engines.store(0, 6, begin=2, size=SIZE * 2)
    assert engines.blocks.tracked(0) == 2


def test_an_answered_prompt_that_the_engine_did_not_keep_is_not_believed_to_be_there() -> None:
    engines = Engines()
    engines.blocks.begin(0, 0)
    engines.store(0, 3)
    engines.blocks.link(PROMPT)
    engines.index.insert(0, BLOCKS)
    engines.blocks.settle(0, BLOCKS, None)
    assert engines.match() == {0: 1}


@pytest.mark.parametrize(("confirmed", "believed"), [(None, 4), (3, 3), (0, 1)])
def test_of_an_engine_that_is_known_in_part_only_its_own_count_is_believed(
    confirmed: int | None, believed: int
) -> None:
    engines = Engines()
    engines.blocks.begin(0, 0)
    engines.store(0, 3)
    engines.blocks.lose(0, 0)
    engines.blocks.link(PROMPT)
    engines.index.insert(0, BLOCKS)
    engines.blocks.settle(0, BLOCKS, confirmed)
    assert engines.match() == {0: believed}


def test_a_part_is_linked_as_far_as_the_engine_that_was_sent_it_holds_it() -> None:
    engines = Engines()
    engines.store(0, 5)
    engines.store(1, 8)
    assert engines.blocks.link(PROMPT, held_by=2) == 0
    assert not any(map(engines.blocks.is_linked, BLOCKS))
    assert engines.blocks.link(PROMPT, held_by=0) == 5
    assert list(map(engines.blocks.is_linked, BLOCKS)) == [True, True, False, False]
    assert engines.match() == {0: 2, 1: 2}
    assert engines.blocks.link(PROMPT, held_by=1) == 8
    assert engines.match() == {0: 2, 1: 4}


def test_nothing_is_settled_where_no_events_come_from_or_the_prompt_is_not_linked() -> None:
    engines = Engines()
    engines.index.insert(0, BLOCKS)
    engines.blocks.settle(0, BLOCKS, 0)
    engines.blocks.begin(0, 0)
    engines.index.insert(0, BLOCKS)
    engines.store(0, 1)
    engines.blocks.settle(0, BLOCKS, 0)
    assert engines.match() == {0: 4}


def test_names_are_bounded_and_the_oldest_go_first() -> None:
    engines = Engines(tracked_max=4)
    engines.store(0, 8)
    assert engines.blocks.tracked(0) == 4
    engines.store(1, 8)
    engines.store(0, 8)
    assert engines.blocks.tracked(0) + engines.blocks.tracked(1) <= 4
    engines.blocks.forget(0)
    engines.blocks.forget(1)
    assert engines.blocks.tracked(0) == engines.blocks.tracked(1) == 0


def test_links_are_bounded() -> None:
    engines = Engines(links_max=4)
    engines.store(0, 8)
    assert not engines.blocks.is_linked(14)
    engines.blocks.link(PROMPT)
    assert engines.blocks.is_linked(14)
    engines.blocks.link(LinkedPrompt([21, 22], 2 * BLOCK_BYTES, TOKENS[::-1]))
    assert engines.blocks.is_linked(22)
    assert not engines.blocks.is_linked(11)


def test_a_prompt_needs_tokens_once_an_engine_is_known_to_have_blocks() -> None:
    engines = Engines()
    assert engines.blocks.is_linked(14)
    engines.blocks.expect(SIZE)
    assert not engines.blocks.is_linked(14)
    engines.blocks.link(PROMPT)
    engines.store(0, 8)
    assert engines.match() == {0: 4}


def test_what_engines_are_known_to_hold_can_be_told_again() -> None:
    engines = Engines()
    engines.store(0, 8)
    engines.blocks.link(PROMPT)
    engines.index.forget(0)
    engines.blocks.retell(0)
    engines.blocks.retell(1)
    assert engines.match() == {0: 4}
