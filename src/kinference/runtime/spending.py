"""What tenants with a budget have spent this month, kept in the control plane's store.

Each replica adds what was spent through it and reads what all have spent, so that a budget holds for all of them
together, but for what the others spend between two rounds; the same much is lost when a process is killed.
"""

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from itertools import count
from secrets import token_hex

from kinference.control.errors import StoreFailed
from kinference.control.store.base import Booking, Store
from kinference.core.limits import Accounts
from kinference.ids import Seconds
from kinference.ports import Clock

ROUND: Seconds = 2.0
NANO = 1_000_000_000

_log = logging.getLogger(__name__)


class Spending:
    """Books what the accounts have spent, round by round. Idle while no tenant has a budget."""

    def __init__(self, accounts: Accounts, store: Store, clock: Clock) -> None:
        self.accounts, self._store, self._clock = accounts, store, clock
        self._booker, self._numbers = token_hex(16), count(1)
        self._doubtful: Booking | None = None
        """Whether the store has it is not known."""
        self._has_failed = False
        self.is_wanted = False
        """Whether any tenant has a budget."""

    async def book(self) -> None:
        """One round. Raises StoreFailed, and what is not booked stays for the next."""
        if not self.is_wanted:
            return
        month, ends_in = month_of(self._clock.wall())
        if self._doubtful is not None:  # as it was: the store may have it, and have been cut off before it could say so
            await self._store_booking(self._doubtful)
        spent = {tenant: round(usd * NANO) for tenant, usd in self.accounts.unbooked().items()}
        if spent:
            await self._store_booking(Booking(self._booker, next(self._numbers), month, spent))
        totals = await self._store.spent(month)
        self.accounts.follow({tenant: nano_usd / NANO for tenant, nano_usd in totals.items()})
        self.accounts.month_ends_at = self._clock.now() + ends_in

    async def _store_booking(self, booking: Booking) -> None:
        self._doubtful = booking
        await self._store.spend(booking)
        self._doubtful = None
        for tenant, nano_usd in booking.nano_usd.items():
            self.accounts.booked(tenant, nano_usd / NANO)

    async def run(self) -> None:
        """Book for ever. While the store fails budgets are held by what is known here."""
        while True:
            await asyncio.sleep(ROUND)
            await self.try_to_book()

    async def try_to_book(self) -> None:
        """One round whose failure is for the log, once."""
        try:
            await self.book()
        except StoreFailed as error:
            if not self._has_failed:
                _log.error("what tenants spend cannot be stored, and is kept in memory until it can: %s", error)
            self._has_failed = True
        else:
            self._has_failed = False


def month_of(wall: Seconds) -> tuple[str, Seconds]:
    """The calendar month (UTC) of a time, and how long it goes on."""
    moment = datetime.fromtimestamp(wall, UTC)
    first = moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    following = (first + timedelta(days=32)).replace(day=1)
    return f"{first:%Y-%m}", (following - moment).total_seconds()
