"""Whatever requests do to the cache, its counts add up, nothing in use goes, and no prefix has a gap."""

from hypothesis import given
from hypothesis import strategies as st

from kinference.sim.events import (
    Admitted,
    BlocksRemoved,
    BlocksStored,
    Event,
    Finished,
    FirstToken,
    NextTokens,
    SimRequest,
)
from kinference.sim.kv_cache import BlockHash, KvCache
from kinference.sim.model import EngineModel
from kinference.sim.timing import Timing

BLOCK = 4


def chain(family: int, fork: int, length: int) -> list[BlockHash]:
    """A family shares its first three blocks, a fork the rest."""
    return [BlockHash(family * 1000 + (place if place < 3 else fork * 100 + place)) for place in range(length)]


chains = st.builds(chain, st.integers(0, 2), st.integers(0, 2), st.integers(1, 8))
moves = st.lists(st.tuples(st.booleans(), chains, st.integers(0, 2), st.integers(0, 9)), max_size=60)


class Holders:
    """Requests against one cache, and what each of them holds."""

    def __init__(self, capacity: int) -> None:
        self.cache = KvCache(capacity)
        self.held: list[tuple[list[BlockHash], int]] = []
        self.stored: set[BlockHash] = set()
        self.seen: set[BlockHash] = set()

    def enter(self, blocks: list[BlockHash], nameless: int) -> None:
        hit = self.cache.leading(blocks, len(blocks))
        needed = len(blocks) - hit + nameless
        if needed > self.cache.free - self.cache.idle_among(blocks[:hit]):
            return
        self.cache.hold(blocks[:hit])
        self.stored -= set(self.cache.take(needed))
        new = self.cache.name(blocks[hit:])
        self.stored |= set(blocks[len(blocks) - new :])
        self.seen |= set(blocks)
        self.held.append((blocks, nameless))

    def leave(self, place: int) -> None:
        if self.held:
            self.cache.release(*self.held.pop(place % len(self.held)))

    def check(self) -> None:
        in_use = {block for blocks, _ in self.held for block in blocks}
        nameless = sum(count for _, count in self.held)
        cache = self.cache
        assert cache.used == len(in_use) + nameless
        assert cache.used + cache.free == cache.capacity
        assert cache.named + nameless <= cache.capacity
        assert all(block in cache for block in in_use)
        assert {block for block in self.seen if block in cache} == self.stored
        assert cache.named == len(self.stored)


@given(st.integers(1, 20), moves)
def test_counts_add_up_and_what_is_told_is_what_is_there(
    capacity: int, moves: list[tuple[bool, list[BlockHash], int, int]]
) -> None:
    holders = Holders(capacity)
    for enters, blocks, nameless, place in moves:
        if enters:
            holders.enter(blocks, nameless)
        else:
            holders.leave(place)
        holders.check()


@given(st.integers(1, 20), moves)
def test_the_presence_of_a_chain_is_monotone(
    capacity: int, moves: list[tuple[bool, list[BlockHash], int, int]]
) -> None:
    holders = Holders(capacity)
    everything = [chain(family, fork, 8) for family in range(3) for fork in range(3)]
    for enters, blocks, nameless, place in moves:
        if enters:
            holders.enter(blocks, nameless)
        else:
            holders.leave(place)
        for whole in everything:
            present = [block in holders.cache for block in whole]
            assert present == sorted(present, reverse=True)
            assert holders.cache.leading(whole, 8) == sum(present)


arrivals = st.lists(
    st.tuples(
        st.integers(0, 2), st.integers(0, 2), st.integers(1, 24), st.integers(0, 12), st.floats(0, 0.2), st.booleans()
    ),
    min_size=1,
    max_size=25,
)


@given(arrivals, st.integers(10, 24))
def test_every_request_gets_what_it_asked_for_and_the_cache_ends_empty_of_users(
    arrivals: list[tuple[int, int, int, int, float, bool]], kv_blocks: int
) -> None:
    timing = Timing(batched_tokens_max=16, sequences_max=4, kv_blocks=kv_blocks, block_tokens=BLOCK)
    model = EngineModel(timing)
    events: list[Event] = []
    now, wanted = 0.0, dict[int, int]()
    chains_of = dict[int, list[BlockHash]]()
    for number, (family, fork, prompt, output, gap, is_aborted) in enumerate(arrivals):
        now += gap
        events += model.advance(now)
        chains_of[number] = chain(family, fork, (prompt + output) // BLOCK)
        model.submit(SimRequest(number, prompt, output, tuple(chains_of[number])), now)
        wanted[number] = output
        assert 0 <= model.kv_usage <= 1
        if is_aborted:
            events += model.advance(now)
            model.abort(number)
            del wanted[number]
    while (at := model.next_event_at()) is not None:
        events += model.advance(at)
        assert 0 <= model.kv_usage <= 1
    assert _said(events, wanted) == wanted
    assert [number for number in wanted if number not in _finished(events)] == []
    assert (model.running, model.waiting, model.kv_usage) == (0, 0, 0)
    assert [event.at for event in events] == sorted(event.at for event in events)
    assert all(event.cached_tokens < arrivals[event.request][2] for event in events if isinstance(event, Admitted))
    _check_told_blocks(events, chains_of)


def _said(events: list[Event], wanted: dict[int, int]) -> dict[int, int]:
    said = dict.fromkeys(wanted, 0)
    for event in events:
        numbers = (event.request,) if isinstance(event, FirstToken) else ()
        for number in event.requests if isinstance(event, NextTokens) else numbers:
            if number in said:
                said[number] += 1
    return said


def _finished(events: list[Event]) -> list[int]:
    return [event.request for event in events if isinstance(event, Finished)]


def _check_told_blocks(events: list[Event], chains_of: dict[int, list[BlockHash]]) -> None:
    """Nothing is stored twice without a removal between, and nothing is removed that was not stored."""
    there: set[BlockHash] = set()
    for event in events:
        if isinstance(event, BlocksStored):
            blocks = chains_of[event.request][event.first : event.first + event.count]
            assert len(blocks) == event.count
            assert not there.intersection(blocks)
            there.update(blocks)
        elif isinstance(event, BlocksRemoved):
            assert there.issuperset(event.blocks)
            there.difference_update(event.blocks)
