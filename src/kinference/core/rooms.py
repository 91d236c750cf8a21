"""Which destinations can begin with one more prompt soon, or when the first of them can."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from kinference.core.ledger import SCRAPE_FADES_S, Load
from kinference.core.rates import Rates
from kinference.core.roster import Destination
from kinference.ids import Milliseconds, Seconds

TRIED: Final = 16
"""So many first tokens behind other prompts tell how long prompts wait for each other somewhere."""

MARGIN_MS: Final = 1e-3
"""Far more than one and the same moment, reckoned at two, can differ by."""

Place: TypeAlias = tuple[Destination, Rates]


@dataclass(slots=True, eq=False)
class Rooms:
    """Some destinations by name, at one moment."""

    at: Seconds
    changes: int
    """What is known of destinations, by the router's count."""
    usable: set[str]
    free: dict[str, Place]
    """Those that can begin soon enough."""
    free_at: Seconds
    """When the first can, if nobody tells anything before: now where one is free or none can be used."""
    first: Sequence[Place]
    """Who that is, and who is hardly later; none where it may be somebody else by then."""


def find_rooms(places: Mapping[str, Place], within_ms: Milliseconds, changes: int, now: Seconds) -> Rooms:
    """Look at each of them once: for all that waits every report asks who has room, and when somebody will."""
    usable: set[str] = set()
    free: dict[str, Place] = {}
    waits: list[tuple[Milliseconds, Place]] = []
    is_steady = True
    for name, place in places.items():
        destination, rates = place
        if not destination.is_usable(now):
            is_steady = False
            continue
        usable.add(name)
        load = destination.load
        left_ms = ready_ms(load, rates, now)
        if left_ms <= _within(load, within_ms) or (within_ms and _is_untried(load, rates)):
            free[name] = place
        elif not free:
            is_steady = is_steady and not load.foreign_tokens
            waits.append((_room_in_ms(load, rates, left_ms, within_ms, now), place))
    if free or not usable:
        return Rooms(now, changes, usable, free, now, ())
    least_ms = min([wait_ms for wait_ms, _ in waits])
    first = [place for wait_ms, place in waits if wait_ms <= least_ms + MARGIN_MS] if is_steady else ()
    return Rooms(now, changes, usable, free, now + least_ms / 1e3, first)


def rooms_later(before: Rooms, within_ms: Milliseconds, now: Seconds) -> Rooms | None:
    """The same when nothing but time has passed, from those who were first alone. None where all are to be asked."""
    if not before.first or not before.at <= now < before.free_at - MARGIN_MS / 1e3:
        return None
    least_ms = min([_room_in_ms(one.load, rates, 0.0, within_ms, now) for one, rates in before.first])
    return Rooms(now, before.changes, before.usable, before.free, now + least_ms / 1e3, before.first)


def has_room(load: Load, rates: Rates, within_ms: Milliseconds, now: Seconds) -> bool:
    """Whether it can begin with one more prompt within so much time."""
    return (within_ms > 0.0 and _is_untried(load, rates)) or ready_ms(load, rates, now) <= _within(load, within_ms)


def _within(load: Load, within_ms: Milliseconds) -> Milliseconds:
    """How much may be ahead of a prompt that can begin soon."""
    return within_ms * load.headway


def ready_ms(load: Load, rates: Rates, now: Seconds) -> Milliseconds:
    """How long until it could begin with one more prompt, as far as anybody has told: its engine, or who reports.

    Callers need do neither (a Pick may be all that is ever heard of a request), and must not be made to wait for a
    guess.
    """
    slope = rates.ms_per_token
    if is_unheard(load, rates, now):
        return 0.0
    left_ms = slope * load.prefill_tokens - load.done_ms(slope, now)
    if load.doubted:
        left_ms *= load.believed / max(load.requests, 1)
    if load.foreign_tokens:
        left_ms += slope * load.foreign_tokens * SCRAPE_FADES_S / (SCRAPE_FADES_S + abs(now - load.seen_at))
    return left_ms


def is_unheard(load: Load, rates: Rates, now: Seconds) -> bool:
    """Whether nobody seems to report: nobody ever has, and a first token is overdue by more than a guess may take, or
    has been since anybody was sent there.
    """
    typical = rates.typical
    return typical.samples == 0 and not load.waiting and (typical.is_unheard or load.is_silent(rates.ms_per_token, now))


def _is_untried(load: Load, rates: Rates) -> bool:
    """A few may be at an engine that tells nothing of itself while it is a guess that they would wait for each other:
    only so it is learned whether they do.
    """
    typical = rates.typical
    return typical.samples > 0 and typical.in_line < TRIED and not load.is_told and load.prefilling < TRIED


def _room_in_ms(load: Load, rates: Rates, left_ms: Milliseconds, within_ms: Milliseconds, now: Seconds) -> Milliseconds:
    """How long until it could begin with one more prompt within so much time, `left_ms` being too long yet."""
    within_ms = _within(load, within_ms)
    if load.foreign_tokens:
        return max(0.0, left_ms - within_ms)
    slope = rates.ms_per_token
    within_ms *= max(load.requests, 1) / load.believed if load.doubted else 1.0
    room_in_ms = load.ms_until_done(slope * load.prefill_tokens - within_ms, slope, now)
    if rates.typical.samples == 0 and not load.waiting:
        room_in_ms = min(room_in_ms, load.ms_until_silent(slope, now))
    return room_in_ms
