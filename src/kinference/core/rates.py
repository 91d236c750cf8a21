"""How long things take at one destination for one model, learned from what happened.

Time to first token is a line in the tokens computed before it: `base_ms + ms_per_token x tokens`. The line is fitted
by weighted least squares with exponential forgetting; a residual beyond three times the usual one counts as three
times (Huber's rule), so that a retry or a stalled client moves nothing. A destination without data follows the
typical values of its pool and model.
"""

from dataclasses import dataclass, field
from math import exp

from kinference.ids import Milliseconds, Seconds

FORGETTING = 0.99
"""Weight of the past after each sample: about the last 100 count."""
OUTLIER = 3.0
ERROR_SMOOTHING = 0.1
PRIOR_WEIGHT = 2.0
"""Two points of the prior line stay in the fit with this weight: equal prompts alone do not determine a line, and what
sets equal engines apart for a while is mostly chance."""
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
class Typical:
    """What a pool's endpoints need for one model, on the average of those that have served it."""

    line: Line = field(default_factory=Line)
    base_ms_max: Milliseconds = LOCAL_BASE_MS_MAX
    samples: int = 0
    adapter_ms: Milliseconds = ADAPTER_MS
    """What loading it takes, where it is an adapter."""

    def learn(self, line: Line) -> None:
        """Move towards one member's line after it learned."""
        self.samples += 1
        share = max(ERROR_SMOOTHING, 1.0 / self.samples)
        self.line.base_ms += share * (line.base_ms - self.line.base_ms)
        self.line.ms_per_token += share * (line.ms_per_token - self.line.ms_per_token)

    def learn_adapter(self, ms: Milliseconds) -> None:
        """A first token came so much later than expected where the adapter had to be loaded first."""
        bounded = min(max(ms, 0.0), OUTLIER * max(self.adapter_ms, 1.0))
        self.adapter_ms += ADAPTER_SMOOTHING * (bounded - self.adapter_ms)


@dataclass(slots=True, eq=False)
class Rates:
    """The learned line of one destination and model. Until it has learned, `line` is the pool's own object."""

    typical: Typical
    line: Line
    samples: int = 0
    error_ms: Milliseconds = 0.0
    """Usual distance between what was expected and what happened."""
    hold_ms: Milliseconds = HOLD_MS
    """How long a request keeps its place after its first token."""
    _weight: float = 0.0
    _x: float = 0.0
    _y: float = 0.0
    _xx: float = 0.0
    _xy: float = 0.0

    def learn(self, tokens: float, ttft_ms: Milliseconds) -> None:
        """One answer's first token came after `ttft_ms`, with `tokens` computed for it or ahead of it."""
        ttft_ms = min(max(ttft_ms, 0.0), SAMPLE_MS_MAX)
        expected = self.line.at(tokens)
        error = ttft_ms - expected
        if self.samples == 0:
            self.line = Line(self.line.base_ms, self.line.ms_per_token)
            self.error_ms = abs(error)
        bound = OUTLIER * max(self.error_ms, 0.02 * expected, 1.0)
        error = min(max(error, -bound), bound)
        self.error_ms += ERROR_SMOOTHING * (abs(error) - self.error_ms)
        self.samples += 1
        self._add(tokens, expected + error)
        self._fit()
        self.typical.learn(self.line)

    def learn_hold(self, hold_ms: Milliseconds) -> None:
        """A request kept its place this long."""
        self.hold_ms += ERROR_SMOOTHING * (min(max(hold_ms, 0.0), SAMPLE_MS_MAX) - self.hold_ms)

    def relax(self, kept: float) -> None:
        """Keep this share of what was learned and drift to what is typical by the rest: an endpoint that was slow, and
        has had nothing to do since, gets its chance.
        """
        if self.samples:
            self._weight, self._x, self._y = kept * self._weight, kept * self._x, kept * self._y
            self._xx, self._xy = kept * self._xx, kept * self._xy
            self._fit()

    def _add(self, x: float, y: Milliseconds) -> None:
        self._weight = FORGETTING * self._weight + 1.0
        self._x = FORGETTING * self._x + x
        self._y = FORGETTING * self._y + y
        self._xx = FORGETTING * self._xx + x * x
        self._xy = FORGETTING * self._xy + x * y

    def _fit(self) -> None:
        prior, far = self.typical.line, PRIOR_TOKENS
        weight = self._weight + 2 * PRIOR_WEIGHT
        x = (self._x + PRIOR_WEIGHT * far) / weight
        y = (self._y + PRIOR_WEIGHT * (prior.base_ms + prior.at(far))) / weight
        spread = (self._xx + PRIOR_WEIGHT * far * far) / weight - x * x
        together = (self._xy + PRIOR_WEIGHT * far * prior.at(far)) / weight - x * y
        slope = max(MS_PER_TOKEN_MIN, together / max(spread, 1.0))
        base = y - slope * x
        if base < 0.0:  # a line through the origin explains it better than time running backwards
            base, slope = 0.0, max(MS_PER_TOKEN_MIN, y / x)
        self.line.base_ms, self.line.ms_per_token = min(base, self.typical.base_ms_max), slope


def cold_rates(typical: Typical) -> Rates:
    """Rates of a destination that has served nothing: what is typical, as it is learned."""
    return Rates(typical, typical.line)
