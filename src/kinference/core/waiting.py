"""Requests that wait for an engine: classes before tenants, tenants in turn, and the most urgent of a tenant first.

Within a tenant the order is that of due times. One that asks for typical work is due its class's objective after it
came, one that asks for less is due sooner in proportion. So short work overtakes long work, and yet long work ages:
what has waited its objective goes before everything of typical size that has only just come.

Between tenants it is deficit round robin, charged in work as it is served: a tenant whose account is overdrawn has had
its turn, and gets a quantum when the turn comes round again.
"""

from bisect import insort
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from types import MappingProxyType

from kinference.core.candidates import Group
from kinference.core.rates import Rates
from kinference.core.request import Request
from kinference.core.roster import Destination
from kinference.core.weigh import Prompt, Weighing
from kinference.ids import Milliseconds, Seconds
from kinference.vocabulary import QosClass

SMOOTHING = 0.05
WORK_MS = 250.0
"""What is typical while nothing has been held yet."""
AGED_TURN = 8
"""Of so many that leave, one may be batch work that has waited out its objective before interactive work."""

GONE_MAX = 64
"""So many more than wait may be remembered of those that have left."""


@dataclass(frozen=True, slots=True)
class ClassRule:
    """What a class of requests is promised."""

    objective_s: Seconds
    """A wait that is in order: it sets how fast one ages."""
    wait_max_s: Seconds
    """After this a request that waits is refused."""


CLASS_RULES: Mapping[QosClass, ClassRule] = MappingProxyType(
    {
        QosClass.INTERACTIVE: ClassRule(2.0, 60.0),
        QosClass.BATCH: ClassRule(30.0, 600.0),
        QosClass.DEFERRABLE: ClassRule(300.0, 3_600.0),
    }
)


@dataclass(frozen=True, slots=True)
class AdmissionRules:
    """When requests are held, how many, and for how long."""

    enabled: bool = True
    start_within_ms: Milliseconds = 250.0
    """A destination that can begin with a prompt so soon is not saturated."""
    waiting_max: int = 4_096
    """In all pools together."""
    window: int = 512
    """So many of those that wait are looked at for one that starts."""
    classes: Mapping[QosClass, ClassRule] = field(default_factory=lambda: CLASS_RULES)


@dataclass(slots=True, eq=False)
class Waiting:
    """One request that is held, and by when it has to have left."""

    number: int
    request: Request
    prompt: Prompt
    """Its blocks, hashed once."""
    since: Seconds
    until: Seconds
    bound_for: str = ""
    """Where it was best off when last weighed."""
    work_ms: Milliseconds = 0.0
    """The time that its prompt takes there."""
    charged_ms: Milliseconds = 0.0
    due: Seconds = 0.0
    """When it would be its turn, were nobody else there: the order within a tenant."""


@dataclass(frozen=True, slots=True)
class WaitingGroup:
    """Those of one class and one tenant, for people."""

    qos: QosClass
    tenant: str
    requests: int
    work_ms: Milliseconds
    longest_s: Seconds


def _due(waiting: Waiting) -> Seconds:
    return waiting.due


def _since(waiting: Waiting) -> Seconds:
    return waiting.since


def _work(waiting: Waiting) -> Milliseconds:
    return waiting.work_ms


@dataclass(slots=True, eq=False)
class _Tenant:
    name: str
    account_ms: Milliseconds = 0.0
    """Work it may still have served before the next one's turn; overdrawn by at most one request."""
    items: list[Waiting] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _ClassLine:
    """One class's requests: tenants in a ring, the one whose turn it is first."""

    ring: deque[_Tenant] = field(default_factory=deque)
    tenants: dict[str, _Tenant] = field(default_factory=dict)

    def add(self, waiting: Waiting) -> None:
        name = waiting.request.tenant
        tenant = self.tenants.get(name)
        if tenant is None:
            tenant = self.tenants[name] = _Tenant(name)
            self.ring.append(tenant)
        insort(tenant.items, waiting, key=_due)

    def drop(self, waiting: Waiting) -> None:
        tenant = self.tenants[waiting.request.tenant]
        tenant.items.remove(waiting)
        if not tenant.items:
            del self.tenants[tenant.name]
            self.ring.remove(tenant)

    def charge(self, waiting: Waiting, quantum_ms: Milliseconds) -> None:
        """It was served: its tenant pays, and has had its turn when it is overdrawn."""
        tenant = self.tenants[waiting.request.tenant]
        while self.ring[0] is not tenant:  # those before it had nothing that could start: their turn is over as well
            self.ring.rotate(-1)
        tenant.account_ms -= waiting.work_ms
        if tenant.account_ms <= 0:
            tenant.account_ms += quantum_ms
            self.ring.rotate(-1)

    def in_turn(self, quantum_ms: Milliseconds) -> Iterator[Waiting]:
        """In the order in which they would be served if each could be."""
        if len(self.ring) == 1:
            yield from self.ring[0].items
            return
        ring = deque((tenant.account_ms, iter(tenant.items)) for tenant in self.ring)
        while ring:
            account_ms, items = ring.popleft()
            for waiting in items:
                yield waiting
                account_ms -= waiting.work_ms
                if account_ms <= 0:
                    ring.append((account_ms + quantum_ms, items))
                    break


class WaitingLine:
    """Those that wait for the destinations of one pool."""

    def __init__(self, rules: AdmissionRules) -> None:
        self._rules = rules
        self._classes = {qos: _ClassLine() for qos in QosClass}
        self._typical_ms = WORK_MS
        self._served = 0
        self._times: list[tuple[Seconds, int]] = []
        """When each has to have left; who has left before stays for a while, by number alone."""
        self._live: dict[int, Waiting] = {}
        self.work_ms = 0.0
        """Of all that wait."""
        self.again_at: Seconds = 0.0
        """Not to be walked before."""
        self._bound: Counter[str] = Counter()
        self.bound_ms: dict[str, Milliseconds] = {}
        """The work that waits for each destination."""
        self.places: dict[str, tuple[Destination, Rates]] = {}
        """Who could serve any of them."""

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, waiting: Waiting) -> bool:
        return waiting.number in self._live

    def add(self, waiting: Waiting, weighing: Weighing) -> None:
        """One more waits."""
        self.bind(waiting, weighing)
        waiting.charged_ms = waiting.work_ms
        self._typical_ms += SMOOTHING * (waiting.work_ms - self._typical_ms)
        objective_s = self._rules.classes[waiting.request.qos].objective_s
        waiting.due = waiting.since + objective_s * waiting.work_ms / max(self._typical_ms, 1.0)
        self._classes[waiting.request.qos].add(waiting)
        self._live[waiting.number] = waiting
        self.work_ms += waiting.work_ms
        heappush(self._times, (waiting.until, waiting.number))

    def bind(self, waiting: Waiting, weighing: Weighing) -> int:
        """Have it wait for where it is best off, what others wait for counted. Returns that place."""
        self._unbind(waiting)
        names, bound_ms = weighing.group.names, self.bound_ms
        costs = self.costs(weighing)
        place = costs.index(min(costs))
        waiting.bound_for, waiting.work_ms = names[place], weighing.case.work[place]
        bound_ms[names[place]] = bound_ms.get(names[place], 0.0) + waiting.work_ms
        self._bound[names[place]] += 1
        return place

    def costs(self, weighing: Weighing) -> list[Milliseconds]:
        """What each destination would cost it, what waits for it counted."""
        bound_ms, names, totals = self.bound_ms, weighing.group.names, weighing.weighed.totals
        return [
            total + bound_ms[name] if name in bound_ms else total for name, total in zip(names, totals, strict=True)
        ]

    def _unbind(self, waiting: Waiting) -> None:
        if waiting.bound_for not in self._bound:
            return
        self._bound[waiting.bound_for] -= 1
        self.bound_ms[waiting.bound_for] -= waiting.work_ms
        if not self._bound[waiting.bound_for]:
            del self._bound[waiting.bound_for], self.bound_ms[waiting.bound_for]

    def serve(self, waiting: Waiting) -> None:
        """It goes to a destination: its tenant pays for it."""
        self._served += 1
        self._classes[waiting.request.qos].charge(waiting, self._typical_ms)
        self.drop(waiting)

    def drop(self, waiting: Waiting) -> None:
        """It waits no longer, for whatever cause."""
        self._classes[waiting.request.qos].drop(waiting)
        del self._live[waiting.number]
        self._unbind(waiting)
        self.work_ms = self.work_ms - waiting.charged_ms if self._live else 0.0
        if len(self._times) > 2 * len(self._live) + GONE_MAX:
            self._times = [(waiting.until, number) for number, waiting in self._live.items()]
            heapify(self._times)

    def in_turn(self, now: Seconds) -> Iterator[Waiting]:
        """In the order in which they are to be served: by class, then tenants in turn, then by due time.

        One in so many may be batch work that has waited out its objective, so that it never starves.
        """
        quantum_ms = self._typical_ms
        interactive, batch, deferrable = (self._classes[qos] for qos in QosClass)
        aged: Waiting | None = None
        if batch.ring and self._served % AGED_TURN == 0:
            patience_s = self._rules.classes[QosClass.BATCH].objective_s
            first = min((tenant.items[0] for tenant in batch.ring), key=_since)
            if now - first.since >= patience_s:
                aged = first
                yield aged
        for line in (interactive, batch, deferrable):
            for waiting in line.in_turn(quantum_ms):
                if waiting is not aged:
                    yield waiting

    def to_shed(self, than: QosClass) -> Waiting | None:
        """Whom to refuse for one of a better class: of the least class that waits, who is due last."""
        for qos in sorted(QosClass, reverse=True):
            if qos <= than:
                return None
            ring = self._classes[qos].ring
            if ring:
                return max((tenant.items[-1] for tenant in ring), key=_due)
        return None

    def overdue(self, now: Seconds) -> Iterator[Waiting]:
        """Those who have waited as long as they may; whoever is taken is to be dropped."""
        while self._times and (self._times[0][0] <= now or self._times[0][1] not in self._live):
            _, number = heappop(self._times)
            if number in self._live:
                yield self._live[number]

    def look(self, group: Group) -> None:
        """These could serve one of them."""
        self.places.update(zip(group.names, zip(group.destinations, group.rates, strict=True), strict=True))

    def due_at(self, soonest: Seconds) -> Seconds:
        """When to walk them next, if the first destination has room then."""
        walk_at = max(soonest, self.again_at)
        return min(walk_at, self._times[0][0]) if self._times else walk_at

    def tenants(self) -> int:
        """How many tenants wait."""
        return len({name for line in self._classes.values() for name in line.tenants})

    def longest_s(self, now: Seconds) -> Seconds:
        """How long the one has waited that has waited longest."""
        return now - min((one.since for one in self._live.values()), default=now)

    def groups(self, now: Seconds) -> list[WaitingGroup]:
        """Who waits by class and tenant, the longest wait first."""
        found = [
            WaitingGroup(
                qos, tenant.name, len(tenant.items), sum(map(_work, tenant.items)), now - min(map(_since, tenant.items))
            )
            for qos, line in self._classes.items()
            for tenant in line.ring
        ]
        return sorted(found, key=lambda group: -group.longest_s)

    def counts(self) -> dict[QosClass, int]:
        """How many of each class wait."""
        return {qos: sum(len(tenant.items) for tenant in line.ring) for qos, line in self._classes.items() if line.ring}
