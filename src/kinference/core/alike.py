"""Which of the prompts that are held begin like one that leaves: what is computed for it is computed for them, too."""

from collections.abc import Sequence
from itertools import islice
from typing import Final

FOLLOWING_MAX: Final = 64
"""So many are told of at once; the others when the next one leaves that begins like them."""


class Alike:
    """Numbered prompts, by the first of their blocks that no destination holds."""

    def __init__(self) -> None:
        self._blocks: dict[int, Sequence[int]] = {}
        self._missing: dict[int, int] = {}
        """The first block that is missing, by number."""
        self._waiting: dict[int, dict[int, None]] = {}
        """Numbers, by that block."""

    def __len__(self) -> int:
        return len(self._missing)

    def add(self, number: int, blocks: Sequence[int], held: int) -> None:
        """One more, so many leading blocks of which are held somewhere. One of which none is missing gains nothing."""
        if held < len(blocks):
            self._blocks[number] = blocks
            self._missing[number] = blocks[held]
            self._waiting.setdefault(blocks[held], {})[number] = None

    def drop(self, number: int) -> None:
        """It is held no longer."""
        if number not in self._missing:
            return
        block = self._missing.pop(number)
        del self._blocks[number], self._waiting[block][number]
        if not self._waiting[block]:
            del self._waiting[block]

    def follow(self, blocks: Sequence[int]) -> list[tuple[int, int]]:
        """These blocks are held from now on: whose first missing one is among them, and how many they share."""
        waiting = self._waiting
        found = (number for block in blocks if block in waiting for number in waiting[block])
        return [(number, self._advance(number, blocks)) for number in tuple(islice(found, FOLLOWING_MAX))]

    def _advance(self, number: int, blocks: Sequence[int]) -> int:
        own = self._blocks[number]
        shared = _shared(own, blocks)
        self.drop(number)
        self.add(number, own, shared)
        return shared


def _shared(some: Sequence[int], others: Sequence[int]) -> int:
    """How many leading blocks are the same: each stands for all before it, too."""
    low, high = 0, min(len(some), len(others))
    while low < high:
        middle = (low + high + 1) // 2
        if some[middle - 1] == others[middle - 1]:
            low = middle
        else:
            high = middle - 1
    return low
