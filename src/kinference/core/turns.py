"""Requests of one class that wait, by tenants who take turns.

It is deficit round robin with a quantum as small as can be, charged in work as it is served: whoever has had the least
has its turn. Nobody saves up by staying away, and who has had more keeps that debt while away.
"""

from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace
from typing import Final

from kinference.core.request import Request
from kinference.core.weigh import Prompt
from kinference.ids import Milliseconds, Seconds

DEBTS_MAX: Final = 1_024
"""So many tenants that have left are remembered with what they had more than others."""


@dataclass(slots=True, eq=False)
class Waiting:
    """One request that is held, and by when it has to have left."""

    number: int
    request: Request
    prompt: Prompt
    """Its blocks, hashed once, and who held them when it was last weighed."""
    since: Seconds
    until: Seconds
    bound_for: str = ""
    """Where it was best off when last weighed."""
    work_ms: Milliseconds = 0.0
    """The time that its prompt takes there."""
    charged_ms: Milliseconds = 0.0
    due: Seconds = 0.0
    """When it would be its turn, were nobody else there: the order within a tenant."""
    prompt_tokens: int = 0
    uncached: int = 0
    """How many of them are to be computed."""


def due_of(waiting: Waiting) -> Seconds:
    """What a tenant's own are ordered by."""
    return waiting.due


@dataclass(slots=True, eq=False)
class Tenant:
    """Those of one tenant, the most urgent first."""

    name: str
    served_ms: Milliseconds
    """Work it has had served, counted from where whoever had least stood when it came."""
    items: list[Waiting] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Turns:
    """Who has had the least work served has its turn."""

    tenants: dict[str, Tenant] = field(default_factory=dict)
    _level_ms: Milliseconds = 0.0
    """What the tenant served last had had until then: who comes now starts from there, without a claim on the past."""
    _debts: dict[str, Milliseconds] = field(default_factory=dict)
    """What those that have left had had served beyond that: to come one by one must gain nothing."""

    def add(self, waiting: Waiting) -> None:
        """One more waits."""
        name = waiting.request.tenant
        tenant = self.tenants.get(name)
        if tenant is None:
            served_ms = max(self._debts.pop(name, 0.0), self._level_ms)
            tenant = self.tenants[name] = Tenant(name, served_ms)
        insort(tenant.items, waiting, key=due_of)

    def drop(self, waiting: Waiting) -> None:
        """It waits no longer."""
        tenant = self.tenants[waiting.request.tenant]
        tenant.items.remove(waiting)
        if not tenant.items:
            del self.tenants[tenant.name]
            self._remember(tenant)

    def _remember(self, tenant: Tenant) -> None:
        if tenant.served_ms <= self._level_ms:
            return
        self._debts[tenant.name] = tenant.served_ms
        if len(self._debts) > DEBTS_MAX:
            debts = {name: served_ms for name, served_ms in self._debts.items() if served_ms > self._level_ms}
            self._debts = debts if len(debts) <= DEBTS_MAX else {}

    def move(self, waiting: Waiting, due: Seconds) -> None:
        """It is due at another time."""
        items = self.tenants[waiting.request.tenant].items
        items.remove(waiting)
        waiting.due = due
        insort(items, waiting, key=due_of)

    def charge(self, waiting: Waiting) -> None:
        """It was served: its tenant pays."""
        tenant = self.tenants[waiting.request.tenant]
        self._level_ms = max(self._level_ms, tenant.served_ms)
        tenant.served_ms += waiting.work_ms

    def in_turn(self) -> Iterator[Waiting]:
        """In the order in which they would be served if each could be."""
        if len(self.tenants) == 1:
            for tenant in self.tenants.values():
                yield from tenant.items
            return
        turns = [(tenant.served_ms, number, iter(tenant.items)) for number, tenant in enumerate(self.tenants.values())]
        heapify(turns)
        while turns:
            served_ms, number, items = turns[0]
            waiting = next(items, None)
            if waiting is None:
                heappop(turns)
                continue
            yield waiting
            heapreplace(turns, (served_ms + waiting.work_ms, number, items))
