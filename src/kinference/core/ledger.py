"""What is in flight where, and how it is given back: exactly once, and to the life of the endpoint that took it.

A reservation points at the `Load` object it was counted in. An endpoint that leaves and comes back, or whose engine
restarts, gets a new `Load`; what is given back late goes to the old one, so no count can become negative.

Reports can be lost. Where an engine goes on telling of fewer requests than we count there, as many of the oldest as it
never told of in all that time are written off: they load nobody, and their late reports change nothing more. An engine
that told of nothing at all while a request of ours was served there is not believed, until it tells of something.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from kinference.core.fleet import Observation
from kinference.ids import Milliseconds, ReservationId, Seconds

SCRAPE_FADES_S: Final = 5.0
"""A scrape this old counts half, and older ones less: a hung exporter must not keep traffic away for ever."""
FROZEN_AFTER_S: Final = 10.0
"""A busy engine whose numbers have stood still for longer has an exporter that hangs: they age from then on."""
LOST_AFTER_S: Final = 15.0
"""For how long an engine has to tell of less than we count. What is on its way there or back is younger."""
DOUBTED_AFTER_S: Final = 2.0
"""For how long it has to do so until nobody is made to wait for what it does not tell of."""
IDLE_SCRAPES: Final = 3
"""So many scrapes in a row that tell of an idle engine while it serves one of ours are no word of the engine."""
SILENCE: Final = 4.0
SILENCE_MS: Final = 1_000.0
"""A first token that takes so many times as long as expected, and so long beyond, will not be reported."""
SILENCE_S: Final[Seconds] = SILENCE_MS / 1e3
"""Sooner than this none is overdue by far."""
UNHEARD_MS_MAX: Final = 2_000.0
"""Where nobody has ever reported, what is expected is a guess, and nobody is made to wait for one longer than this."""
HEADWAY_MAX: Final = 64.0
LAG_MS_MAX: Final = 1_000.0
"""The report of a first token that takes longer was kept back by its caller, and tells nothing of the way."""
LATELY: Final = 0.8
"""Of what was expected and what happened so much is kept with each first token: about the last five count."""
DOUBT_MS: Final = 50.0
"""So much of both counts as having gone as expected."""
UNLIMITED: Final = float("inf")
NOBODY: Final = ReservationId(0)
LATE_MS: Final = 10.0
"""Reports that come no later than this are not late."""
SAME_S: Final[Seconds] = 1e-6
"""Far more than one and the same moment, reckoned at two, can differ by."""
TOLD_MAX: Final = 64
"""So many prompts that were told of are remembered of each destination."""


@dataclass(slots=True, eq=False)
class Load:
    """The work one destination has before it: our own exactly, what others sent as the last scrape told it."""

    requests: int = 0
    prefill_tokens: int = 0
    """Prompt tokens still to compute."""
    decode_tokens: int = 0
    """Output tokens expected of what is in flight."""
    prefilling: int = 0
    """Requests without a first token yet."""
    foreign_tokens: float = 0.0
    """Prompt tokens that wait there beyond our own."""
    foreign_requests: float = 0.0
    is_told: bool = False
    """Its engine tells what is there: a scrape has come."""
    seen_at: Seconds = 0.0
    waiting: int = 0
    kv_usage_ratio: float = 0.0
    room: float = UNLIMITED
    """Tokens the KV cache could take beside what others hold, when last seen."""
    resident: int = 0
    """Tokens that ours take in the KV cache, or soon will."""
    prompts: dict[ReservationId, int] = field(default_factory=dict)
    """Tokens to compute of each of our requests without a first token, first come first."""
    first_prompt: int = 0
    """Tokens of the first of them, 0 without any."""
    begun_at: Seconds = 0.0
    """When the first of these had its turn, as far as can be told: it came, or the one before it was done."""
    heard_at: Seconds | None = None
    """When somebody last reported a first token of ours."""

    headway: float = 1.0
    """So many times as much may be ahead of a prompt as is believed to be computed in time: first tokens have come
    sooner than that by far."""
    lag_ms: Milliseconds = 0.0
    """What the way there takes and that of the report back: for so long nobody knows that an engine has ended."""
    _took_ms: Milliseconds = 0.0
    _expected_ms: Milliseconds = 0.0

    newest: ReservationId = ReservationId(0)
    told_of: deque[tuple[Seconds, Seconds, int]] = field(default_factory=lambda: deque(maxlen=TOLD_MAX))
    """Of the last prompts that were told of: when each was sent, when it was computed, and how many tokens."""
    untold_until: ReservationId = ReservationId(0)
    """Of one that came no later than this nobody told when it was computed."""
    doubted: int = 0
    """How many of ours the engine has not told of lately: those who asked for them may never have sent them there."""
    lost: int = 0
    """How many of ours the engine has not told of for so long that they are to be written off."""
    lost_until: ReservationId = ReservationId(0)
    """None later than this is among them."""
    idle_scrapes: int = 0
    """In a row: the engine told of nobody."""
    is_disproved: bool = False
    """It told so while it served: its exporter stands still at nothing."""
    _reading: tuple[int, int, float | None] = (0, 0, None)
    _changed_at: Seconds = 0.0
    _surplus: int = 0
    """The least that we counted beyond what the engine told, since `_surplus_since`."""
    _surplus_since: Seconds = 0.0
    _surplus_until: ReservationId = ReservationId(0)
    _least: int = 0
    """As `_surplus`, in the time since `_least_since`."""
    _least_since: Seconds = -UNLIMITED

    @property
    def late_ms(self) -> Milliseconds:
        """How much later than they came first tokens are told of, where that is worth reckoning with."""
        return self.lag_ms if self.lag_ms > LATE_MS else 0.0

    @property
    def believed(self) -> int:
        """Requests of ours that are there as far as the engine's word goes."""
        believed = self.requests - self.doubted
        return believed if believed > 0 else 0

    def left_of(self, ahead_tokens: float, ms_per_token: float, now: Seconds) -> float:
        """What is left to compute of so many prompt tokens ahead, ours among them, as if all of the time until then
        went into prompts.
        """
        left = ahead_tokens - self.done_ms(ms_per_token, now) / ms_per_token
        if left < 0.0:
            left = 0.0
        return left if now - self.begun_at <= SILENCE_S else left + self.hung_ms(ms_per_token, now) / ms_per_token

    def done_ms(self, ms_per_token: float, now: Seconds) -> Milliseconds:
        """How much of our prompts must be computed by now, though nobody has reported it yet: as much of the first as
        the time since its turn allows. When that is overdue by far its caller does not report, which it need not, and
        the time since then has gone into those behind it, unless the engine tells that some wait.
        """
        whole, gone = ms_per_token * self.first_prompt, (now - self.begun_at) * 1e3
        if gone <= whole:
            return gone if gone > 0.0 else 0.0
        left = ms_per_token * self.prefill_tokens
        told = whole + self.late_ms  # until then nobody can have told that the first is done
        if gone > told:
            silent = gone - SILENCE * whole - SILENCE_MS
            gone = told if silent <= told or self.waiting or not self.prompts else silent
        return gone if gone < left else left

    def hung_ms(self, ms_per_token: float, now: Seconds) -> Milliseconds:
        """How long the first of our prompts is overdue by far where first tokens were reported before, and none since
        its turn: the engine hangs, as it seems, and will for as long again. Where it goes on for very long, or where
        the engine does not tell of the prompt, it is callers who have ceased to report.
        """
        overdue = (now - self.begun_at) * 1e3 - SILENCE * ms_per_token * self.first_prompt - SILENCE_MS
        if overdue <= 0.0 or not self.prompts or self.heard_at is None or self.heard_at > self.begun_at or self.doubted:
            return 0.0
        return overdue if overdue < LOST_AFTER_S * 1e3 else 0.0

    def ms_until_done(self, wanted_ms: Milliseconds, ms_per_token: float, now: Seconds) -> Milliseconds:
        """How long until `done_ms` has come to so much by the passing of time alone; infinite where it does not."""
        if wanted_ms <= 0.0:
            return 0.0
        whole = ms_per_token * self.first_prompt
        if wanted_ms > whole + self.late_ms:
            if self.waiting or not self.prompts:
                return UNLIMITED
            wanted_ms += SILENCE * whole + SILENCE_MS
        return max(0.0, wanted_ms - (now - self.begun_at) * 1e3)

    def is_silent(self, ms_per_token: float, now: Seconds) -> bool:
        """Whether the first of our prompts is so overdue that nobody seems to report."""
        return bool(self.prompts) and self.ms_until_silent(ms_per_token, now) < 0.0

    def ms_until_silent(self, ms_per_token: float, now: Seconds) -> Milliseconds:
        """How long until that is so; negative when it is."""
        overdue_ms = min(SILENCE * ms_per_token * self.first_prompt + SILENCE_MS, UNHEARD_MS_MAX)
        return overdue_ms - (now - self.begun_at) * 1e3

    def close_silence(self, ms_per_token: float, now: Seconds) -> None:
        """Have the time in which nobody reported count for those that were there, and for nobody who comes now."""
        left_ms = ms_per_token * (self.prefill_tokens + SILENCE * self.first_prompt) + SILENCE_MS
        heard_of_until = now - left_ms / 1e3
        if heard_of_until > self.begun_at:
            self.begun_at = heard_of_until

    def note_first(self, took_ms: Milliseconds, expected_ms: Milliseconds) -> None:
        """A first token came after so much more than an empty prompt's time. Where the last ones have taken less than
        half as long as was expected prompts are computed side by side, or quicker than is known yet, and the next ones
        need not be held back as long.
        """
        self._took_ms = LATELY * self._took_ms + (took_ms if took_ms > 0.0 else 0.0)
        self._expected_ms = LATELY * self._expected_ms + expected_ms
        headway = 0.5 * (self._expected_ms + DOUBT_MS) / (self._took_ms + DOUBT_MS)
        self.headway = 1.0 if headway < 1.0 else headway if headway < HEADWAY_MAX else HEADWAY_MAX

    def note_lag(self, lag_ms: Milliseconds) -> None:
        """So much of the time from a decision to the report of its first token was not in what was reported."""
        if lag_ms <= LAG_MS_MAX:
            self.lag_ms = LATELY * self.lag_ms + (1.0 - LATELY) * max(lag_ms, 0.0)

    def observe(self, seen: Observation, typical_tokens: float) -> None:
        """Take the scrape for what our own ledger does not explain, so that the larger of the two counts."""
        self.is_told, self.waiting, self.kv_usage_ratio = True, seen.waiting, seen.kv_usage_ratio or 0.0
        self.seen_at = min(seen.seen_at, self._frozen_at(seen))
        if seen.waiting or seen.running:
            self.idle_scrapes, self.is_disproved = 0, False
        else:
            self.idle_scrapes += 1
        surplus = 0 if self.is_disproved else self.requests - seen.waiting - seen.running
        self._note_doubt(max(0, surplus), seen.seen_at)
        self._note_surplus(surplus, seen.seen_at)
        self.foreign_tokens = max(0, seen.waiting - self.prefilling) * typical_tokens
        self.foreign_requests = float(max(0, seen.waiting + seen.running - self.requests))
        if seen.kv_blocks and seen.block_tokens and seen.kv_usage_ratio is not None:
            free = seen.kv_blocks * seen.block_tokens * max(0.0, 1.0 - seen.kv_usage_ratio)
            self.room = free + self.resident

    def _frozen_at(self, seen: Observation) -> Seconds:
        """Since when the numbers say nothing any more. An idle engine's stand still by rights."""
        reading = (seen.waiting, seen.running, seen.kv_usage_ratio)
        if reading != self._reading:
            self._reading, self._changed_at = reading, seen.seen_at
        is_busy = self.is_disproved or (seen.running > 0 and seen.kv_usage_ratio is not None)
        return self._changed_at + FROZEN_AFTER_S if is_busy else UNLIMITED

    def _note_doubt(self, surplus: int, now: Seconds) -> None:
        self.doubted, self._least = min(self.doubted, surplus), min(self._least, surplus)
        if now - self._least_since >= DOUBTED_AFTER_S:
            self.doubted, self._least, self._least_since = self._least, surplus, now

    def _note_surplus(self, surplus: int, now: Seconds) -> None:
        if surplus <= 0 or self._surplus <= 0:
            self._surplus, self._surplus_since, self._surplus_until = max(surplus, 0), now, self.newest
            return
        self._surplus = min(self._surplus, surplus)
        if now - self._surplus_since >= LOST_AFTER_S:
            self.lost, self.lost_until, self._surplus = self._surplus, self._surplus_until, 0


class Reservation:
    """One request in flight, and what it asks of its destination."""

    __slots__ = ("decode_tokens", "first_token_seen", "idle_scrapes", "is_counted", "load", "made_at", "prefill_tokens")

    def __init__(self, load: Load, prefill_tokens: int, decode_tokens: int, made_at: Seconds) -> None:
        self.load, self.prefill_tokens, self.decode_tokens = load, prefill_tokens, decode_tokens
        self.made_at = made_at
        """When it was decided."""
        self.first_token_seen = False
        self.is_counted = True
        """In the load. What was written off is no more."""
        self.idle_scrapes = load.idle_scrapes
        """Of the engine's, when its present stage began."""


class Ledger:
    """All reservations of this router. What was given back once is unknown from then on."""

    def __init__(self) -> None:
        self._newest = 0
        self._live: dict[ReservationId, Reservation] = {}

    def __len__(self) -> int:
        return len(self._live)

    def reserve(self, load: Load, prefill_tokens: int, decode_tokens: int, now: Seconds) -> ReservationId:
        """Count a request in flight from this instant: what is to be computed for it, and what it will answer."""
        self._newest += 1  # 0 means "none"
        number, prompts = ReservationId(self._newest), load.prompts
        if not prompts:
            load.begun_at, load.first_prompt = now, prefill_tokens
        prompts[number] = prefill_tokens
        self._live[number] = Reservation(load, prefill_tokens, decode_tokens, now)
        load.newest = number
        load.requests += 1
        load.prefilling += 1
        load.prefill_tokens += prefill_tokens
        load.decode_tokens += decode_tokens
        load.resident += prefill_tokens + decode_tokens
        return number

    def first_token(self, number: ReservationId, now: Seconds, ttft_ms: Milliseconds | None = None) -> bool:
        """The prompt is computed, and was so long after it was sent if that is told. False when that is known already,
        or the reservation is gone.
        """
        reservation = self._live.get(number)
        if reservation is None or reservation.first_token_seen:
            return False
        load = reservation.load
        reservation.first_token_seen = True
        load.heard_at = now
        if reservation.is_counted:
            _computed(reservation, number, now)
            if ttft_ms is not None and load.late_ms and load.begun_at == now:
                self._antedate(load, max(reservation.made_at + ttft_ms / 1e3, now - LAG_MS_MAX / 1e3))
        return True

    def _antedate(self, load: Load, ended_at: Seconds) -> None:
        """The next one had its turn when the one before it was done or when it came, not when we were told."""
        following = self._live.get(_first(load.prompts))
        if following is not None:
            load.begun_at = min(load.begun_at, max(ended_at, following.made_at))

    def computed_since(
        self, number: ReservationId, ttft_ms: Milliseconds, ms_per_token: float, now: Seconds
    ) -> float | None:
        """How many prompt tokens were computed from when it was sent until its first token, its own among them, as is
        known by now: when it was sent nobody had told yet of what had just ended. None where reports are not late,
        where one that came before it has not been told of, or where the time told does not fit ours.
        """
        reservation = self._live.get(number)
        if reservation is None or reservation.first_token_seen or not reservation.is_counted:
            return None
        load, made_at = reservation.load, reservation.made_at
        ended_at = made_at + ttft_ms / 1e3
        if ended_at > now + SAME_S or number <= load.untold_until or _first(load.prompts) != number:
            return None
        tokens, told_of = reservation.prefill_tokens, load.told_of
        ahead: float | None = None
        if load.late_ms and not load.foreign_tokens:
            ahead = _computed_between(told_of, made_at, ms_per_token)
        told_of.append((made_at, ended_at, tokens))
        return None if ahead is None else ahead + tokens

    def told(self, number: ReservationId, ttft_ms: Milliseconds, now: Seconds) -> None:
        """Its first token came so long after it was sent, and is told of now."""
        reservation = self._live[number]
        reservation.load.note_lag((now - reservation.made_at) * 1e3 - ttft_ms)

    def served(self, number: ReservationId) -> None:
        """A caller has had something good of it: since its stage began it was there, whatever the engine told."""
        reservation = self._live.get(number)
        if reservation is None:
            return
        load = reservation.load
        if load.idle_scrapes - reservation.idle_scrapes >= IDLE_SCRAPES:
            load.is_disproved, load.doubted, load.lost = True, 0, 0
        reservation.idle_scrapes = load.idle_scrapes

    def release(self, number: ReservationId, now: Seconds, *, is_told: bool = True) -> bool:
        """Give everything back. False when that has been done. Unless somebody has told of its end nobody knows when
        the next one had its turn: long ago.
        """
        reservation = self._live.pop(number, None)
        if reservation is None:
            return False
        if reservation.is_counted:
            if not reservation.first_token_seen:
                _computed(reservation, number, now if is_told else reservation.load.begun_at)
                reservation.load.untold_until = reservation.load.newest
            _give_back(reservation)
        return True

    def pack(self) -> None:
        """Hold what there is in tables of its size: one stays as large as it once was."""
        self._live = dict(self._live)

    def write_off(self, load: Load) -> None:
        """Count no longer what the engine has not told of for so long; the oldest are the likeliest to be lost."""
        for number, reservation in self._live.items():
            if not load.lost or number > load.lost_until:
                break
            if reservation.load is load and reservation.is_counted:
                load.lost -= 1
                if not reservation.first_token_seen:
                    _computed(reservation, number, load.begun_at)  # nobody told when the next had its turn
                _give_back(reservation)
                reservation.is_counted = False
        load.lost = 0


def _computed_between(
    told_of: deque[tuple[Seconds, Seconds, int]], sent_at: Seconds, ms_per_token: float
) -> float | None:
    """How many tokens of the prompts before it were computed after one was sent. None where that is not remembered."""
    if len(told_of) == TOLD_MAX and told_of[0][1] > sent_at:
        return None
    ahead, begun_at = 0.0, 0.0
    for came_at, ended_at, tokens in told_of:
        if ended_at > sent_at:
            begun_at = max(begun_at, came_at)
            by_then = 0.0 if ahead or begun_at > sent_at else (sent_at - begun_at) * 1e3 / ms_per_token
            ahead += tokens - by_then if by_then < tokens else 0.0
        begun_at = ended_at
    return ahead


def _computed(reservation: Reservation, number: ReservationId, now: Seconds) -> None:
    load = reservation.load
    prompts = load.prompts
    was_first = _first(prompts) == number
    load.prefilling -= 1
    load.prefill_tokens -= prompts[number]
    del prompts[number]
    if was_first:
        load.begun_at, load.first_prompt = now, 0
        for tokens in prompts.values():
            load.first_prompt = tokens
            break


def _first(prompts: dict[ReservationId, int]) -> ReservationId:
    """The one that came first; a loop finds it at half the price of `next` and `iter`."""
    for number in prompts:
        return number
    return NOBODY


def _give_back(reservation: Reservation) -> None:
    load, decode_tokens = reservation.load, reservation.decode_tokens
    load.requests -= 1
    load.decode_tokens -= decode_tokens
    load.resident -= reservation.prefill_tokens + decode_tokens
