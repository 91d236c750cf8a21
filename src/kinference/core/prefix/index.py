"""The approximate prefix index: block hash -> which endpoints hold it, from what was sent where.

One int of bits per block says who holds it, one dict per endpoint keeps its blocks from least to most recently used.
A prompt's blocks are touched from leaf to root, so a block is always older than the blocks before it, eviction takes
leaves first, and presence stays monotone: who holds block n holds all before it. `match` relies on that.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count, islice, repeat, takewhile

DEFAULT_CAPACITY = 16_384
"""Blocks believed to fit an engine that does not tell its cache size."""
TOTAL_CAPACITY = 1 << 21
"""Blocks over all endpoints: the bound on memory whatever the engines claim."""
STRETCH = 16
EVICTED_SHARE = 64
"""One in this many goes at a time: a dict finds its oldest key in constant time only on average over a batch."""


@dataclass(frozen=True, slots=True)
class Insertion:
    """What one decision put into the index, so that it can be taken back."""

    number: int
    slot: int
    blocks: list[int]
    earlier: list[int]
    """For each leading block that it held already: the insertion that had touched it last."""


@dataclass(slots=True, eq=False)
class _Holding:
    """One endpoint's blocks, oldest first, each with the number of the insertion that touched it last."""

    bit: int
    capacity: int = DEFAULT_CAPACITY
    blocks: dict[int, int] = field(default_factory=dict)


class PrefixIndex:
    """Longest cached prefix by endpoint slot. Bounded by each endpoint's capacity and by one total."""

    def __init__(self, total_capacity: int = TOTAL_CAPACITY) -> None:
        self._total_capacity = total_capacity
        self._holders: dict[int, int] = {}
        self._holdings: dict[int, _Holding] = {}
        self._numbers = count(1)

    def match(self, blocks: Sequence[int], mask: int) -> dict[int, int]:
        """Leading blocks held, for each slot of `mask` that holds any.

        As presence is monotone, whole stretches are leapt over while nobody drops out, further with each success.
        """
        holders, end = self._holders.get, len(blocks)
        depths: dict[int, int] = {}
        alive, depth, leap = mask, 0, STRETCH
        while alive and depth < end:
            far = min(depth + leap, end)
            if holders(blocks[far - 1], 0) & alive == alive:
                depth, leap = far, 2 * leap
            elif leap > STRETCH:
                leap = max(STRETCH, leap // 4)
            else:
                for block in islice(blocks, depth, far):
                    held = holders(block, 0) & alive
                    if held != alive:
                        _record(depths, alive ^ held, depth)
                        alive = held
                    depth += 1
        _record(depths, alive, depth)
        return depths

    def insert(self, slot: int, blocks: list[int]) -> Insertion:
        """The endpoint was sent this prompt: it will hold these blocks."""
        holding = self._holding(slot)
        blocks = blocks[: self._allowed(holding)]
        number, bit, held = next(self._numbers), holding.bit, holding.blocks
        touched = list(map(held.pop, blocks, repeat(0)))
        depth = len(blocks) - touched.count(0)
        added = blocks[depth:]
        for block, others in zip(added, map(self._holders.setdefault, added, repeat(bit)), strict=True):
            if others != bit:
                self._holders[block] = others | bit
        held.update(dict.fromkeys(reversed(blocks), number))
        self._evict(holding)
        return Insertion(number, slot, blocks, touched[:depth])

    def rollback(self, insertion: Insertion) -> None:
        """The prompt never reached the endpoint: take back what it added and no later prompt relies on."""
        holding = self._holdings.get(insertion.slot)
        if holding is None:
            return
        for block in reversed(insertion.blocks[len(insertion.earlier) :]):
            toucher = holding.blocks.get(block)
            if toucher == insertion.number:
                self._remove(holding, (block,))
            elif toucher is not None:
                return

    def correct(self, insertion: Insertion, cached: int) -> None:
        """The engine had only so many blocks of this prompt. It has them all now, having computed them; but what was
        used no later than the first one missing is gone from it as well, as engines evict in order of use.
        """
        holding = self._holdings.get(insertion.slot)
        if holding is not None and cached < len(insertion.earlier):
            horizon = insertion.earlier[cached]
            self._remove(holding, list(takewhile(lambda block: holding.blocks[block] <= horizon, holding.blocks)))

    def resize(self, slot: int, capacity: int) -> None:
        """How many blocks this endpoint's cache holds, as far as is known."""
        holding = self._holding(slot)
        holding.capacity = max(1, capacity)
        self._evict(holding)

    def capacity(self, slot: int) -> int:
        """The blocks this endpoint is believed to have room for."""
        return self._allowed(self._holding(slot))

    def held(self, slot: int) -> int:
        """The blocks this endpoint is believed to hold."""
        holding = self._holdings.get(slot)
        return len(holding.blocks) if holding else 0

    def forget(self, slot: int) -> None:
        """The endpoint is gone or restarted: it holds nothing."""
        holding = self._holdings.pop(slot, None)
        if holding is not None:
            self._remove(holding, list(holding.blocks))

    def __len__(self) -> int:
        return len(self._holders)

    def _holding(self, slot: int) -> _Holding:
        holding = self._holdings.get(slot)
        if holding is None:
            holding = self._holdings[slot] = _Holding(1 << slot)
        return holding

    def _allowed(self, holding: _Holding) -> int:
        return min(holding.capacity, max(1, self._total_capacity // len(self._holdings)))

    def _evict(self, holding: _Holding) -> None:
        allowed = self._allowed(holding)
        excess = len(holding.blocks) - allowed
        if excess <= 0:
            return
        self._remove(holding, list(islice(holding.blocks, max(excess, allowed // EVICTED_SHARE))))

    def _remove(self, holding: _Holding, blocks: Sequence[int]) -> None:
        holders, held, bit = self._holders, holding.blocks, holding.bit
        for block in blocks:
            del held[block]
            left = holders.pop(block) ^ bit
            if left:
                holders[block] = left


def _record(depths: dict[int, int], slots: int, depth: int) -> None:
    if depth:
        while slots:
            slot = slots.bit_length() - 1
            depths[slot] = depth
            slots ^= 1 << slot
