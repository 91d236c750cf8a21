"""The fleet in virtual time: arrivals, leaps of engines, reports, scrapes and outages, in order of time."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from math import inf
from types import MappingProxyType
from typing import Final

from kinference.core.policy import RoutingRules
from kinference.core.waiting import CLASS_RULES, AdmissionRules
from kinference.ids import Seconds
from kinference.sim.cluster.dispatch import HELD, Clairvoyant, CoreDispatcher, Dispatcher
from kinference.sim.cluster.engine import LeapingEngine
from kinference.sim.cluster.gaps import Gaps
from kinference.sim.cluster.job import Arrival, Job
from kinference.sim.timing import Timing

CLAIRVOYANT: Final = "clairvoyant"
ATTEMPTS_MAX: Final = 3
PATIENT: Final = AdmissionRules(
    waiting_max=1_000_000,
    classes=MappingProxyType({qos: replace(rule, wait_max_s=inf) for qos, rule in CLASS_RULES.items()}),
)
"""Nobody is refused here: whoever waits shows in the figures."""


@dataclass(frozen=True, slots=True)
class Outage:
    """An engine that is gone for a while and comes back cold. From 0 on: one that is added later."""

    engine: int
    begins_at: Seconds
    ends_at: Seconds


@dataclass(frozen=True, slots=True)
class Slowness:
    """An engine that takes so many times as long for a while: a million times is one that hangs, and goes on then."""

    engine: int
    begins_at: Seconds
    ends_at: Seconds
    times_slower: float


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """The fleet, and how late its router hears of things."""

    engines: tuple[Timing, ...]
    policy: str
    seed: int = 0
    scrape_every_s: Seconds = 1.0
    report_delay_s: Seconds = 0.005
    outages: tuple[Outage, ...] = ()
    slownesses: tuple[Slowness, ...] = ()
    admission: AdmissionRules = PATIENT
    untold: tuple[Outage, ...] = ()
    """While an engine's metrics hang: it works on, and the router is told nothing of it but by reports."""


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a run."""

    jobs: list[Job]
    gaps: Gaps
    took_s: Seconds
    """Virtual seconds."""


class ClusterRun:
    """One run over one list of arrivals."""

    def __init__(self, options: FleetOptions) -> None:
        self._options = options
        self._gaps = Gaps()
        self._engines = [LeapingEngine(timing, self._gaps) for timing in options.engines]
        self._lives = [1] * len(self._engines)
        self._down: set[int] = set()
        self._dispatcher = _dispatcher(options, self._engines)
        self._events: list[tuple[Seconds, int, Callable[[Seconds], None]]] = []
        self._order = count()
        self._wakes: list[int] = [0] * len(self._engines)
        self._left = 0
        self._looks_at: Seconds = inf

    def play(self, arrivals: Iterable[Arrival]) -> Played:
        """Run until every job is done."""
        jobs = [Job(arrival) for arrival in arrivals]
        self._left = len(jobs)
        for outage in self._options.outages:
            self._at(outage.begins_at, partial(self._die, outage.engine))
            self._at(outage.ends_at, partial(self._revive, outage.engine))
        for spell in self._options.slownesses:
            self._at(spell.begins_at, partial(self._change_pace, spell.engine, spell.times_slower))
            self._at(spell.ends_at, partial(self._change_pace, spell.engine, 1.0))
        for place in range(len(self._engines)):
            self._see(place, 0.0)
        coming = iter(jobs)
        self._await_next(coming)
        now = 0.0
        events, dispatcher = self._events, self._dispatcher
        while self._left:
            now, _, happen = heapq.heappop(events)
            happen(now)
            if dispatcher.holds:
                self._release(now)
        return Played(jobs, self._gaps, now)

    def _at(self, time: Seconds, happen: Callable[[Seconds], None]) -> None:
        heapq.heappush(self._events, (time, next(self._order), happen))

    def _await_next(self, coming: Iterator[Job]) -> None:
        job = next(coming, None)
        if job is not None:
            self._at(job.arrival.at, partial(self._arrive, job, coming))

    def _arrive(self, job: Job, coming: Iterator[Job], now: Seconds) -> None:
        self._send(job, now)
        self._await_next(coming)

    def _send(self, job: Job, now: Seconds) -> None:
        job.attempts += 1
        job.sent_at = now
        place = self._dispatcher.send(job, now)
        if place != HELD:
            self._enter(job, place, now)

    def _release(self, now: Seconds) -> None:
        """Something has changed: whoever was held and can start now goes."""
        for job, place in self._dispatcher.release(now):
            job.sent_at = now
            self._enter(job, place, now)
        looks_at = self._dispatcher.due(now)
        if looks_at is not None and looks_at < self._looks_at:
            self._looks_at = looks_at
            self._at(looks_at, self._look_again)

    def _look_again(self, now: Seconds) -> None:
        """What follows each event does it. One that has been overtaken by an earlier one asks for no other."""
        if now == self._looks_at:
            self._looks_at = inf

    def _enter(self, job: Job, place: int | None, now: Seconds) -> None:
        if place is None:
            self._left -= 1
            return
        job.engine = place
        if place in self._down:
            self._lose(job, now)
        elif not self._engines[place].fits(job):
            self._dispatcher.refused(job, job.reservation, now)
            self._left -= 1
        elif self._engines[place].submit(job, now):
            self._wake(place)

    def _wake(self, place: int) -> None:
        """Have the engine's leap ended in time; a wake-up for an end that has moved since is void."""
        ends_at = self._engines[place].ends_at
        if ends_at is not None:
            self._wakes[place] += 1
            self._at(ends_at, partial(self._end_leap, place, self._wakes[place]))

    def _end_leap(self, place: int, wake: int, _now: Seconds) -> None:
        if wake != self._wakes[place]:
            return
        happened = self._engines[place].end_leap()
        dispatcher, delay_s = self._dispatcher, self._options.report_delay_s
        for job in happened.first:
            assert job.first_at is not None
            self._at(job.first_at + delay_s, partial(dispatcher.first, job, job.reservation))
        for job in happened.finished:
            assert job.finished_at is not None
            self._at(job.finished_at + delay_s, partial(dispatcher.done, job, job.reservation))
            self._left -= 1
        self._wake(place)

    def _see(self, place: int, now: Seconds) -> None:
        life = 0 if place in self._down else self._lives[place]
        if not any(one.engine == place and one.begins_at <= now < one.ends_at for one in self._options.untold):
            self._dispatcher.seen(place, life, now)
        spread = 1.0 + place / len(self._engines) if not now else 1.0
        self._at(now + spread * self._options.scrape_every_s, partial(self._see, place))

    def _die(self, place: int, now: Seconds) -> None:
        self._down.add(place)
        self._wakes[place] += 1
        for job in self._engines[place].fail():
            self._lose(job, now)

    def _lose(self, job: Job, now: Seconds) -> None:
        """The client's gateway hears of it at once, and tries again elsewhere while nothing was said yet."""
        self._dispatcher.lost(job, job.reservation, now)
        if job.first_at is None and job.attempts < ATTEMPTS_MAX:
            self._at(now + self._options.report_delay_s, partial(self._send, job))
        else:
            job.first_at = None
            self._left -= 1

    def _change_pace(self, place: int, times_slower: float, now: Seconds) -> None:
        self._engines[place].change_pace(times_slower, now)
        self._wake(place)

    def _revive(self, place: int, _now: Seconds) -> None:
        self._down.discard(place)
        self._lives[place] += 1


def _dispatcher(options: FleetOptions, engines: Sequence[LeapingEngine]) -> Dispatcher:
    if options.policy == CLAIRVOYANT:
        return Clairvoyant(engines)
    return CoreDispatcher(engines, RoutingRules(policy=options.policy), options.admission, options.seed)
