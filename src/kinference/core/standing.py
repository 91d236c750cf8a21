"""What stands at each of those that compete, whatever a request asks: collected once while nothing is told."""

from collections.abc import Mapping

from kinference.core.cost import Common
from kinference.core.ledger import SCRAPE_FADES_S, SILENCE_S, UNLIMITED, Load
from kinference.core.rates import Rates
from kinference.ids import Milliseconds, Seconds
from kinference.structs import FrozenRecord


class Standing(FrozenRecord, frozen=True):
    """Loads and rates at one moment, in columns of equal length."""

    at: Seconds
    changes: int
    """What is known of destinations, by the router's count."""
    bases: list[Milliseconds]
    slopes: list[Milliseconds]
    ahead: list[float]
    beside: list[float]
    left: list[Milliseconds]
    hung: Mapping[int, Milliseconds]
    """Each as in a `Case`."""
    least_room: float
    """Tokens that the fullest KV cache of all could take."""
    common: Common


def collect(loads: list[Load], rates: list[Rates], changes: int, now: Seconds) -> Standing:
    """All columns in one pass: for few candidates each pass costs as much."""
    bases: list[Milliseconds] = []
    slopes: list[Milliseconds] = []
    ahead: list[float] = []
    beside: list[float] = []
    left: list[Milliseconds] = []
    hung: dict[int, Milliseconds] = {}
    least_room = UNLIMITED
    for place, load in enumerate(loads):
        one = rates[place]
        typical, factor = one.typical, one.factor
        line = typical.line
        base = factor * line.base_ms
        bases.append(base if base < typical.base_ms_max else typical.base_ms_max)
        slope = factor * line.ms_per_token
        slopes.append(slope)
        prompt_tokens_ahead: int | float = load.prefill_tokens
        requests: int | float = load.requests
        if load.doubted:  # what an engine has not told of lately is ahead of nobody
            prompt_tokens_ahead *= load.believed / max(requests, 1)
            requests = load.believed
        if load.foreign_requests or load.foreign_tokens:  # what the scrape shows beyond our own, and the less the older
            fresh = SCRAPE_FADES_S / (SCRAPE_FADES_S + abs(now - load.seen_at))
            prompt_tokens_ahead += load.foreign_tokens * fresh
            requests += load.foreign_requests * fresh
        left_ms = slope * prompt_tokens_ahead
        if load.first_prompt:  # the first of ours is being computed, or seems to hang
            left_ms -= load.done_ms(slope, now)
            if left_ms < 0.0:
                left_ms = 0.0
            if now - load.begun_at > SILENCE_S and (hung_ms := load.hung_ms(slope, now)):
                hung[place] = hung_ms
        left.append(left_ms)
        ahead.append(prompt_tokens_ahead)
        beside.append(requests)
        room = load.room - load.resident
        if room < least_room:
            least_room = room
    return Standing(now, changes, bases, slopes, ahead, beside, left, hung, least_room, Common())
