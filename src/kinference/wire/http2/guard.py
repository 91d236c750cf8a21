"""Limits of what a peer may make us do: how much at once, and how often.

Frames that cost their sender nothing are paid for from buckets that refill with time, and a little with every request
that comes to its end, so that a busy connection may do more of everything than one that only makes trouble.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from types import MappingProxyType

from kinference.ids import Seconds
from kinference.wire.connections import Tally
from kinference.wire.http2.frames import ConnectionFault, ErrorCode
from kinference.wire.untaken import Untaken


class Nuisance(Enum):
    """What peers have flooded servers with."""

    RESET = auto()
    """A stream that the peer opened and took back, or that we had to refuse (CVE-2023-44487)."""
    FAULT = auto()
    """A stream error that the peer made us answer."""
    CONTROL = auto()
    """SETTINGS and PING, which must be answered; PRIORITY and frames of unknown type, which must be read."""
    EMPTY = auto()
    """DATA that carries nothing and ends nothing, CONTINUATION, WINDOW_UPDATE of a few bytes."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A bucket: what it holds, and how fast it refills."""

    burst: float
    per_second: float
    per_request: float = 0.0


RATES = MappingProxyType(
    {
        Nuisance.RESET: Rate(2_000, 500, 2),
        Nuisance.FAULT: Rate(500, 50),
        Nuisance.CONTROL: Rate(1_000, 100, 2),
        Nuisance.EMPTY: Rate(10_000, 5_000, 16),
    }
)


def rates(resets_per_second: float, pings_per_second: float) -> Mapping[Nuisance, Rate]:
    """Buckets as they are, but for these two rates: four seconds' worth of resets at once, ten of what we answer."""
    reset, control = RATES[Nuisance.RESET], RATES[Nuisance.CONTROL]
    return {
        **RATES,
        Nuisance.RESET: replace(reset, burst=4 * resets_per_second, per_second=resets_per_second),
        Nuisance.CONTROL: replace(control, burst=10 * pings_per_second, per_second=pings_per_second),
    }


@dataclass(frozen=True, slots=True)
class Http2Limits:
    """What one connection may hold."""

    streams_max: int = 16_384
    """At once, those counted whose handlers have not ended."""
    stream_window: int = 1_179_648
    """Bytes that one stream may have sent and its handler not taken. More than the largest message by `credit_bytes`
    at least, else a message could wait for the rest of its own window."""
    credit_bytes: int = 65_536
    """What is taken of a stream is credited in steps of so many."""
    connection_window: int = 16 * 2**20
    """Bytes on their way over all streams: how fast one connection can be, and no bound on what it holds."""
    untaken_bytes_max: int = 512 * 2**20
    """Bytes that arrived over all streams and that no handler has taken; the stream that brings more is refused."""
    account: Untaken = field(default_factory=Untaken, compare=False)
    """Where those of all connections are counted."""
    tally: Tally = field(default_factory=Tally, compare=False)
    """Where the streams that had to be reset are."""
    frame_bytes_max: int = 65_536
    header_block_bytes_max: int = 65_536
    """Of a block as it travels."""
    header_list_bytes_max: int = 16_384
    """Of a list as it is read, 32 bytes a field added."""
    output_bytes_max: int = 262_144
    """Written and not yet taken by the shell; streams that have more wait for their turn."""
    answers_bytes_max: int = 1_048_576
    """The same for what a peer makes us answer while it does not read."""
    rates: Mapping[Nuisance, Rate] = field(default_factory=lambda: RATES)


class Guard:
    """Counts the nuisances of one connection; told the time."""

    def __init__(self, rates: Mapping[Nuisance, Rate], now: Seconds) -> None:
        self._rates = rates
        self._level = {kind: rate.burst for kind, rate in rates.items()}
        self._refilled = now
        self.requests_done = 0
        """Since buckets were last refilled: requests that came to their end, for which some nuisance is forgiven."""

    def charge(self, kind: Nuisance, now: Seconds) -> None:
        """One more of a kind. Raises when it is one too many."""
        level = self._level
        if level[kind] < 1:
            self._refill(now)
        if level[kind] < 1:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, f"too many frames of the kind {kind.name.lower()}")
        level[kind] -= 1

    def _refill(self, now: Seconds) -> None:
        """Buckets refill when one is empty: between two times nothing could have come of it."""
        elapsed, self._refilled = now - self._refilled, now
        requests, self.requests_done = self.requests_done, 0
        for kind, rate in self._rates.items():
            gained = elapsed * rate.per_second + requests * rate.per_request
            self._level[kind] = min(rate.burst, self._level[kind] + gained)
