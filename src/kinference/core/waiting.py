"""Requests that wait for an engine: classes before tenants, tenants in turn (`turns`), and the most urgent of a tenant
first.

Within a tenant the order is that of due times. One with as much to compute as is typical is due its class's objective
after it came, one with less is due sooner in proportion, and one with more later, but never by more than that objective
after what was held before it is done. So short work overtakes long work, and yet long work ages: it is kept no longer
than its turn would have taken and a wait that is in order. Sizes are compared in tokens, which stay what they are while
it is learned how long an engine takes for them.

What has been computed for one that left need not be computed for those held that begin alike: they are due as much
sooner, and bound for where it went.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from types import MappingProxyType
from typing import Final

from kinference.core.alike import Alike
from kinference.core.candidates import Group
from kinference.core.cost import REQUEST_TOKENS
from kinference.core.prefix.hashing import BLOCK_BYTES
from kinference.core.rates import Rates
from kinference.core.rooms import Rooms
from kinference.core.roster import Destination
from kinference.core.turns import Turns, Waiting, due_of
from kinference.core.weigh import Weighing
from kinference.ids import Milliseconds, Seconds
from kinference.vocabulary import QosClass

AGED_TURN: Final = 8
"""Of so many that leave, one may be batch work that has waited out its objective before interactive work."""

GONE_MAX: Final = 64
"""So many more than wait may be remembered of those that have left."""


@dataclass(frozen=True, slots=True)
class ClassRule:
    """What a class of requests is promised."""

    objective_s: Seconds
    """A wait that is in order: it sets how fast one ages."""
    wait_max_s: Seconds
    """After this a request that waits is refused."""


CLASS_RULES: Final[Mapping[QosClass, ClassRule]] = MappingProxyType(
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
    start_within_ms: Milliseconds = 125.0
    """A destination that can begin with a prompt so soon is not saturated."""
    waiting_max: int = 4_096
    """In all pools together."""
    window: int = 512
    """So many of those that wait are looked at for one that starts."""
    classes: Mapping[QosClass, ClassRule] = field(default_factory=lambda: CLASS_RULES)


@dataclass(frozen=True, slots=True)
class WaitingGroup:
    """Those of one class and one tenant, for people."""

    qos: QosClass
    tenant: str
    requests: int
    work_ms: Milliseconds
    longest_s: Seconds


def _since(waiting: Waiting) -> Seconds:
    return waiting.since


def _work(waiting: Waiting) -> Milliseconds:
    return waiting.work_ms


class WaitingLine:
    """Those that wait for the destinations of one pool."""

    def __init__(self, rules: AdmissionRules) -> None:
        self._rules = rules
        self._classes = {qos: Turns() for qos in QosClass}
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
        self._alike = Alike()
        self.places: dict[str, tuple[Destination, Rates]] = {}
        """Who could serve any of them."""
        self.rooms: Rooms | None = None
        """Which of these had room, when that was looked at last."""
        self._looked_at: Group | None = None

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, waiting: Waiting) -> bool:
        return waiting.number in self._live

    def add(self, waiting: Waiting, weighing: Weighing) -> None:
        """One more waits."""
        place = self.bind(waiting, weighing, self.bound_ms)
        waiting.charged_ms = waiting.work_ms
        waiting.due = waiting.since + self._due_in(waiting, weighing, place)
        self._note_prompt(waiting, weighing, place)
        self._classes[waiting.request.qos].add(waiting)
        self._live[waiting.number] = waiting
        self.work_ms += waiting.work_ms
        heappush(self._times, (waiting.until, waiting.number))

    def _due_in(self, waiting: Waiting, weighing: Weighing, place: int) -> Seconds:
        """How long after it came it is due: its objective, by how much more or less it asks for than is typical."""
        objective_s, group = self._rules.classes[waiting.request.qos].objective_s, weighing.group
        relative = weighing.case.uncached[place] / max(group.traits[group.models[place]].uncached_tokens, 1.0)
        before_ms = self.bound_ms[waiting.bound_for] - waiting.work_ms
        return min(objective_s * relative, objective_s + before_ms / 1e3)

    def _note_prompt(self, waiting: Waiting, weighing: Weighing, place: int) -> None:
        model, case, prompt = weighing.group.models[place], weighing.case, weighing.prompt
        waiting.uncached = case.uncached[place]
        waiting.prompt_tokens = case.uncached[place] + case.hits[place]
        held = max(prompt.depths.get(model, {}).values(), default=0)
        self._alike.add(waiting.number, prompt.blocks.get(model, ()), held)

    def follow(self, weighing: Weighing) -> None:
        """One left for the chosen place: what its prompt shares with those held will have been computed there."""
        if not self._alike:
            return
        group, place = weighing.group, weighing.weighed.chosen
        for number, shared in self._alike.follow(weighing.prompt.blocks.get(group.models[place], ())):
            self._move_up(self._live[number], shared, group, place)

    def _move_up(self, waiting: Waiting, shared: int, group: Group, place: int) -> None:
        traits = group.traits[group.models[place]]
        cached = shared * BLOCK_BYTES / traits.bytes_per_token * group.destinations[place].hit_trust
        uncached = max(REQUEST_TOKENS, waiting.prompt_tokens - int(cached))
        if uncached >= waiting.uncached:
            return
        waiting.uncached = uncached
        self._unbind(waiting)
        self._bind(waiting, group.names[place], group.rates[place].ms_per_token * uncached)
        relative = uncached / max(traits.uncached_tokens, 1.0)
        due = waiting.since + self._rules.classes[waiting.request.qos].objective_s * relative
        if due < waiting.due:
            self._classes[waiting.request.qos].move(waiting, due)

    def bind(self, waiting: Waiting, weighing: Weighing, ahead: Mapping[str, Milliseconds]) -> int:
        """Have it wait for where it is best off, so much work ahead of it counted. Returns that place."""
        self._unbind(waiting)
        totals = costs(weighing, ahead)
        place = totals.index(min(totals))
        self._bind(waiting, weighing.group.names[place], weighing.case.work[place])
        return place

    def _bind(self, waiting: Waiting, name: str, work_ms: Milliseconds) -> None:
        waiting.bound_for, waiting.work_ms = name, work_ms
        self.bound_ms[name] = self.bound_ms.get(name, 0.0) + work_ms
        self._bound[name] += 1

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
        self._classes[waiting.request.qos].charge(waiting)
        self.drop(waiting)

    def drop(self, waiting: Waiting) -> None:
        """It waits no longer, for whatever cause."""
        self._classes[waiting.request.qos].drop(waiting)
        del self._live[waiting.number]
        self._unbind(waiting)
        self._alike.drop(waiting.number)
        self.work_ms = self.work_ms - waiting.charged_ms if self._live else 0.0
        if len(self._times) > 2 * len(self._live) + GONE_MAX:
            self._times = [(waiting.until, number) for number, waiting in self._live.items()]
            heapify(self._times)

    def in_turn(self, now: Seconds) -> Iterator[Waiting]:
        """In the order in which they are to be served: by class, then tenants in turn, then by due time.

        One in so many may be batch work that has waited out its objective, so that it never starves.
        """
        interactive, batch, deferrable = (self._classes[qos] for qos in QosClass)
        aged: Waiting | None = None
        if batch.tenants and self._served % AGED_TURN == 0:
            patience_s = self._rules.classes[QosClass.BATCH].objective_s
            first = min((tenant.items[0] for tenant in batch.tenants.values()), key=_since)
            if now - first.since >= patience_s:
                aged = first
                yield aged
        for line in (interactive, batch, deferrable):
            for waiting in line.in_turn():
                if waiting is not aged:
                    yield waiting

    def to_shed(self, than: QosClass) -> Waiting | None:
        """Whom to refuse for one of a better class: of the least class that waits, who is due last."""
        for qos in sorted(QosClass, reverse=True):
            if qos <= than:
                return None
            tenants = self._classes[qos].tenants
            if tenants:
                return max((tenant.items[-1] for tenant in tenants.values()), key=due_of)
        return None

    def overdue(self, now: Seconds) -> Iterator[Waiting]:
        """Those who have waited as long as they may; whoever is taken is to be dropped."""
        while self._times and (self._times[0][0] <= now or self._times[0][1] not in self._live):
            _, number = heappop(self._times)
            if number in self._live:
                yield self._live[number]

    def look(self, group: Group) -> None:
        """These could serve one of them."""
        if group is self._looked_at:
            return
        self._looked_at, self.rooms = group, None
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
            for tenant in line.tenants.values()
        ]
        return sorted(found, key=lambda group: -group.longest_s)

    def counts(self) -> dict[QosClass, int]:
        """How many of each class wait."""
        return {
            qos: sum(len(tenant.items) for tenant in line.tenants.values())
            for qos, line in self._classes.items()
            if line.tenants
        }


def costs(weighing: Weighing, ahead: Mapping[str, Milliseconds]) -> Sequence[Milliseconds]:
    """What each destination would cost, the work that others wait with for it counted."""
    if not ahead:
        return weighing.weighed.totals
    return [
        total + ahead[name] if name in ahead else total
        for name, total in zip(weighing.group.names, weighing.weighed.totals, strict=True)
    ]
