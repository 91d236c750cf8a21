"""Where the picker's ids are drawn from in production."""

from array import array
from random import SystemRandom
from typing import Final

from kinference.picker.numbering import ID_BITS

_BATCH_BYTES: Final = 64 * ID_BITS // 8


class IdSource(SystemRandom):
    """The system's own randomness, asked for ids by the batch: to ask for each costs more than all that uses it."""

    def __init__(self) -> None:
        super().__init__()
        self._drawn = array("Q")

    def getrandbits(self, k: int, /) -> int:
        """So many random bits, each given once."""
        if k != ID_BITS:
            return super().getrandbits(k)
        if not self._drawn:
            self._drawn.frombytes(super().randbytes(_BATCH_BYTES))
        return self._drawn.pop()
