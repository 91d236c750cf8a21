"""Follows the source of one pool: patient with a source that fails, and honest about it."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from random import Random
from typing import Final

from kinference.core.fleet import EndpointSpec, Fleet
from kinference.fleet.discovery.place import PLACES_MAX, Place
from kinference.fleet.discovery.pool import DiscoveredPool
from kinference.fleet.discovery.source import Source, SourceFailed
from kinference.ids import Address, Seconds
from kinference.ports import Clock

PAUSE_FIRST: Seconds = 1.0
PAUSE_MAX: Seconds = 30.0
_DOUBLINGS_MAX: Final = 10
_NAMED_MAX: Final = 8
"""Endpoints that one line of the log names."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DiscoveryStatus:
    """How the discovery of one pool fares."""

    pool: str
    source: str
    endpoints: int
    draining: int
    left_out: int
    """How many more it told of than a pool may have."""
    told_s_ago: Seconds | None
    """None: it has told nothing yet."""
    failures: int
    """Since the start."""
    error: str
    """Why it cannot tell now, "" while it can."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every follower works with."""

    fleet: Fleet
    clock: Clock
    rng: Random
    sleep: Callable[[Seconds], Awaitable[None]]
    changed: Callable[[], None]
    """Told after the fleet has been changed."""


def pause(failures: int, rng: Random) -> Seconds:
    """How long to wait after so many failures in a row: twice as long each time, up to a bound, and never in step with
    other routers.
    """
    longest: Seconds = min(PAUSE_MAX, PAUSE_FIRST * 2 ** min(failures - 1, _DOUBLINGS_MAX))
    return longest * rng.uniform(0.5, 1.0)


class Following:
    """One pool and its source."""

    def __init__(self, surroundings: Surroundings, template: EndpointSpec, source: Source) -> None:
        self._around, self._source = surroundings, source
        self._pool = DiscoveredPool(surroundings.fleet, template)
        self._told: Sequence[Place] | None = None
        """What it told last: a source that tells the very same again has nothing new."""
        self._places: Sequence[Place] = ()
        self._told_at: Seconds | None = None
        self._failures = self._in_a_row = 0
        self._error = ""

    @property
    def is_settled(self) -> bool:
        """Whether it has told or failed at least once."""
        return self._told_at is not None or bool(self._failures)

    @property
    def error(self) -> str:
        return self._error

    def respecify(self, template: EndpointSpec) -> None:
        """What the configuration says of each endpoint from now on."""
        self._pool.respecify(template)

    def release(self) -> None:
        """Its task has been cancelled, and the pool is somebody else's."""
        self._pool.release()

    def status(self) -> DiscoveryStatus:
        """As it is now."""
        told_at = self._told_at
        return DiscoveryStatus(
            pool=str(self._pool.ref),
            source=self._source.name,
            endpoints=len(self._places),
            draining=sum(not place.is_open for place in self._places),
            left_out=self._pool.left_out,
            told_s_ago=None if told_at is None else max(0.0, self._around.clock.now() - told_at),
            failures=self._failures,
            error=self._error,
        )

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                async with aclosing(self._source.sets()) as sets:
                    async for places in sets:
                        self._take(places)
            except SourceFailed as error:
                self._failed(str(error))
            except Exception:  # noqa: BLE001 - the root of a task that must outlive one bad answer
                _log.exception("the discovery of pool %s failed", self._pool.ref)
                self._failed("a fault of ours; the log has it")
            await self._around.sleep(pause(max(1, self._in_a_row), self._around.rng))

    def _take(self, told: Sequence[Place]) -> None:
        before = {place.address for place in self._places}
        step = None if told is self._told else self._pool.take(told)
        self._told, self._told_at, self._in_a_row = told, self._around.clock.now(), 0
        if step is not None:
            self._places = step.places
            self._around.changed()
            now = {place.address for place in step.places}
            _log.info(
                "pool %s by %s: %d endpoints%s%s",
                self._pool.ref,
                self._source.name,
                len(now),
                _named("new", (now - before) | step.anew),
                _named("gone", before - now),
            )
        cut = f"tells {self._pool.left_out} endpoints too many: {PLACES_MAX} are used"
        self._say(cut if self._pool.left_out else "")

    def _failed(self, why: str) -> None:
        self._failures += 1
        self._in_a_row += 1
        self._say(why)

    def _say(self, error: str) -> None:
        """Once, and not each time that it is so."""
        if error == self._error:
            return
        if error:
            kept = len(self._places)
            _log.warning("pool %s by %s: %s (endpoints as before: %d)", self._pool.ref, self._source.name, error, kept)
        else:
            kept = len(self._places)
            _log.info("pool %s by %s: it tells again (endpoints: %d)", self._pool.ref, self._source.name, kept)
        self._error = error


def _named(what: str, addresses: Iterable[Address]) -> str:
    names = sorted(addresses)
    if not names:
        return ""
    more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    return f", {what}: {', '.join(names[:_NAMED_MAX])}{more}"
