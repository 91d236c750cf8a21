"""The one count of the bytes held in bodies, whatever state they are in."""

from dataclasses import dataclass


@dataclass(slots=True)
class Account:
    """Bytes held against the server-wide budget. Whoever lets go of bytes releases them here, once."""

    budget: int
    held: int = 0
    peak: int = 0
    """The most that was held at once, since somebody last set this back."""

    @property
    def free(self) -> int:
        return max(0, self.budget - self.held)

    def charge(self, amount: int) -> None:
        self.held += amount
        if self.held > self.peak:  # noqa: PLR1730 - for every chunk, and a call of max costs far more
            self.peak = self.held

    def release(self, amount: int) -> None:
        assert 0 <= amount <= self.held, "bytes released twice"
        self.held -= amount
