"""The numbers of a publisher's batches: which one is next, was seen, was missed, or is of another life of it."""

from dataclasses import dataclass
from enum import Enum, auto

from kinference.ids import Seconds

OLD_MAX = 1_000
"""So many numbers in a row that go back are no repetition, whatever their times say."""


class Place(Enum):
    """Where a batch stands in the sequence."""

    NEXT = auto()
    SEEN = auto()
    AHEAD = auto()
    """Others are missing before it."""
    ANEW = auto()
    """The publisher has started again."""


@dataclass(slots=True)
class KvSequence:
    """What was applied last."""

    next: int = 0
    last_at: Seconds = 0.0
    """The engine's time in the last batch: it tells two batches of one number apart."""
    _old: int = 0

    def place(self, number: int, at: Seconds) -> Place:
        """Where this batch stands."""
        if number == self.next:
            self._old = 0
            return Place.NEXT
        if number > self.next:
            return Place.AHEAD
        self._old += 1
        return Place.ANEW if at > self.last_at or self._old > OLD_MAX else Place.SEEN

    def applied(self, number: int, at: Seconds) -> None:
        """This one was applied: the next is the one after it."""
        self.next, self.last_at = number + 1, at

    def restart(self) -> None:
        """From the first again."""
        self.next, self.last_at, self._old = 0, 0.0, 0
