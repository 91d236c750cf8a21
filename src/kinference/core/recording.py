"""A decision's inputs as plain values, from which it can be made again: the same sums, the same draw, the same pick.

What is recorded is what was weighed, once filters and limits had left the candidates; of the request itself there is
nothing but counts. Numbers survive a trip through JSON to the last bit.
"""

from collections import deque
from collections.abc import Mapping
from operator import mul
from random import Random
from typing import Generic, Protocol, TypeVar

import msgspec

from kinference.core.cost import Case
from kinference.core.decision import Rejected, Weighed
from kinference.core.fleet import Endpoint, EndpointSpec
from kinference.core.health import Circuit
from kinference.core.ledger import UNLIMITED, Load
from kinference.core.policies import make_policy
from kinference.core.policy import TargetKind
from kinference.core.rates import SAMPLE_MS_MAX, Line, PeakLatency, Rates, Typical
from kinference.core.roster import Destination
from kinference.core.scoring import Column, Draw, weigh
from kinference.ids import Address, Milliseconds, ObjectRef, ReservationId, Seconds
from kinference.vocabulary import QosClass

CANDIDATES_MAX = 200_000
"""Over all recordings that are kept: what bounds their memory in a large fleet."""
_NOWHERE = ObjectRef("", "")


class RecordedCandidate(msgspec.Struct, frozen=True):
    """One destination, by everything that a policy reads of it."""

    name: str
    weight: int
    base_ms: Milliseconds
    ms_per_token: Milliseconds
    error_ms: Milliseconds
    hold_ms: Milliseconds
    latency_ms: Milliseconds
    failure_ratio: float
    prefilling: int
    prefill_tokens: int
    first_prompt: int
    """Tokens of the prompt that is computed there now, as far as is known; 0 without one."""
    begun_at: Seconds
    waiting: int
    resident: int
    room: float | None
    """None where there is no limit."""
    kv_usage_ratio: float
    cold_picked: int
    ahead: float
    beside: float
    hit: int
    uncached: int
    heard_at: Seconds | None = None
    """When a first token was last reported there, unless the engine tells of less than was sent there."""
    lag_ms: Milliseconds = 0.0
    """So much later than it came a first token is reported."""


class Recording(msgspec.Struct, frozen=True):
    """One decision: what went in, and who was picked."""

    at: Seconds
    policy: str
    parameters: Mapping[str, float]
    qos: QosClass
    seed: int
    """Of the draws that this decision made."""
    output_tokens: int
    turn: int
    key: str
    """A number of 64 bits, which JSON's readers do not all keep."""
    fitting: tuple[int, ...]
    candidates: tuple[RecordedCandidate, ...]
    extra: tuple[Column, ...]
    """Columns that depend on more than the candidates: what a tenant's money is worth in time."""
    rejected: tuple[Rejected, ...]
    pick: str
    session: str = "0"
    """As `key`: no name of a session is kept."""

    @property
    def size(self) -> int:
        """How much memory it takes, in candidates."""
        return len(self.candidates)


class Sized(Protocol):
    """What can be kept."""

    @property
    def size(self) -> int:
        """How much memory it takes, in candidates."""
        ...


Kept = TypeVar("Kept", bound=Sized)


class Recordings(Generic[Kept]):
    """The last decisions, bounded by their number and by their candidates."""

    def __init__(self) -> None:
        self.is_on = False
        """Whether anything is kept at all."""
        self._limit = 0
        self._kept: deque[Kept] = deque()
        self._candidates = 0

    def resize(self, limit: int) -> None:
        """Keep so many from now on; 0 keeps none."""
        self._limit, self.is_on = limit, limit > 0
        self._shrink()

    def keep(self, recording: Kept) -> None:
        """One more; the oldest make room."""
        self._kept.append(recording)
        self._candidates += recording.size
        self._shrink()

    def newest(self, limit: int) -> tuple[Kept, ...]:
        """The last ones, newest first."""
        return tuple(self._kept)[: -limit - 1 : -1]

    def _shrink(self) -> None:
        while self._kept and (len(self._kept) > self._limit or self._candidates > CANDIDATES_MAX):
            self._candidates -= self._kept.popleft().size


class Setting(msgspec.Struct, frozen=True):
    """What a decision was made with beside its candidates."""

    at: Seconds
    policy: str
    parameters: Mapping[str, float]
    qos: QosClass
    seed: int
    extra: tuple[Column, ...]
    rejected: tuple[Rejected, ...]


def record(case: Case, setting: Setting, weighed: Weighed) -> Recording:
    """The values as they are now; nothing of what changes later is kept hold of."""
    return Recording(
        at=setting.at,
        policy=setting.policy,
        parameters=setting.parameters,
        qos=setting.qos,
        seed=setting.seed,
        output_tokens=case.output_tokens,
        turn=case.turn,
        key=str(case.key),
        fitting=tuple(case.fitting),
        candidates=tuple(_candidate(case, place) for place in range(len(case.names))),
        extra=setting.extra,
        rejected=setting.rejected,
        pick=weighed.names[weighed.chosen],
        session=str(case.session),
    )


def replay(recording: Recording) -> Weighed:
    """Make the decision again. Raises ConfigError when its policy or a parameter is not known here."""
    scoring = make_policy(recording.policy, recording.parameters).scoring()
    rng = Random(recording.seed)
    return weigh(_case(recording), Draw(recording.policy, scoring, recording.qos, recording.extra, rng))


def _candidate(case: Case, place: int) -> RecordedCandidate:
    rates, load, destination = case.rates[place], case.loads[place], case.destinations[place]
    return RecordedCandidate(
        name=case.names[place],
        weight=destination.weight,
        base_ms=rates.base_ms,
        ms_per_token=rates.ms_per_token,
        error_ms=rates.error_ms,
        hold_ms=rates.hold_ms,
        latency_ms=destination.latency.ms,
        failure_ratio=case.circuits[place].failure_ratio,
        prefilling=load.prefilling,
        prefill_tokens=load.prefill_tokens,
        first_prompt=load.first_prompt,
        begun_at=load.begun_at,
        heard_at=None if load.doubted else load.heard_at,
        lag_ms=load.lag_ms,
        waiting=load.waiting,
        resident=load.resident,
        room=None if load.room == UNLIMITED else load.room,
        kv_usage_ratio=load.kv_usage_ratio,
        cold_picked=destination.cold_picked,
        ahead=case.ahead[place],
        beside=case.beside[place],
        hit=case.hits[place],
        uncached=case.uncached[place],
    )


def _case(recording: Recording) -> Case:
    candidates = recording.candidates
    destinations, now = [_destination(one) for one in candidates], recording.at
    lines = [Line(one.base_ms, one.ms_per_token) for one in candidates]
    slopes, uncached = [line.ms_per_token for line in lines], [one.uncached for one in candidates]
    loads, ahead = [destination.load for destination in destinations], [one.ahead for one in candidates]
    return Case(
        destinations=destinations,
        names=[one.name for one in candidates],
        rates=[_rates(one, line) for one, line in zip(candidates, lines, strict=True)],
        loads=loads,
        circuits=[destination.circuit for destination in destinations],
        bases=[one.base_ms for one in candidates],
        slopes=slopes,
        ahead=ahead,
        beside=[one.beside for one in candidates],
        left=[
            max(0.0, slope * tokens - load.done_ms(slope, now))
            for slope, tokens, load in zip(slopes, ahead, loads, strict=True)
        ],
        hung={place: load.hung_ms(slopes[place], now) for place, load in enumerate(loads)},
        hits=[one.hit for one in candidates],
        uncached=uncached,
        work=list(map(mul, slopes, uncached)),
        output_tokens=recording.output_tokens,
        fitting=recording.fitting,
        now=now,
        turn=recording.turn,
        key=int(recording.key),
        session=int(recording.session),
    )


def _rates(one: RecordedCandidate, line: Line) -> Rates:
    return Rates(Typical(line, SAMPLE_MS_MAX), error_ms=one.error_ms, hold_ms=one.hold_ms)


def _destination(one: RecordedCandidate) -> Destination:
    load = Load(
        prefilling=one.prefilling,
        prefill_tokens=one.prefill_tokens,
        prompts={ReservationId(1): one.first_prompt} if one.first_prompt else {},
        first_prompt=one.first_prompt,
        begun_at=one.begun_at,
        heard_at=one.heard_at,
        lag_ms=one.lag_ms,
        waiting=one.waiting,
        resident=one.resident,
        room=UNLIMITED if one.room is None else one.room,
        kv_usage_ratio=one.kv_usage_ratio,
    )
    endpoint = Endpoint(EndpointSpec(_NOWHERE, Address(one.name), weight=one.weight), 0, 0)
    return Destination(
        TargetKind.POOL,
        _NOWHERE,
        one.name,
        endpoint,
        load=load,
        circuit=Circuit(failure_ratio=one.failure_ratio),
        cold_picked=one.cold_picked,
        latency=PeakLatency(one.latency_ms),
    )
