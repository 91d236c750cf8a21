"""Which paths engines turned out not to have, so that they are asked by another the next time."""

from typing import Final

from kinference.ids import Address, Seconds

REMEMBERED: Final[Seconds] = 600.0
"""After so long an engine is tried again: another may have taken its address."""
KNOWN_MAX: Final = 4096


class EngineGaps:
    """What is missing where, as of when it was last missed."""

    def __init__(self) -> None:
        self._missed: dict[tuple[Address, str], Seconds] = {}

    def note(self, address: Address, path: str, now: Seconds) -> None:
        """An engine has no such path."""
        if len(self._missed) >= KNOWN_MAX:
            self._missed.clear()
        self._missed[address, path] = now

    def lacks(self, address: Address, path: str, now: Seconds) -> bool:
        """Whether it is known, and lately, that an engine has no such path."""
        missed = self._missed.get((address, path))
        return missed is not None and now - missed < REMEMBERED
