"""The approximate prefix index: block hash -> which endpoints hold it, from what was sent where.

One int of bits per block says who holds it. Each endpoint's blocks are sorted by age into a few generations: a prompt's
blocks join the youngest, each after the block before it, and eviction takes the last of the oldest generation first. So
a block never outlives the blocks before it, and presence stays monotone: who holds block n holds all before it. `match`
relies on that. A prompt whose blocks are young already moves nothing: that is what makes busy prefixes cheap.

An engine that tells of its cache (`add`, `drop`) is believed, and evicts leaves first as well. Should one drop a block
and keep those behind it, `match` overlooks the gap or stops there.
"""

from array import array
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import compress, count, repeat
from operator import or_
from typing import Final

from kinference.structs import FrozenRecord

DEFAULT_CAPACITY: Final = 16_384
"""Blocks believed to fit an engine that does not tell its cache size."""
TOTAL_CAPACITY: Final = 1 << 21
"""Blocks over all endpoints: the bound on memory whatever the engines claim."""
STRETCH: Final = 16
FEW: Final = 8
"""So few blocks are quicker one by one than all at once."""
FIRST_SLOTS: Final = 255
"""The bits of the first slots, whose numbers are looked up."""
SLOT_OF: Final = {1 << slot: slot for slot in range(8)}
SPARSE: Final = 8
"""Of so many bits one that is set is found quicker by itself than by looking at them all."""
ONE: Final = "1"
_ARRAY: Final = array
NEVER: Final = 1 << 64
GENERATIONS: Final = 8
"""The capacity fills this many; order of use is kept between them, not within one."""


class Insertion(FrozenRecord, frozen=True):
    """What one decision put into the index, so that it can be taken back."""

    number: int
    slot: int
    blocks: Sequence[int]
    """In an array: as many as live in what is in flight, as objects they would take six times the memory."""
    known: int
    """How many leading blocks the endpoint held already."""
    touched: int
    """The insertion that had touched the last of those before."""


@dataclass(slots=True, eq=False)
class _Generation:
    """The blocks touched by the insertions since a number, in the order of their joining.

    A block that joined a younger generation or was dropped stays listed; its number in the holding tells.
    """

    since: int
    joined: list[int] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Holding:
    """One endpoint's blocks, each with an insertion that touched it, and the generations of them, oldest first."""

    bit: int
    capacity: int = DEFAULT_CAPACITY
    blocks: dict[int, int] = field(default_factory=dict)
    generations: deque[_Generation] = field(default_factory=lambda: deque([_Generation(0)]))
    is_told: bool = False
    """Whether its engine tells of its cache: then nothing is known of the order in which blocks came or went."""
    is_sifted: bool = False
    """Whether the oldest generation lists each of its blocks once, and in vain only those that have `left`."""
    left: set[int] = field(default_factory=set)
    """Those that went from there to the youngest since it was sifted."""

    def forget(self) -> None:
        """None is left: what is still listed is listed in vain."""
        self.generations = deque([_Generation(0)])
        self.is_sifted = False

    def drop_oldest(self) -> None:
        """The oldest generation is gone."""
        self.generations.popleft()
        self.is_sifted = False

    def merge_oldest(self) -> None:
        """Make the two oldest generations one. The oldest is long, and grows with each merger: to look at each block
        of it again every time takes longer than all else that a long prompt asks for.
        """
        oldest, older = self.oldest(), self.listed(1)
        self.generations.popleft()
        self.generations[0] = _Generation(0, older + oldest)
        self.is_sifted, self.left = True, set()

    def oldest(self) -> list[int]:
        """What `listed` has of the oldest."""
        if self.is_told or not self.is_sifted:
            return self.listed(0)
        joined, left = self.generations[0].joined, self.left
        return [block for block in joined if block not in left] if left else joined

    def aged(self, blocks: Sequence[int], until: int, since: int) -> int:
        """How many of the leading blocks, of which so many are held, were touched by that insertion or a later one.
        Who holds a block has those before it in the same generation or in a younger one.
        """
        numbers = self.blocks
        if self.is_told:
            while until and numbers.get(blocks[until - 1], 0) < since:
                until -= 1
            return until
        low = 0
        while low < until:
            middle = (low + until) // 2
            if numbers.get(blocks[middle], 0) < since:
                until = middle
            else:
                low = middle + 1
        return low

    def end(self, place: int) -> int:
        """The first number that is too young for a generation; 0 is the oldest."""
        return self.generations[place + 1].since if place + 1 < len(self.generations) else NEVER

    def listed(self, place: int) -> list[int]:
        """The blocks that a generation has for its own, each where it joined last."""
        until, numbers = self.end(place), self.blocks
        own = [block for block in self.generations[place].joined if numbers.get(block, until) < until]
        return list(dict.fromkeys(reversed(own)))[::-1]


class PrefixIndex:
    """Longest cached prefix by endpoint slot. Bounded by each endpoint's capacity and by one total."""

    def __init__(self, total_capacity: int = TOTAL_CAPACITY) -> None:
        self._total_capacity = total_capacity
        self._holders: dict[int, int] = {}
        self._holdings: dict[int, _Holding] = {}
        self._number = 0
        self.changes = 0
        """How often somebody has come to hold more or less."""
        self._changed: dict[int, int] = {}
        """The last such change of each bit, whose was longest ago first."""

    def changed_since(self, changes: int) -> int:
        """The bits of those who hold more or less than when so many changes had been made."""
        bits = 0
        for bit, number in reversed(self._changed.items()):
            if number <= changes:
                break
            bits |= bit
        return bits

    def _note_change(self, bit: int) -> None:
        self.changes += 1
        changed = self._changed
        if bit in changed:
            del changed[bit]
        changed[bit] = self.changes

    def match(self, blocks: list[int], mask: int) -> dict[int, int]:
        """Leading blocks held, for each slot of `mask` that holds any.

        As presence is monotone, whole stretches are leapt over while nobody drops out, further with each success.
        """
        holders, end = self._holders, len(blocks)
        depths: dict[int, int] = {}
        if not end or not holders.get(blocks[0], 0) & mask:  # nobody has even the first
            return depths
        alive, depth, leap = mask, 0, STRETCH
        while alive and depth < end:
            far = depth + leap if depth + leap < end else end
            if holders.get(blocks[far - 1], 0) & alive == alive:
                depth, leap = far, 2 * leap
            elif leap > STRETCH:
                leap = max(STRETCH, leap // 4)
            else:
                while alive and depth < far:
                    held = holders.get(blocks[depth], 0) & alive
                    if held != alive:
                        _record(depths, alive ^ held, depth)
                        alive = held
                    depth += 1
        if alive:
            _record(depths, alive, depth)
        return depths

    def insert(self, slot: int, blocks: list[int]) -> Insertion:
        """The endpoint was sent this prompt: it will hold these blocks."""
        holding = self._holdings.get(slot) or self._holding(slot)
        allowed = self._allowed(holding)
        if len(blocks) > allowed:
            blocks = blocks[:allowed]
        self._number += 1
        number, held = self._number, holding.blocks
        young = self._youngest(holding, number, allowed)
        known = _known(blocks, held)
        touched = held[blocks[known - 1]] if known else 0
        moved = known if touched >= young.since else holding.aged(blocks, known, young.since)
        if known and moved == known:
            held[blocks[known - 1]] = number  # a mark for rollback: somebody relies on the blocks up to here
        elif holding.is_sifted and touched < holding.end(0):
            holding.left.update(blocks[holding.aged(blocks, known, holding.end(0)) : known])
        if moved < len(blocks):
            joining, bit = blocks[moved:], holding.bit
            if known < len(blocks):
                self._note_change(bit)
            if len(joining) <= FEW:
                for block in joining:
                    held[block] = number
            else:
                held.update(dict.fromkeys(joining, number))
            young.joined += joining
            self._hold(bit, joining if holding.is_told else blocks[known:])
        if len(held) > allowed:
            self._evict(holding)
        return Insertion(number, slot, _ARRAY("Q", blocks), known, touched)

    def add(self, slot: int, block: int, before: int) -> None:
        """The endpoint says that it holds this block, which comes after `before` (0: after none)."""
        holding = self._holding(slot)
        held = holding.blocks
        if block in held or (before and before not in held):
            return
        holding.is_told = True
        self._number += 1
        number = self._number
        young = self._youngest(holding, number, self._allowed(holding))
        held[block] = number
        young.joined.append(block)
        self._holders[block] = self._holders.get(block, 0) | holding.bit
        self._note_change(holding.bit)
        self._evict(holding)

    def drop(self, slot: int, blocks: Iterable[int]) -> None:
        """The endpoint says that it holds these no more."""
        holding = self._holdings.get(slot)
        if holding is not None:
            holding.is_told = True
            self._remove(holding, list(blocks))

    def rollback(self, insertion: Insertion) -> None:
        """The prompt never reached the endpoint: take back what it added and no later prompt relies on."""
        holding = self._holdings.get(insertion.slot)
        if holding is None:
            return
        for block in reversed(insertion.blocks[insertion.known :]):
            toucher = holding.blocks.get(block)
            if toucher == insertion.number:
                holding.is_sifted = False
                self._remove(holding, [block])
            elif toucher is not None:
                break
        if not holding.blocks:
            holding.forget()

    def correct(self, insertion: Insertion, cached: int) -> None:
        """The engine had only so many blocks of this prompt. It has them all now, having computed them; but what was
        used no later than the first one missing is gone from it as well, as engines evict in order of use.
        """
        holding = self._holdings.get(insertion.slot)
        if holding is not None and cached < insertion.known:
            while len(holding.generations) > 1 and holding.generations[1].since <= insertion.touched + 1:
                self._remove(holding, holding.listed(0))
                holding.drop_oldest()

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
        share = self._total_capacity // len(self._holdings) or 1
        return share if share < holding.capacity else holding.capacity

    def _youngest(self, holding: _Holding, number: int, allowed: int) -> _Generation:
        """The generation to join. When it has its share a new one begins, and the two oldest become one in time."""
        generations = holding.generations
        if len(generations[-1].joined) * GENERATIONS >= allowed:
            generations.append(_Generation(number))
            if len(generations) > 2 * GENERATIONS:
                holding.merge_oldest()
        return generations[-1]

    def _evict(self, holding: _Holding) -> None:
        excess = len(holding.blocks) - self._allowed(holding)
        while excess > 0:
            until, joined, numbers = holding.end(0), holding.generations[0].joined, holding.blocks.get
            last = joined[-excess:]
            del joined[-excess:]
            if max(map(numbers, last, repeat(until)), default=0) >= until:  # some are listed in vain
                last = [block for block in last if numbers(block, until) < until]
            excess -= self._remove(holding, last)
            if not joined and len(holding.generations) > 1:
                holding.drop_oldest()

    def _remove(self, holding: _Holding, blocks: list[int]) -> int:
        """Returns how many of these were held."""
        numbers = list(map(holding.blocks.pop, blocks, repeat(0)))
        if not all(numbers):
            blocks = list(compress(blocks, numbers))
        if not blocks:
            return 0
        holders, bit = self._holders, holding.bit
        self._note_change(bit)
        had = list(map(holders.pop, blocks))
        if had.count(bit) < len(had):  # others hold some as well
            holders.update((block, bits ^ bit) for block, bits in zip(blocks, had, strict=True) if bits != bit)
        return len(blocks)

    def _hold(self, bit: int, blocks: list[int]) -> None:
        """One more holds these: most often the only one."""
        holders = self._holders
        if len(blocks) <= FEW:
            for block in blocks:
                holders[block] = holders.get(block, 0) | bit
            return
        have = list(map(holders.setdefault, blocks, repeat(bit)))
        if have.count(bit) < len(have):
            holders.update(zip(blocks, map(or_, have, repeat(bit)), strict=True))


def _known(blocks: list[int], held: dict[int, int]) -> int:
    """How many leading blocks are held."""
    if not blocks or blocks[0] not in held:
        return 0
    low, high = 1, len(blocks)
    while low < high:
        middle = (low + high) // 2
        if blocks[middle] in held:
            low = middle + 1
        else:
            high = middle
    return low


def _record(depths: dict[int, int], slots: int, depth: int) -> None:
    if not depth:
        return
    if slots <= FIRST_SLOTS:
        while slots:
            lowest = slots & -slots
            depths[SLOT_OF[lowest]] = depth
            slots ^= lowest
        return
    if slots.bit_count() * SPARSE > slots.bit_length():
        # one pass over the digits, not a step for each bit
        depths.update(dict.fromkeys(compress(count(), map(ONE.__eq__, bin(slots)[:1:-1])), depth))
        return
    while slots:
        slot = slots.bit_length() - 1
        depths[slot] = depth
        slots ^= 1 << slot
