"""Ids that name live state: random, so that nobody guesses one, and never 0, which means "no id"."""

from collections.abc import Container
from random import Random
from typing import Final

ID_BITS: Final = 64


def draw_id(random: Random, *taken: Container[int]) -> int:
    """A non-zero 64-bit number that no container holds. Production passes an `IdSource`."""
    while True:
        number = random.getrandbits(ID_BITS)
        for container in taken:
            if number in container:
                break
        else:
            if number:
                return number
