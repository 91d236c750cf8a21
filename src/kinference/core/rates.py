"""How long things take at one destination for one model, learned from what happened.

Time to first token is a line in the tokens computed before it: `base_ms + ms_per_token x tokens`. The line of a pool
and model is fitted by weighted least squares with exponential forgetting, and each destination's is that line times a
factor of its own; a residual beyond three times the usual one counts as three times (Huber's rule), so that a retry or
a stalled client moves nothing. A destination without data follows the line of its pool and model.
"""

from dataclasses import dataclass, field
from math import exp

from kinference.ids import Milliseconds, Seconds

FORGETTING = 0.99
"""Weight of the past after each sample: about the last 100 count."""
POOL_FORGETTING = 0.995
"""The same for a whole pool, which gets many."""
OUTLIER = 3.0
ERROR_SMOOTHING = 0.1
PRIOR_WEIGHT = 2.0
"""Two points of the line as it was are in each fit with this weight: equal prompts alone do not determine a line."""
FACTOR_WEIGHT = 5.0
"""So many prompts of the prior's length at the usual pace count beside what an endpoint has served: what sets equal
engines apart for a while is mostly chance."""
PRIOR_TOKENS = 4_096.0
MS_PER_TOKEN_MIN = 1e-4
SAMPLE_MS_MAX = 3_600_000.0

LOCAL_BASE_MS = 20.0
LOCAL_MS_PER_TOKEN = 0.1
LOCAL_BASE_MS_MAX = 500.0
"""What an empty prompt takes on an idle engine is never more: the rest is waiting that nobody told of, in a host that
is overloaded, and must not outlive it as a trait of the engine."""
BACKEND_BASE_MS = 2_000.0
"""Far above any engine that is not overloaded: equal targets are served on our own hardware first."""
HOLD_MS = 5_000.0
ADAPTER_MS = 200.0
"""What loading an adapter takes until it is known."""
ADAPTER_SMOOTHING = 0.2
PEAK_DECAY_S = 10.0


@dataclass(slots=True, eq=False)
class Line:
    """A time to first token as base and slope."""

    base_ms: Milliseconds = LOCAL_BASE_MS
    ms_per_token: Milliseconds = LOCAL_MS_PER_TOKEN

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
        kept = exp(-max(0.0, now - self._at) / PEAK_DECAY_S)
        self.ms = ms if ms > self.ms else kept * self.ms + (1.0 - kept) * ms
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


@dataclass(slots=True, eq=False)
class Typical:
    """What a pool's endpoints need for one model: one line through the samples of all of them."""

    line: Line = field(default_factory=Line)
    base_ms_max: Milliseconds = LOCAL_BASE_MS_MAX
    samples: int = 0
    in_line: int = 0
    """How many of them had other prompts before them: while few, whether prompts wait for each other is a guess."""
    adapter_ms: Milliseconds = ADAPTER_MS
    """What loading it takes, where it is an adapter."""
    is_measured: bool = False
    """Rests on prompts as long as an engine counted such ones, and not on a guess at their length."""
    _sums: _Sums = field(default_factory=_Sums)

    def learn(self, tokens: float, ttft_ms: Milliseconds) -> None:
        """A first token somewhere in the pool."""
        self.samples += 1
        self._sums.add(tokens, ttft_ms, POOL_FORGETTING)
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

    def start_over(self) -> None:
        """What was learned so far rests on a wrong idea of how long prompts are."""
        self.is_measured, self.samples, self._sums = True, 0, _Sums()

    def learn_adapter(self, ms: Milliseconds) -> None:
        """A first token came so much later than expected where the adapter had to be loaded first."""
        bounded = min(max(ms, 0.0), OUTLIER * max(self.adapter_ms, 1.0))
        self.adapter_ms += ADAPTER_SMOOTHING * (bounded - self.adapter_ms)


@dataclass(slots=True, eq=False)
class Rates:
    """The learned line of one destination and model: what is typical, by how much slower or faster it is.

    One number sets an endpoint apart, and not a line of its own: of the few samples that each has, base and slope
    would differ between equal engines by chance, and send requests to the luckier one. Until it has learned, `line`
    is the pool's own object.
    """

    typical: Typical
    line: Line
    samples: int = 0
    error_ms: Milliseconds = 0.0
    """Usual distance between what was expected and what happened."""
    hold_ms: Milliseconds = HOLD_MS
    """How long a request keeps its place after its first token."""
    _is_measured: bool = False
    _sums: _Sums = field(default_factory=_Sums)

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
        expected = self.line.at(tokens)
        error = ttft_ms - expected
        if self.samples == 0:
            self.line = Line(self.line.base_ms, self.line.ms_per_token)
            self.error_ms = abs(error)
        bound = OUTLIER * max(self.error_ms, 0.02 * expected, 1.0)
        if not -bound <= error <= bound:
            error = min(max(error, -bound), bound)
        self.error_ms += ERROR_SMOOTHING * (abs(error) - self.error_ms)
        self.samples += 1
        self.typical.learn(tokens, expected + error)
        self._sums.add(tokens, expected + error, FORGETTING)
        self._fit()

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
            sums = self._sums
            sums.weight, sums.x, sums.y = kept * sums.weight, kept * sums.x, kept * sums.y
            self._fit()

    def _fit(self) -> None:
        line, typical, sums = self.line, self.typical.line, self._sums
        usual_ms = FACTOR_WEIGHT * max(typical.at(PRIOR_TOKENS), MS_PER_TOKEN_MIN)
        expected_ms = typical.base_ms * sums.weight + typical.ms_per_token * sums.x
        factor = (sums.y + usual_ms) / (expected_ms + usual_ms)
        base, slope = factor * typical.base_ms, factor * typical.ms_per_token
        line.base_ms = base if base < self.typical.base_ms_max else self.typical.base_ms_max
        line.ms_per_token = slope if slope > MS_PER_TOKEN_MIN else MS_PER_TOKEN_MIN


def cold_rates(typical: Typical) -> Rates:
    """Rates of a destination that has served nothing: what is typical, as it is learned."""
    return Rates(typical, typical.line)
