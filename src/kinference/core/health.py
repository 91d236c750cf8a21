"""Circuits: a destination that fails is left alone for a growing time, then tried with a trickle of real traffic."""

from dataclasses import dataclass
from typing import Final

from kinference.ids import Seconds

FAILURES_TO_OPEN: Final = 3
BACKOFF_S: Final = 1.0
BACKOFF_MAX_S: Final = 60.0
TRIAL_EVERY_S: Final = 1.0
UNUSABLE_BACKOFF_S: Final = 30.0
UNUSABLE_BACKOFF_MAX_S: Final = 300.0
FAILURE_SMOOTHING: Final = 0.2


@dataclass(slots=True, eq=False)
class Circuit:
    """The health of one destination. Closed: all may pass; open: none; half open: one now and then.

    While it is open only the result of a trial counts: other failures are late news of requests sent before.
    """

    failures: int = 0
    """In a row."""
    breaks: int = 0
    """Answers in a row that began well and broke off. Apart from failures, which every good beginning forgets."""
    failure_ratio: float = 0.0
    """Smoothed, so that failing every other request shows as well."""
    reason: str = ""
    told: str = ""
    """What a caller says of the last failure. Its words: for who runs the fleet, and for no other caller."""
    closed: bool = True
    unusable: bool = False
    """A caller could not use it at all (no route or no credential): not even when all are ejected."""
    _until: Seconds = 0.0
    _backoff_s: Seconds = 0.0
    _on_trial: bool = False

    def allows(self, now: Seconds) -> bool:
        """True when a request may go there now."""
        return self.closed or now >= self._until

    @property
    def is_doubtful(self) -> bool:
        """True when the last that was heard of it was a failure."""
        return self.failures > 0 or self.breaks > 0

    def picked(self, now: Seconds) -> None:
        """A request goes there: while half open, the next one has to wait for its result or its turn."""
        if not self.closed:
            self._on_trial = True
            self._until = max(self._until, now + TRIAL_EVERY_S)

    def succeeded(self) -> None:
        """An answer came: all is well."""
        self.failures, self.reason, self.told, self.closed, self.unusable = 0, "", "", True, False
        self.failure_ratio *= 1.0 - FAILURE_SMOOTHING
        self._backoff_s, self._on_trial = 0.0, False

    def failed(self, reason: str, now: Seconds) -> None:
        """It refused, broke or vanished."""
        self.failures += 1
        self.told = ""
        self.failure_ratio += FAILURE_SMOOTHING * (1.0 - self.failure_ratio)
        if self._on_trial or (self.closed and self.failures >= FAILURES_TO_OPEN):
            self._open(reason, now, (BACKOFF_S, BACKOFF_MAX_S))

    def completed(self) -> None:
        """An answer came to its end."""
        self.breaks = 0

    def broke(self, reason: str, now: Seconds) -> None:
        """It began an answer and did not end it: whoever fails fast would look like the fastest."""
        self.breaks += 1
        self.failure_ratio += FAILURE_SMOOTHING * (1.0 - self.failure_ratio)
        beyond = self.breaks - FAILURES_TO_OPEN
        if self.closed and beyond >= 0:
            self._open(reason, now, (min(BACKOFF_S * 2**beyond, BACKOFF_MAX_S), BACKOFF_MAX_S))

    def reject(self, reason: str, now: Seconds) -> None:
        """The caller found no route or credential for it: out at once, back for a trial later."""
        if self._on_trial or not self.unusable:
            self.unusable = True
            self._open(reason, now, (UNUSABLE_BACKOFF_S, UNUSABLE_BACKOFF_MAX_S))

    @property
    def tried_at(self) -> Seconds:
        """From when on it is tried again."""
        return self._until

    def retry_in(self, now: Seconds) -> Seconds:
        """How long until it is tried again; 0 when it may be tried now."""
        return 0.0 if self.closed else max(0.0, self._until - now)

    def state(self, now: Seconds) -> str:
        """`closed`, `open` or `half_open`."""
        if self.closed:
            return "closed"
        return "half_open" if now >= self._until else "open"

    def _open(self, reason: str, now: Seconds, span: tuple[Seconds, Seconds]) -> None:
        first, longest = span
        self._backoff_s = min(max(first, 2 * self._backoff_s), longest)
        self._until = now + self._backoff_s
        self.closed, self.reason, self._on_trial = False, reason, False


def is_failure(status: int) -> bool:
    """True for what is the destination's fault: no answer, 429, 5xx. Other 4xx are the client's."""
    return status <= 0 or status == 429 or status >= 500  # noqa: PLR2004 - HTTP's own numbers


def is_success(status: int) -> bool:
    """True for an answer that shows the destination works."""
    return 200 <= status < 400  # noqa: PLR2004 - HTTP's own numbers
