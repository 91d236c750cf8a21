"""Ids that name live state: random, so that nobody guesses one, and never 0, which means "no id"."""

from array import array
from collections.abc import Container
from random import Random, SystemRandom

_ID_BITS = 64
_BATCH_BYTES = 64 * _ID_BITS // 8


class IdSource(SystemRandom):
    """The system's own randomness, asked for ids by the batch: to ask for each costs more than all that uses it."""

    def __init__(self) -> None:
        super().__init__()
        self._drawn = array("Q")

    def getrandbits(self, k: int, /) -> int:
        """So many random bits, each given once."""
        if k != _ID_BITS:
            return super().getrandbits(k)
        if not self._drawn:
            self._drawn.frombytes(super().randbytes(_BATCH_BYTES))
        return self._drawn.pop()


def draw_id(random: Random, *taken: Container[int]) -> int:
    """A non-zero 64-bit number that no container holds. Production passes an `IdSource`."""
    while True:
        number = random.getrandbits(_ID_BITS)
        for container in taken:
            if number in container:
                break
        else:
            if number:
                return number
