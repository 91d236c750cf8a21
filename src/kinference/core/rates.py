"""How long things take at one destination for one model, learned from what happened.

Time to first token is a line in the tokens computed before it: `base_ms + ms_per_token x tokens`. The line of a pool
and model is fitted by weighted least squares with exponential forgetting, and each destination's is that line, as it
is now, times a factor of its own: 1 for as long as chance explains what sets it apart. Residuals are shares of what was
expected, as long prompts err by more; one beyond three times the usual one counts as three times (Huber's rule), so
that a retry or a stalled client moves nothing.
"""

from dataclasses import dataclass, field
from math import exp
from typing import Final

from kinference.ids import Milliseconds, Seconds

FORGETTING: Final = 0.99
"""Weight of the past after each sample: about the last 100 count."""
OUTLIER: Final = 3.0
ERROR_RATIO: Final = 1.0
"""What is expected of an engine that nobody has heard of may be wrong by as much as it is."""
ERROR_RATIO_MIN: Final = 0.02
ERROR_MS_MIN: Final = 1.0
"""No error less than these makes another one an outlier."""
ERROR_SMOOTHING: Final = 0.1
PRIOR_WEIGHT: Final = 2.0
"""Two points of the line as it was are in each fit with this weight: equal prompts alone do not determine a line."""
TOLD_APART: Final = 2.5
"""Of what sets an endpoint apart half is believed where it is so many times the usual error of its mean, which are two
standard errors: what sets equal engines apart for a while is chance, and would send requests to the luckier one."""
PRIOR_TOKENS: Final = 4_096.0
MS_PER_TOKEN_MIN: Final = 1e-4
FACTOR_MIN: Final = 1e-3
SAMPLE_MS_MAX: Final = 3_600_000.0

LOCAL_BASE_MS: Final = 20.0
LOCAL_MS_PER_TOKEN: Final = 0.1
LOCAL_BASE_MS_MAX: Final = 500.0
"""What an empty prompt takes on an idle engine is never more, unless one that came while nothing else was there took
longer, and none less since: the rest is waiting that nobody told of, in a host that is overloaded, and must not outlive
it as a trait of the engine."""
BACKEND_BASE_MS: Final = 2_000.0
"""Far above any engine that is not overloaded: equal targets are served on our own hardware first."""
HOLD_MS: Final = 5_000.0
ADAPTER_MS: Final = 200.0
"""What loading an adapter takes until it is known."""
ADAPTER_SMOOTHING: Final = 0.2
PEAK_DECAY_S: Final = 10.0


class Line:
    """A time to first token as base and slope."""

    __slots__ = ("base_ms", "ms_per_token")

    def __init__(self, base_ms: Milliseconds = LOCAL_BASE_MS, ms_per_token: Milliseconds = LOCAL_MS_PER_TOKEN) -> None:
        self.base_ms, self.ms_per_token = base_ms, ms_per_token

    def at(self, tokens: float) -> Milliseconds:
        """The time for this many tokens."""
        return self.base_ms + self.ms_per_token * tokens


@dataclass(slots=True, eq=False)
class PeakLatency:
    """An average that jumps to every peak at once and comes down from it with time."""

    ms: Milliseconds = 0.0
    _at: Seconds = 0.0

    def learn(self, ms: Milliseconds, now: Seconds) -> None:
        """A first token took so long."""
        if ms > self.ms:
            self.ms = ms
        else:
            passed = now - self._at
            kept = exp(-passed / PEAK_DECAY_S) if passed > 0.0 else 1.0
            self.ms = kept * self.ms + (1.0 - kept) * ms
        self._at = now


@dataclass(slots=True, eq=False)
class _Sums:
    """Weighted sums of samples, the newest counting most: what a least-squares fit needs."""

    weight: float = 0.0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0

    def add(self, x: float, y: Milliseconds, kept: float) -> None:
        """One more, and of the others so much less."""
        self.weight = kept * self.weight + 1.0
        self.x = kept * self.x + x
        self.y = kept * self.y + y
        self.xx = kept * self.xx + x * x
        self.xy = kept * self.xy + x * y

    def fade(self, kept: float) -> None:
        """Keep this share of all."""
        self.weight, self.x, self.y = kept * self.weight, kept * self.x, kept * self.y
        self.xx, self.xy = kept * self.xx, kept * self.xy


@dataclass(slots=True, eq=False)
class Typical:
    """What a pool's endpoints need for one model: one line through the samples of all of them."""

    line: Line = field(default_factory=Line)
    base_ms_max: Milliseconds = LOCAL_BASE_MS_MAX
    base_ms_allowed: Milliseconds = LOCAL_BASE_MS_MAX
    """The least that `base_ms_max` comes to."""
    samples: int = 0
    in_line: int = 0
    """How many of them had other prompts before them: while few, whether prompts wait for each other is a guess."""
    is_unheard: bool = False
    """None was ever reported, though one was overdue by more than is waited for a guess."""
    adapter_ms: Milliseconds = ADAPTER_MS
    """What loading it takes, where it is an adapter."""
    is_measured: bool = False
    """Rests on prompts as long as an engine counted such ones, and not on a guess at their length."""
    _sums: _Sums = field(default_factory=_Sums)

    def learn(self, tokens: float, ttft_ms: Milliseconds) -> None:
        """A first token somewhere in the pool."""
        self.samples += 1
        self.is_unheard = False
        self._sums.add(tokens, ttft_ms, FORGETTING)
        prior, far, sums = self.line, PRIOR_TOKENS, self._sums
        prior_ms = prior.at(far)
        weight = sums.weight + 2 * PRIOR_WEIGHT
        x = (sums.x + PRIOR_WEIGHT * far) / weight
        y = (sums.y + PRIOR_WEIGHT * (prior.base_ms + prior_ms)) / weight
        spread = (sums.xx + PRIOR_WEIGHT * far * far) / weight - x * x
        together = (sums.xy + PRIOR_WEIGHT * far * prior_ms) / weight - x * y
        slope = together / (1.0 if spread < 1.0 else spread)
        if slope < MS_PER_TOKEN_MIN:
            slope = MS_PER_TOKEN_MIN
        base = y - slope * x
        if base < 0.0:  # a line through the origin explains it better than time running backwards
            base, slope = 0.0, max(MS_PER_TOKEN_MIN, y / x)
        prior.base_ms = base if base < self.base_ms_max else self.base_ms_max
        prior.ms_per_token = slope

    def bound_base(self, ttft_ms: Milliseconds, *, is_lone: bool) -> None:
        """No empty prompt takes longer than any that there was: than the last that came while nothing else was there,
        and every quicker one since.
        """
        if is_lone or ttft_ms < self.base_ms_max:
            longest = ttft_ms if ttft_ms < SAMPLE_MS_MAX else SAMPLE_MS_MAX
            self.base_ms_max = longest if longest > self.base_ms_allowed else self.base_ms_allowed
            if self.line.base_ms > self.base_ms_max:
                self.line.base_ms = self.base_ms_max

    def start_over(self) -> None:
        """What was learned so far rests on a wrong idea of how long prompts are."""
        self.is_measured, self.samples, self._sums = True, 0, _Sums()

    def learn_adapter(self, ms: Milliseconds) -> None:
        """A first token came so much later than expected where the adapter had to be loaded first."""
        bounded = min(max(ms, 0.0), OUTLIER * max(self.adapter_ms, 1.0))
        self.adapter_ms += ADAPTER_SMOOTHING * (bounded - self.adapter_ms)


@dataclass(slots=True, eq=False)
class Rates:
    """What is learned of one destination and model: what is typical, and by how much slower or faster it is.

    One number sets an endpoint apart, and not a line of its own, which the few samples that each has would not fix.
    """

    typical: Typical
    factor: float = 1.0
    samples: int = 0
    error_ms: Milliseconds = 0.0
    """Usual distance between what was expected and what happened."""
    error_ratio: float = ERROR_RATIO
    """The same, as a share of what was expected."""
    hold_ms: Milliseconds = HOLD_MS
    """How long a request keeps its place after its first token."""
    _is_measured: bool = False
    _sums: _Sums = field(default_factory=_Sums)

    @property
    def base_ms(self) -> Milliseconds:
        """The time for an empty prompt here."""
        base_ms, base_ms_max = self.factor * self.typical.line.base_ms, self.typical.base_ms_max
        return base_ms if base_ms < base_ms_max else base_ms_max

    @property
    def ms_per_token(self) -> Milliseconds:
        """The time for each token of it."""
        return self.factor * self.typical.line.ms_per_token

    def at(self, tokens: float) -> Milliseconds:
        """The time for this many tokens."""
        typical, factor = self.typical, self.factor
        line = typical.line
        base_ms, base_ms_max = factor * line.base_ms, typical.base_ms_max
        return (base_ms if base_ms < base_ms_max else base_ms_max) + factor * line.ms_per_token * tokens

    def learn(self, tokens: float, ttft_ms: Milliseconds, *, is_measured: bool = False) -> None:
        """One answer's first token came after `ttft_ms`, with `tokens` computed for it or ahead of it.

        The first sample that does not rest on a guess at the length of prompts takes the place of all that do.
        """
        if is_measured and not self.typical.is_measured:
            self.typical.start_over()
        if is_measured and not self._is_measured:
            self._is_measured, self.samples, self._sums = True, 0, _Sums()
        if not 0.0 <= ttft_ms <= SAMPLE_MS_MAX:
            ttft_ms = min(max(ttft_ms, 0.0), SAMPLE_MS_MAX)
        expected = self.at(tokens)
        if expected < MS_PER_TOKEN_MIN:
            expected = MS_PER_TOKEN_MIN
        error = ttft_ms - expected
        usual = expected * (self.error_ratio if self.error_ratio > ERROR_RATIO_MIN else ERROR_RATIO_MIN)
        bound = OUTLIER * (usual if usual > ERROR_MS_MIN else ERROR_MS_MIN)
        if not -bound <= error <= bound:
            error = bound if error > 0.0 else -bound
        distance = abs(error)
        if self.samples == 0:
            self.error_ms = distance
        self.error_ms += ERROR_SMOOTHING * (distance - self.error_ms)
        self.error_ratio += ERROR_SMOOTHING * (distance / expected - self.error_ratio)
        self.samples += 1
        self.typical.learn(tokens, expected + error)
        self._sums.add(tokens, expected + error, FORGETTING)
        self._compare()

    def learn_hold(self, hold_ms: Milliseconds) -> None:
        """A request kept its place this long."""
        if not 0.0 <= hold_ms <= SAMPLE_MS_MAX:
            hold_ms = min(max(hold_ms, 0.0), SAMPLE_MS_MAX)
        self.hold_ms += ERROR_SMOOTHING * (hold_ms - self.hold_ms)

    def relax(self, kept: float) -> None:
        """Keep this share of what was learned and drift to what is typical by the rest: an endpoint that was slow, and
        has had nothing to do since, gets its chance.
        """
        if self.samples:
            self._sums.fade(kept)
            self._compare()

    def _compare(self) -> None:
        """The factor is the sum of its times over what is typical of them, drawn towards 1 by what chance explains."""
        line, sums = self.typical.line, self._sums
        base, slope = line.base_ms, line.ms_per_token
        expected = base * sums.weight + slope * sums.x
        if expected < MS_PER_TOKEN_MIN:
            expected = MS_PER_TOKEN_MIN
        squares = base * base * sums.weight + 2.0 * base * slope * sums.x + slope * slope * sums.xx
        apart = sums.y / expected - 1.0
        reach = TOLD_APART * self.error_ratio / expected
        chance = reach * reach * squares
        believed = apart * apart / (apart * apart + chance) if apart else 0.0
        factor = 1.0 + believed * apart
        self.factor = factor if factor > FACTOR_MIN else FACTOR_MIN


def cold_rates(typical: Typical) -> Rates:
    """Rates of a destination that has served nothing: what is typical, as it is learned."""
    return Rates(typical)
