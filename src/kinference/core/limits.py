"""What a tenant may use: requests and tokens a minute, requests at once, dollars a month.

A request is counted in before it leaves, by what it is expected to use, and corrected by what it did use: of any number
of requests at the same instant no more pass than the limit allows. A request that is expected to use more than the
limit itself counts as the whole of it, or it could never run. What was used beyond the expectation is a debt, and
nothing passes until it is paid.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import nsmallest

from kinference.core.prices import Price
from kinference.ids import Seconds

MINUTE: Seconds = 60.0
ACCOUNTS_MAX = 10_000
"""Tenants whose use is counted at once: a wildcard rule matches any name."""
TOO_MANY_TENANTS = "quota: too many tenants are active at once to count the use of another; try again in a minute"
NAME_SHOWN_MAX = 80


@dataclass(frozen=True, slots=True)
class Limits:
    """Of each tenant for itself. None: not limited."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    """Of prompts and answers together."""
    concurrent: int | None = None
    usd_per_month: float | None = None


@dataclass(slots=True, eq=False)
class Bucket:
    """Holds what one minute may bring, and fills at an even pace."""

    size: int
    level: float
    filled_at: Seconds

    def fill(self, now: Seconds) -> None:
        """Add what the time since the last call has brought."""
        elapsed = max(0.0, now - self.filled_at)
        self.level = min(float(self.size), self.level + elapsed * self.size / MINUTE)
        self.filled_at = now

    def wait(self, amount: float) -> Seconds:
        """How long until this much can be taken, or all that it holds when that is less; 0 when it can be now."""
        return max(0.0, (min(amount, self.size) - self.level) * MINUTE / self.size)

    def take(self, amount: float) -> None:
        """Take out, or put back what was not used. May leave a debt."""
        self.level = min(float(self.size), self.level - amount)

    def left(self) -> "Left":
        """What can still be taken, and how long until it is full again."""
        return Left(self.size, max(0, int(self.level)), (self.size - self.level) * MINUTE / self.size)


@dataclass(frozen=True, slots=True)
class Left:
    """What is left of a limit for a minute."""

    limit: int
    remaining: int
    full_in: Seconds


@dataclass(frozen=True, slots=True)
class OverLimit:
    """Which limit a tenant is at, and when it may go on; None when nobody can tell."""

    limit: str
    reason: str
    retry_after: Seconds | None


@dataclass(slots=True, eq=False)
class Account:
    """The use of one tenant."""

    tenant: str
    limits: Limits
    requests: Bucket | None = None
    tokens: Bucket | None = None
    in_flight: int = 0
    held_usd: float = 0.0
    """Expected of what is in flight."""
    booked_usd: float = 0.0
    """Of this month, as the store knows it: all replicas together."""
    unbooked_usd: float = 0.0
    """Spent here since, and not told to the store yet; nothing where there is no budget."""
    unreported_usd: float = 0.0
    """Spent since the metrics were last read."""
    unreported_unpriced: int = 0
    """Requests of unknown price since then."""

    @property
    def spent_usd(self) -> float:
        """What is used of the month's budget, the expectation of what is in flight not counted."""
        return self.booked_usd + self.unbooked_usd

    @property
    def purse_usd(self) -> float | None:
        """What a request may still cost; None without a budget."""
        budget = self.limits.usd_per_month
        return None if budget is None else budget - self.spent_usd - self.held_usd

    @property
    def is_at_rest(self) -> bool:
        """Nothing would be lost if it were forgotten and made anew."""
        buckets = [bucket for bucket in (self.requests, self.tokens) if bucket is not None]
        is_full = all(bucket.level >= bucket.size for bucket in buckets)
        return is_full and not self.in_flight and not self.unbooked_usd

    def follow(self, limits: Limits, now: Seconds) -> None:
        """The rule has other limits now: what was used stays used."""
        self.limits = limits
        self.requests = _resized(self.requests, limits.requests_per_minute, now)
        self.tokens = _resized(self.tokens, limits.tokens_per_minute, now)

    def fill(self, now: Seconds) -> None:
        """Bring both buckets up to this moment."""
        for bucket in (self.requests, self.tokens):
            if bucket is not None:
                bucket.fill(now)

    def over_limit(self, tokens: int, now: Seconds) -> OverLimit | None:
        """Why a request of so many tokens may not go now; None when it may, as far as this moment's use goes."""
        self.fill(now)
        limits = self.limits
        if limits.concurrent is not None and self.in_flight >= limits.concurrent:
            return self._over("concurrent", limits.concurrent, None)
        if self.requests is not None and (wait := self.requests.wait(1)) > 0:
            return self._over("requests_per_minute", self.requests.size, wait)
        if self.tokens is not None and (wait := self.tokens.wait(tokens)) > 0:
            return self._over("tokens_per_minute", self.tokens.size, wait)
        return None

    def _over(self, limit: str, value: int, wait: Seconds | None) -> OverLimit:
        name = repr(self.tenant[:NAME_SHOWN_MAX])
        when = "when a request of its own has ended" if wait is None else f"in {max(wait, 0.1):.1f} s"
        return OverLimit(limit, f"quota: tenant {name} is at its {limit} of {value}; try again {when}", wait)

    def over_budget(self, wait: Seconds) -> OverLimit:
        """The budget that every destination with room would overdraw."""
        name, limit = repr(self.tenant[:NAME_SHOWN_MAX]), "usd_per_month"
        used = f"{self.spent_usd + self.held_usd:.2f} of its {limit} of {self.limits.usd_per_month or 0:g}"
        why = f"quota: budget: tenant {name} has used {used}, and this would cost more than is left"
        return OverLimit(limit, f"{why}; raise it or wait for the next month", wait)

    def hold(self, tokens: int, price: Price | None, usd: float) -> "Hold":
        """Count a request in before it leaves."""
        if self.requests is not None:
            self.requests.take(1)
        if self.tokens is not None:
            tokens = min(tokens, self.tokens.size)
            self.tokens.take(tokens)
        self.in_flight += 1
        self.held_usd += usd
        return Hold(self, tokens, price, usd)

    def left(self, now: Seconds) -> tuple[Left | None, Left | None]:
        """What is left of the minute's requests and tokens."""
        self.fill(now)
        requests, tokens = self.requests, self.tokens
        return None if requests is None else requests.left(), None if tokens is None else tokens.left()


@dataclass(slots=True, eq=False)
class Hold:
    """What one request in flight holds of its tenant's limits. Whoever has it ends it once, in one of three ways."""

    account: Account
    tokens: int
    price: Price | None
    """None where nobody knows it, which a tenant with a budget is never sent to."""
    usd: float

    def settle(self, prompt_tokens: int, cached_tokens: int, output_tokens: int) -> None:
        """It has used this much."""
        usd = 0.0 if self.price is None else self.price.of(prompt_tokens, cached_tokens, output_tokens)
        self._close(prompt_tokens + output_tokens, usd)

    def keep(self) -> None:
        """It was served, and nobody will say how much it used: what was expected stands."""
        self._close(self.tokens, self.usd)

    def give_back(self) -> None:
        """Nothing was served."""
        if self.account.requests is not None:
            self.account.requests.take(-1)
        self._release(0)

    def _close(self, tokens: int, usd: float) -> None:
        account = self.account
        account.unreported_usd += usd
        account.unreported_unpriced += self.price is None
        if account.limits.usd_per_month is not None:
            account.unbooked_usd += usd
        self._release(tokens)

    def _release(self, tokens: int) -> None:
        account = self.account
        account.in_flight -= 1
        account.held_usd = account.held_usd - self.usd if account.in_flight else 0.0  # no rounding is left behind
        if account.tokens is not None:
            account.tokens.take(tokens - self.tokens)


@dataclass(slots=True, eq=False)
class Accounts:
    """The use of all tenants that have limits."""

    month_ends_at: Seconds = float("inf")
    _accounts: dict[str, Account] = field(default_factory=dict)
    _booked: dict[str, float] = field(default_factory=dict)

    def of(self, tenant: str, limits: Limits, now: Seconds) -> Account | None:
        """A tenant's account under the limits of its rule; None when too many are in use at once."""
        account = self._accounts.get(tenant)
        if account is None:
            if len(self._accounts) >= ACCOUNTS_MAX and not self._sweep(now):
                return None
            account = self._accounts[tenant] = Account(tenant, limits, booked_usd=self._booked.get(tenant, 0.0))
            account.follow(limits, now)
        elif account.limits is not limits:
            account.follow(limits, now)
        return account

    def page(self, after: str | None, count: int) -> tuple[Account, ...]:
        """So many of the accounts in use, by tenant: the first ones, or those that follow a tenant."""
        names = self._accounts if after is None else [name for name in self._accounts if name > after]
        return tuple(self._accounts[name] for name in nsmallest(count, names))

    def unbooked(self) -> Mapping[str, float]:
        """What tenants with a budget have spent since the store was last told."""
        spent = {tenant: account.unbooked_usd for tenant, account in self._accounts.items()}
        return {tenant: usd for tenant, usd in spent.items() if usd > 0}

    def booked(self, tenant: str, usd: float) -> None:
        """The store has taken this much of what a tenant spent."""
        account = self._accounts[tenant]
        account.unbooked_usd = max(0.0, account.unbooked_usd - usd)
        account.booked_usd += usd
        self._booked[tenant] = account.booked_usd

    def take_unreported(self) -> tuple[tuple[str, float, int], ...]:
        """What each tenant spent, and its requests of unknown price, since this was last asked."""
        taken = [(one, one.unreported_usd, one.unreported_unpriced) for one in self._accounts.values()]
        for account, _, _ in taken:
            account.unreported_usd, account.unreported_unpriced = 0.0, 0
        return tuple((account.tenant, usd, unpriced) for account, usd, unpriced in taken if usd or unpriced)

    def follow(self, totals: Mapping[str, float]) -> None:
        """What the store says was spent this month, by all replicas."""
        self._booked = dict(totals)
        for tenant, account in self._accounts.items():
            account.booked_usd = totals.get(tenant, 0.0)

    def _sweep(self, now: Seconds) -> bool:
        """Forget the accounts that are at rest. True when there was any."""
        for account in self._accounts.values():
            account.fill(now)
        before = len(self._accounts)
        self._accounts = {tenant: account for tenant, account in self._accounts.items() if not account.is_at_rest}
        return len(self._accounts) < before


def _resized(bucket: Bucket | None, size: int | None, now: Seconds) -> Bucket | None:
    if size is None:
        return None
    if bucket is None:
        return Bucket(size, float(size), now)
    bucket.fill(now)
    used = bucket.size - bucket.level
    return Bucket(size, size - used, now)
