"""A block-level prefix cache: reference counts for what is in use, least recently used first out for the rest.

A full block has a name, the hash of everything up to its end, so equal names mean equal prefixes. Named blocks that
nobody uses stay until their room is needed. Where a real engine may compute the same block twice at the same time and
keep both copies, this one keeps the first: identity is the name, and there is no table of block numbers.

Requests hold their blocks from the first on and give them back last block first, so a prefix outlives its extensions
and the presence of a chain's blocks is monotone: if one is here, all before it are.

Names are looked up as the objects that they are: where they are known to be numbers the compiled build makes each anew
at each use, and a table then has to compare it with its own.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import NewType, cast

BlockHash = NewType("BlockHash", int)


class KvCache:
    """Room for `capacity` blocks, shared by all requests of one engine."""

    def __init__(self, capacity: int) -> None:
        assert capacity > 0, "a cache has room for at least one block"
        self.capacity = capacity
        self._users: dict[object, int] = {}
        self._idle: OrderedDict[object, None] = OrderedDict()  # the first is the least recently used
        self._nameless = 0  # in use, and not full yet

    @property
    def used(self) -> int:
        """Blocks that some request holds."""
        return len(self._users) + self._nameless

    @property
    def free(self) -> int:
        """Blocks that can be had, by eviction where need be."""
        return self.capacity - len(self._users) - self._nameless

    @property
    def named(self) -> int:
        """Full blocks that a prompt could hit now."""
        return len(self._users) + len(self._idle)

    def __contains__(self, block: object) -> bool:
        return block in self._users or block in self._idle

    def leading(self, blocks: Sequence[object], at_most: int) -> int:
        """How many of the first `at_most` blocks are here; presence is monotone, so a few probes tell."""
        users, idle = self._users, self._idle
        low, high = 0, min(at_most, len(blocks))
        while low < high:
            middle = (low + high) // 2
            block = blocks[middle]
            if block in users or block in idle:
                low = middle + 1
            else:
                high = middle
        return low

    def idle_among(self, blocks: Sequence[object]) -> int:
        """How many of these would have to leave the free list if they were held."""
        return sum(1 for block in blocks if block in self._idle)

    def hold(self, blocks: Sequence[object]) -> None:
        """Use blocks that are here."""
        users, idle = self._users, self._idle
        for block in blocks:
            if block in users:
                users[block] += 1
            else:
                del idle[block]
                users[block] = 1

    def take(self, count: int) -> list[BlockHash]:
        """Use `count` empty blocks, which must be free; returns the names that were evicted for them."""
        free = self.free
        assert count <= free, "the caller asks only for what is free"
        lacking = count - free + len(self._idle)
        self._nameless += count
        return [cast("BlockHash", self._idle.popitem(last=False)[0]) for _ in range(lacking)] if lacking > 0 else []

    def name(self, blocks: Sequence[object]) -> int:
        """So many of the caller's nameless blocks are full now. Returns how many of the names are new, always the last
        ones: a block whose twin is here already gives its room back, and the twin is used instead.
        """
        self._nameless -= len(blocks)
        assert self._nameless >= 0, "only a nameless block gets a name"
        twins = self.leading(blocks, len(blocks))
        self.hold(blocks[:twins])
        for block in blocks[twins:]:
            self._users[block] = 1
        return len(blocks) - twins

    def release(self, blocks: Sequence[object], nameless: int) -> None:
        """Give back what one request held; `blocks` in the order of its prompt."""
        self._nameless -= nameless
        assert self._nameless >= 0, "nobody gives back more than was taken"
        users, idle = self._users, self._idle
        for block in reversed(blocks):
            left = users[block] - 1
            if left:
                users[block] = left
            else:
                del users[block]
                idle[block] = None

    def reset(self) -> bool:
        """Forget every name; refused while any block is in use."""
        if self.used:
            return False
        self._idle.clear()
        return True
