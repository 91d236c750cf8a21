"""Admission before the decision: at once while anyone can start soon, else late, by pairs of request and destination.

Past saturation *when* matters as much as *where*. What every destination would make wait is held here, where it can
still change its mind, and goes when a destination can begin with it. Each time there is room those that wait are walked
in their turn, and each takes the destination that is cheapest for it, those before it that still wait for one counted
as work ahead of it there. Who finds room there goes; who does not keeps waiting for it, because going elsewhere would
cost more: a warm cache is worth a wait up to what it saves, and no more.

Who waits for a destination that can be used no longer is bound for another one; where there is no other it goes on
waiting within its bounds. None is sent after those that have just failed: whatever comes back is tried by one first.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count, islice
from math import ceil, inf
from typing import Final

from msgspec.structs import replace

from kinference.core.cost import Case
from kinference.core.decision import Decision
from kinference.core.filters import Verdict
from kinference.core.pick import Router
from kinference.core.request import Request
from kinference.core.rooms import Rooms, find_rooms, has_room, ready_ms, rooms_later
from kinference.core.turns import Waiting
from kinference.core.unserved import Unserved
from kinference.core.waiting import AdmissionRules, WaitingGroup, WaitingLine, costs
from kinference.core.weigh import Prompt, Weighing
from kinference.ids import Milliseconds, ObjectRef, Seconds
from kinference.vocabulary import Outcome, QosClass

AGAIN_S: Final = 0.02
"""Those that wait are not walked again so soon after nobody could start: each had better reasons to wait."""
TICK_S: Final = 0.001
LOOK_S: Final = 0.25
"""While any wait, so often at least: a scrape may have told of room."""
HINT_MAX_S: Final = 60.0
GROUPS_MAX: Final = 100
WEIGHED_MAX: Final = 4
"""So many are weighed anew in a look; the rest is judged from memory."""
OVERDUE_MAX: Final = 64
"""So many are told in a look that they have waited too long: each is asked about once more."""
PASSING: Final = frozenset({Verdict.NOT_READY.cause, Verdict.DRAINING.cause})
"""Why nobody can serve a request for the moment: it may be over before its wait is."""

_DEFERRABLE: Final = QosClass.DEFERRABLE  # Python 3.11 finds a member by a hook each time
Key = tuple[ObjectRef, ...]


@dataclass(frozen=True, slots=True)
class Released:
    """One that waits no longer, and what was decided."""

    waiting: Waiting
    decision: Decision


@dataclass(frozen=True, slots=True)
class WaitingSnapshot:
    """Those that wait for one pool, for people."""

    pools: tuple[str, ...]
    requests: dict[QosClass, int]
    tenants: int
    work_ms: Milliseconds
    longest_s: Seconds
    why: str
    bound_ms: dict[str, Milliseconds]
    """The work that waits for each destination."""
    groups: tuple[WaitingGroup, ...]
    """The longest waits, by class and tenant: no more than GROUPS_MAX."""


class Admission:
    """The router with admission before it. As there, no method awaits."""

    def __init__(self, router: Router, rules: AdmissionRules) -> None:
        self.router = router
        self._rules = rules
        self._lines: dict[Key, WaitingLine] = {}
        self._refused: list[Released] = []
        self._numbers = count(1)
        self._waiting = 0

    def __len__(self) -> int:
        """How many wait."""
        return self._waiting

    def reconfigure(self, rules: AdmissionRules) -> None:
        """Replace the rules; who waits stays, and by when they have to have left. Where nobody is to wait all go."""
        self._rules = rules
        for line in self._lines.values():
            line.again_at, line.rooms = 0.0, None

    def admit(self, request: Request, now: Seconds, known: Prompt | None = None) -> Decision | Waiting:
        """Decide at once while anyone can start soon; else hold the request: `release` tells what became of it.

        `known`: its blocks, where they were hashed before.
        """
        weighing = self.router.weigh(request, now, known)
        if not isinstance(weighing, Weighing):
            return weighing
        if self._rules.enabled and weighing.weighed.in_milliseconds and not self._may_go(weighing, now):
            return self._hold(weighing, now)
        return self.router.commit(weighing, now)

    def release(self, now: Seconds) -> list[Released]:
        """Whoever need not wait any longer: who can start, who has waited too long, whom others drove out."""
        if not self._lines:
            return []
        released, self._refused = self._refused, []
        for key, line in list(self._lines.items()):
            released += self._walk(line, now)
            for one in islice(line.overdue(now), OVERDUE_MAX):
                released.append(Released(one, self._overdue(line, one, now)))
            if not line:
                del self._lines[key]
        self._waiting -= len(released)
        return released

    def withdraw(self, waiting: Waiting) -> None:
        """Whoever asked has gone."""
        for key, line in list(self._lines.items()):
            if waiting in line:
                line.drop(waiting)
                self._waiting -= 1
                if not line:
                    del self._lines[key]

    def deadline(self, now: Seconds) -> Seconds | None:
        """When to call `release` next, if nothing is reported before; None while nobody waits."""
        if not self._lines:
            return None
        if self._refused:
            return now
        due = min(self._due(line, now) for line in self._lines.values())
        return min(max(due, now + TICK_S), now + LOOK_S)

    def snapshot(self, now: Seconds) -> tuple[WaitingSnapshot, ...]:
        """Who waits, by pools."""
        return tuple(
            WaitingSnapshot(
                tuple(map(str, key)),
                line.counts(),
                line.tenants(),
                line.work_ms,
                line.longest_s(now),
                self._why(line, now),
                dict(line.bound_ms),
                tuple(line.groups(now)[:GROUPS_MAX]),
            )
            for key, line in self._lines.items()
        )

    def _why(self, line: WaitingLine, now: Seconds) -> str:
        """What those of a line wait for."""
        usable = [(one.load, rates) for one, rates in line.places.values() if one.is_usable(now)]
        if not usable:
            return f"none of {len(line.places)} destinations can be used: not ready, draining or ejected for failing"
        least_ms = min(ready_ms(*place, now) for place in usable)
        return (
            f"each of {len(usable)} destinations has prompts to compute, the least of them {least_ms:.0f} ms; "
            f"one can start with {self._rules.start_within_ms:.0f} ms before it, where the KV cache has room"
        )

    # --- who starts ------------------------------------------------------------------------------

    def _walk(self, line: WaitingLine, now: Seconds) -> Iterator[Released]:
        if line.again_at > now + AGAIN_S:  # a clock that was set back
            line.again_at = now
        while now >= line.again_at and line:
            found = self._first_to_start(line, now)
            if found is None:
                return
            waiting, outcome = found
            if isinstance(outcome, Decision):
                line.drop(waiting)
                yield Released(waiting, outcome)
            else:
                line.serve(waiting)
                line.follow(outcome)
                waited = f"waited {(now - waiting.since) * 1e3:.0f} ms until an engine could start it"
                yield Released(waiting, _told(self.router.commit(outcome, now), waited))

    def _first_to_start(self, line: WaitingLine, now: Seconds) -> tuple[Waiting, Weighing | Decision] | None:
        """The first in turn that can begin where it is best off, the work of those before it counted where they wait
        for it. None when there is no such pair; a refusal when it could not be served any more.

        Those bound for where there is room are weighed anew, for caches may have changed, and the first few of the
        others, who may be better off there by now.
        """
        rooms = self._rooms(line, now)
        free, usable = rooms.free, rooms.usable
        if usable and not free:
            return None
        ahead: dict[str, Milliseconds] = {}
        unserved = Unserved()
        near = far = 0
        for looked_at, waiting in enumerate(line.in_turn(now)):
            if looked_at >= self._rules.window or near >= WEIGHED_MAX:
                break
            is_near = waiting.bound_for in free or waiting.bound_for not in usable
            if (is_near or far < WEIGHED_MAX) and not unserved.covers(waiting.request):
                found = self._try(line, waiting, ahead, now, any_usable=bool(usable))
                if isinstance(found, Decision) and _may_pass(found):
                    unserved.note(waiting.request)  # it stands in nobody's way
                else:
                    if found is not None:
                        return waiting, found
                    near, far = near + is_near, far + (not is_near)
            ahead[waiting.bound_for] = ahead.get(waiting.bound_for, 0.0) + waiting.work_ms
        line.again_at = now + AGAIN_S
        return None

    def _try(
        self, line: WaitingLine, waiting: Waiting, ahead: Mapping[str, Milliseconds], now: Seconds, *, any_usable: bool
    ) -> Weighing | Decision | None:
        """The weighing to go by if it can start at once where it is best off now; else it is bound for there. A refusal
        where nobody can serve it any more, or just now while others can be served.
        """
        weighing = self.router.weigh(waiting.request, now, waiting.prompt)
        if isinstance(weighing, Decision):
            return weighing if any_usable or not _may_pass(weighing) else None
        waiting.prompt = weighing.prompt
        line.look(weighing.group)
        place = line.bind(waiting, weighing, ahead)
        return weighing.at(place) if self._follows(weighing, place, now) else None

    def _may_go(self, weighing: Weighing, now: Seconds) -> bool:
        """Whether nobody waits before it and anyone can start it soon; mostly that is whoever was chosen."""
        if self._lines and _key(weighing) in self._lines:
            return False
        case, chosen = weighing.case, weighing.weighed.chosen
        if not case.beside[chosen]:
            return True
        qos = weighing.request.qos
        if self._starts(case, chosen, qos is _DEFERRABLE, now):
            return True
        for place in range(len(case.loads)):
            if place != chosen and self._starts(case, place, qos is _DEFERRABLE, now):
                return True
        return False

    def _follows(self, weighing: Weighing, place: int, now: Seconds) -> bool:
        """Whether one that was held goes there now. What has just failed is tried by one alone."""
        case = weighing.case
        is_last = case.circuits[place].is_doubtful or weighing.request.qos is _DEFERRABLE
        return not self._rules.enabled or self._starts(case, place, is_last, now)

    def _starts(self, case: Case, place: int, is_last: bool, now: Seconds) -> bool:
        """Whether it can start there soon; who `is_last`, at once. Where nothing of ours is, it may, whatever a scrape
        says of room.
        """
        if not case.beside[place]:
            return True
        within_ms = 0.0 if is_last else self._rules.start_within_ms
        return has_room(case.loads[place], case.rates[place], within_ms, now) and place in case.fitting

    def _rooms(self, line: WaitingLine, now: Seconds) -> Rooms:
        """Where there is room now, or when there will be: found anew once anything was told, or somebody has room."""
        rooms, changes = line.rooms, self.router.changes
        within_ms = self._rules.start_within_ms if self._rules.enabled else inf
        if rooms is not None and rooms.changes == changes:
            if rooms.at == now:
                return rooms
            rooms = rooms_later(rooms, within_ms, now)
        else:
            rooms = None
        line.rooms = rooms or find_rooms(line.places, within_ms, changes, now)
        return line.rooms

    def _due(self, line: WaitingLine, now: Seconds) -> Seconds:
        """When to walk a line next. Until then it is enough to know of one that has room."""
        if now < line.again_at and line.rooms is not None:
            for one, rates in line.rooms.free.values():
                if one.is_usable(now) and has_room(one.load, rates, self._rules.start_within_ms, now):
                    return line.due_at(now)
        return line.due_at(self._rooms(line, now).free_at)

    # --- who waits -------------------------------------------------------------------------------

    def _hold(self, weighing: Weighing, now: Seconds) -> Decision | Waiting:
        request = weighing.request
        number = next(self._numbers)
        if not request.session:  # so that a split by weight keeps to what it drew
            request = replace(request, session=f"waiting {number}")
            again = self.router.weigh(request, now, weighing.prompt)
            if isinstance(again, Decision):
                return again
            weighing = again
        fallback = self._fallback(weighing, now)
        if fallback is not None:
            return _told(self.router.commit(fallback, now), "spilled over, for waiting would have taken longer")
        if self._waiting >= self._rules.waiting_max and not self._drive_out(request.qos):
            return _refusal(f"saturated: {self._waiting} requests wait already", self._hint_s())
        line = self._lines.setdefault(_key(weighing), WaitingLine(self._rules))
        until = now + self._rules.classes[request.qos].wait_max_s
        waiting = Waiting(number, replace(request, is_patient=True), weighing.prompt, now, until)
        line.look(weighing.group)
        line.add(waiting, weighing)
        line.again_at = now
        self._waiting += 1
        return waiting

    def _fallback(self, weighing: Weighing, now: Seconds) -> Weighing | None:
        """Where to go instead of waiting, if the rules name a place that would take less time."""
        if len(weighing.shortlist.options.tiers) == 1:
            return None
        fallback = self.router.weigh(weighing.request, now, weighing.prompt, skip=1)
        if isinstance(fallback, Decision):
            return None
        line = self._lines.get(_key(weighing))
        stay_ms = min(costs(weighing, line.bound_ms) if line is not None else weighing.weighed.totals)
        return fallback if min(fallback.weighed.totals) < stay_ms else None

    def _drive_out(self, qos: QosClass) -> bool:
        """Make room for one of this class: of a lesser class, the least urgent goes. False when there is none."""
        found = [(one, line) for line in self._lines.values() if (one := line.to_shed(qos)) is not None]
        if not found:
            return False
        waiting, line = max(found, key=lambda pair: (pair[0].request.qos, pair[0].due))
        line.drop(waiting)
        reason = f"saturated: more urgent requests took the last of {self._rules.waiting_max} places to wait"
        self._refused.append(Released(waiting, _refusal(reason, self._hint_s())))
        return True

    def _overdue(self, line: WaitingLine, waiting: Waiting, now: Seconds) -> Decision:
        line.drop(waiting)
        if not any(one.is_usable(now) for one, _ in line.places.values()):
            weighing = self.router.weigh(waiting.request, now, waiting.prompt)
            if isinstance(weighing, Decision):
                return weighing
        return _refusal(f"saturated: waited {now - waiting.since:.0f} s and no engine had room", self._hint_s())

    def _hint_s(self) -> Seconds:
        """When to come back: what waits now should have started by then."""
        longest = max((line.work_ms / 1e3 / max(1, len(line.places)) for line in self._lines.values()), default=0.0)
        return float(min(HINT_MAX_S, max(1, ceil(longest))))


def _told(decision: Decision, why: str) -> Decision:
    """How it came about, too. What a refusal begins with says of which kind it is, so that one stays as it is."""
    return decision if decision.choice is None else replace(decision, reason=f"{why}; {decision.reason}")


def _may_pass(refusal: Decision) -> bool:
    """Whether somebody could serve it who cannot do so just now."""
    if refusal.outcome is not Outcome.NO_WORKERS:
        return False
    return refusal.retry_after is not None or any(one.verdict in PASSING for one in refusal.explain().rejected)


def _refusal(reason: str, retry_s: Seconds) -> Decision:
    return Decision(Outcome.POLICY_REJECTED, f"{reason}; try again in {retry_s:.0f} s", retry_after=retry_s)


def _key(weighing: Weighing) -> Key:
    """The pools and backends that compete for it."""
    return tuple(dict.fromkeys([one.ref for one in weighing.group.destinations]))
