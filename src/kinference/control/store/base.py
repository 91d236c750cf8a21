"""What the control plane asks of a store: a few versioned rows. A change is durable before it is acknowledged."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol


class Kind(Enum):
    """What a row holds; the order is that in which rows can be put back."""

    PROVIDER = "provider"
    ROUTE = "route"


@dataclass(frozen=True, slots=True)
class Row:
    """One record. `provider` is the provider that it cannot do without: the store keeps that one from being deleted."""

    kind: Kind
    name: str
    body: bytes
    provider: str | None = None
    version: int = 0


@dataclass(frozen=True, slots=True)
class Booking:
    """What tenants have spent in a month, in billionths of a dollar, since the booking before.

    Number and booker tell a booking that is tried again, because nobody knows whether it was stored, from the next.
    """

    booker: str
    """Whoever numbers its bookings, from 1 on, and tries none before the one before it is known to be stored."""
    number: int
    month: str
    nano_usd: Mapping[str, int]


class Store(Protocol):
    """Rows by kind and name. Every method may raise StoreFailed."""

    async def open(self) -> None:
        """Connect now rather than at the first use, so that a wrong address shows at the start."""
        ...

    async def close(self) -> None: ...

    async def read(self, kind: Kind, name: str) -> Row | None: ...

    async def rows(self, kind: Kind) -> Sequence[Row]:
        """All of a kind, by name."""
        ...

    async def write(self, row: Row, expected: int | None = None) -> int:
        """Store a row and return its new version: 1 for a new one, else one more than before.

        Raises Overtaken when `expected` (0: no row) is not the stored version, Referred when its provider is gone.
        """
        ...

    async def delete(self, kind: Kind, name: str) -> bool:
        """Whether there was one. Raises Referred when another row cannot do without it."""
        ...

    async def spend(self, booking: Booking) -> None:
        """Add to what tenants have spent, all or nothing, whoever else adds to it at the same time; once, however often
        it is called with the same booking.
        """
        ...

    async def spent(self, month: str) -> Mapping[str, int]:
        """What each tenant has spent in a month, in billionths of a dollar."""
        ...

    async def load(self, rows: Iterable[Row]) -> None:
        """Replace everything by these rows, versions included; all or nothing."""
        ...
