"""The one count of the bytes held in bodies, whatever state they are in."""

from dataclasses import dataclass


@dataclass(slots=True)
class Account:
    """Bytes held against the server-wide budget. Whoever lets go of bytes releases them here, once."""

    budget: int
    held: int = 0

    @property
    def free(self) -> int:
        return max(0, self.budget - self.held)

    def charge(self, amount: int) -> None:
        self.held += amount

    def release(self, amount: int) -> None:
        assert 0 <= amount <= self.held, "bytes released twice"
        self.held -= amount
