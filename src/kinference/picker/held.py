"""Picks that wait for an engine to have room, from the moment that admission holds them until their answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kinference.core.admission import Admission
from kinference.core.decision import Decision
from kinference.core.turns import Waiting
from kinference.ids import Seconds, StreamId
from kinference.observe.metrics import ADMISSION_WAIT, SHED, WAITING, Metrics
from kinference.picker.choosing import Chosen, Pending
from kinference.vocabulary import AbortReason, Outcome, QosClass

Answer = TypeVar("Answer")
_CLASSES = {qos: qos.name.lower() for qos in QosClass}


@dataclass(frozen=True, slots=True, eq=False)
class Asker(Generic[Answer]):
    """Who wants an answer: what wakes it, what makes an answer of a choice, and the pushed body that it asks for."""

    wake: Callable[[], None]
    conclude: Callable[[Chosen], Answer]
    stream_id: StreamId = StreamId(0)


@dataclass(slots=True, eq=False)
class HeldPick(Generic[Answer]):
    """One that waits. Its asker is woken when the decision is there."""

    pending: Pending
    asker: Asker[Answer]
    since: Seconds
    decision: Decision | None = None

    @property
    def waiting(self) -> Waiting:
        """What admission holds for it."""
        assert self.pending.waiting is not None, "only what waits is held"
        return self.pending.waiting

    def conclude(self, now: Seconds) -> Chosen | Pending:
        """What came of the decision."""
        assert self.decision is not None, "its asker is woken when it is decided on"
        return self.pending.conclude(self.decision, now)


class HeldPicks:
    """All of them, by the number that admission gave them."""

    def __init__(self, admission: Admission, metrics: Metrics) -> None:
        self._admission, self._metrics = admission, metrics
        self._held: dict[int, HeldPick[Any]] = {}
        self.announce: Callable[[Seconds], None] = _tell_nobody
        self.publish()

    def __len__(self) -> int:
        return len(self._held)

    def add(self, pick: HeldPick[Answer], now: Seconds) -> HeldPick[Answer]:
        """One more waits."""
        self._held[pick.waiting.number] = pick
        self.release(now)
        return pick

    def give_up(self, pick: HeldPick[Any], now: Seconds) -> None:
        """Its asker has gone: what was decided for it already is taken back."""
        if pick.decision is not None:
            self._admission.router.abort(pick.decision.reservation, AbortReason.NOT_DISPATCHED, now)
            return
        del self._held[pick.waiting.number]
        self._admission.withdraw(pick.waiting)
        self._metrics.time(ADMISSION_WAIT, now - pick.since, _CLASSES[pick.waiting.request.qos])

    def release(self, now: Seconds) -> None:
        """Something has changed: whoever need not wait any longer is woken."""
        if not self._held:
            return
        for released in self._admission.release(now):
            pick = self._held.pop(released.waiting.number)
            pick.decision = released.decision
            name = _CLASSES[pick.waiting.request.qos]
            self._metrics.time(ADMISSION_WAIT, now - pick.since, name)
            if released.decision.outcome is Outcome.POLICY_REJECTED:
                self._metrics.count(SHED, name)
            pick.asker.wake()
        deadline = self.deadline(now)
        if deadline is not None:
            self.announce(deadline)

    def deadline(self, now: Seconds) -> Seconds | None:
        """When to release the next ones, if nothing happens before."""
        return self._admission.deadline(now)

    def publish(self) -> None:
        """Bring the gauge up to date."""
        counts = dict.fromkeys(QosClass, 0)
        for pick in self._held.values():
            counts[pick.waiting.request.qos] += 1
        for qos, count in counts.items():
            self._metrics.gauge(WAITING, count, _CLASSES[qos])


def _tell_nobody(_deadline: Seconds) -> None:
    """Nobody releases on time yet."""
