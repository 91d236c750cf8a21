"""The Picker service itself, synchronous: what both carriers, gRPC and the direct call, put into their own clothes.

No method awaits, so each is atomic under asyncio: a body is consumed, decided on and counted in flight in one go.
"""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, Final, TypeAlias

from kinference.core.admission import Admission
from kinference.core.flight import SentPrompt
from kinference.core.pick import Router
from kinference.errors import InvalidArgument, KinferenceError
from kinference.ids import ResponseId, Seconds, StreamId
from kinference.observe.metrics import (
    BODIES_REFUSED,
    BUFFERED_BYTES,
    CIRCUIT_OPEN,
    DRAINING,
    EXPIRED,
    LIMIT_REFUSALS,
    LIVE_TICKETS,
    PICK_SECONDS,
    PICKS,
    TENANT_SPENT,
    TENANT_UNPRICED,
    Metrics,
)
from kinference.picker.account import Account
from kinference.picker.bodies import Bodies
from kinference.picker.choosing import Chosen, Pending, answer, choose_or_wait
from kinference.picker.flow import Flow, FlowHistory
from kinference.picker.held import Answer, Asker, HeldPick, HeldPicks
from kinference.picker.limits import PickerLimits
from kinference.picker.reports import Reports
from kinference.picker.tickets import Ticket, Tickets
from kinference.ports import Clock, PickArguments, PickResult, Placed, PushedBody
from kinference.vocabulary import Outcome
from kinference.wire.pieces import Pieces, cut, join

OnDispatch: TypeAlias = Callable[[SentPrompt, bytes, str], None]
_OUTCOMES: Final = {outcome: outcome.name.lower() for outcome in Outcome}
_RECLAIMED: Final[tuple[str, ...]] = ("body", "unpulled", "pull", "ticket", "stalled_pull")


class Desk:
    """Bodies in, decisions out, and the state between them.

    `random` draws the ids: an `IdSource` in production.
    """

    def __init__(self, router: Router, limits: PickerLimits, clock: Clock, metrics: Metrics, random: Random) -> None:
        self.limits = limits
        self._router, self._clock, self._metrics = router, clock, metrics
        self.admission = Admission(router, limits.admission)
        self._held = HeldPicks(self.admission, metrics)
        self._account = Account(limits.buffer_max_bytes)
        self._bodies = Bodies(limits, self._account, random, self._reclaim)
        self._tickets = Tickets(limits, self._account, random)
        self.reports = Reports(router, self._tickets, self._held, clock, metrics)
        self._history = FlowHistory(limits.decisions_max)
        self.is_draining = False
        self._dispatched: OnDispatch | None = None
        for what in _RECLAIMED:  # shown from the start, so that the first of them is seen to come
            metrics.count(EXPIRED, what, amount=0)

    # --- pushing ---------------------------------------------------------------------------------

    def open(self, declared: int | None) -> StreamId:
        """A push begins. Its carrier calls `discard` when its stream ends, however it ends."""
        return self._bodies.open(declared)

    def append(self, stream_id: StreamId, chunk: bytes) -> None:
        """A chunk arrived. When it breaks a rule, the body is gone when this raises."""
        self._bodies.append(stream_id, chunk)

    def finish(self, stream_id: StreamId) -> PushedBody:
        """The push half-closed cleanly, as far as its carrier can see."""
        return PushedBody(stream_id, self._bodies.finish(stream_id, self._clock.now()))

    def commit(self, stream_id: StreamId) -> None:
        """The caller has its reply: the body stays when the stream ends."""
        self._bodies.commit(stream_id)

    def discard(self, stream_id: StreamId) -> None:
        """The push's stream ended; what was not committed goes."""
        self._bodies.discard(stream_id)

    def push(self, declared: int | None, chunk: bytes | None) -> PushedBody:
        """A push that came whole, in one chunk or none: there is no stream whose end could take it away."""
        stream_id = self._bodies.put(declared, chunk, self._clock.now())
        return PushedBody(stream_id, 0 if chunk is None else len(chunk))

    # --- bodies that their caller holds ----------------------------------------------------------

    def make_room(self, size: int) -> None:
        """Raise BudgetExceeded unless so many more bytes can be held."""
        self._bodies.check_room(size)

    def hold(self, size: int) -> None:
        """Count bytes that came in elsewhere in this process. Raises BudgetExceeded."""
        self._bodies.check_room(size)
        self._account.charge(size)

    def let_go(self, size: int) -> None:
        """Count them no longer."""
        self._account.release(size)

    # --- picking ---------------------------------------------------------------------------------

    def pick(
        self, arguments: PickArguments, wake: Callable[[], None], *, remote: bool = False
    ) -> PickResult | HeldPick[PickResult]:
        """Decide for a pushed body. Whatever the answer is, it consumes the body; an exception does not.

        Where no engine can start it soon the Pick is held: `wake` is called when its time has come, then `resume` has
        the answer. Whoever cannot wait for that has to `give_up`.
        """
        if not arguments.stream_id:
            raise InvalidArgument("body_stream_id is 0, which names no body: push one first")
        body = self._bodies.peek(arguments.stream_id)
        whole, now = join(body.pieces()), self._clock.now()
        chosen = self._choose(arguments, whole, now)
        if not isinstance(chosen, Pending):
            return self._picked(chosen, whole, arguments, remote=remote)
        conclude = partial(self._picked, whole=whole, arguments=arguments, remote=remote)
        return self._wait(chosen, Asker(wake, conclude, arguments.stream_id), now)

    def place(self, body: bytes, arguments: PickArguments) -> Placed | Pending:
        """Push, pick and a complete pull in one, for a caller in this process who keeps the body and never lets it
        stall. Where no engine can start it soon, its caller has to `hold_on`.
        """
        chosen = self._choose(arguments, body, self._clock.now())
        return chosen if isinstance(chosen, Pending) else self._placed(chosen, body, arguments)

    def hold_on(self, pending: Pending, wake: Callable[[], None]) -> HeldPick[Placed]:
        """Hold what was not placed at once, as a Pick is."""
        conclude = partial(self._placed, body=pending.body, arguments=pending.arguments)
        return self._wait(pending, Asker(wake, conclude), self._clock.now())

    def resume(self, pick: HeldPick[Answer]) -> Answer | HeldPick[Answer]:
        """The answer of a Pick that was held; or it is held once more, where its body did not suit its destination."""
        now = self._clock.now()
        self._let_go(pick, now)
        chosen = pick.conclude(now)
        return self._wait(chosen, pick.asker, now) if isinstance(chosen, Pending) else pick.asker.conclude(chosen)

    def give_up(self, pick: HeldPick[Any]) -> None:
        """The caller of a held Pick has gone. A pushed body stays, for another Pick or until its time is over."""
        now = self._clock.now()
        self._held.give_up(pick, now)
        self._let_go(pick, now)
        self._held.release(now)

    def _choose(self, arguments: PickArguments, body: bytes, now: Seconds) -> Chosen | Pending:
        chosen = choose_or_wait(self.admission, arguments, body, now)
        self._metrics.time(PICK_SECONDS, self._clock.now() - now)
        return chosen

    def _wait(self, pending: Pending, asker: Asker[Answer], now: Seconds) -> HeldPick[Answer]:
        if asker.stream_id:
            self._bodies.hold(asker.stream_id)
        return self._held.add(HeldPick(pending, asker, now), now)

    def _let_go(self, pick: HeldPick[Any], now: Seconds) -> None:
        if pick.asker.stream_id:
            self._bodies.let_go(pick.asker.stream_id, now)

    def _picked(self, chosen: Chosen, whole: bytes, arguments: PickArguments, *, remote: bool) -> PickResult:
        now = self._clock.now()
        body = self._bodies.consume(arguments.stream_id, now)
        flow, ticket = self._flow(chosen, arguments, remote=remote), None
        if chosen.decision.choice is None:
            self._account.release(body.size)
        else:
            ticket = self._ticketed(flow, body, chosen.patched, now)
            self._tell_dispatch(chosen, whole, arguments)
        self._note(flow)
        return answer(chosen, self.limits.name_max_chars, ticket)

    def _placed(self, chosen: Chosen, body: bytes, arguments: PickArguments) -> Placed:
        flow, ticket = self._flow(chosen, arguments, remote=False), None
        if chosen.decision.choice is not None:
            patched = chosen.patched
            body = body if patched is None else patched
            ticket = self._tickets.open_pulled(flow, self._clock.now())
            if self._dispatched is not None:
                self._tell_dispatch(chosen, body, arguments)
        self._note(flow)
        picked = answer(chosen, self.limits.name_max_chars, ticket)
        return Placed(picked) if ticket is None else Placed(picked, body, chosen.usage, chosen.way_back, chosen.streams)

    def _flow(self, chosen: Chosen, arguments: PickArguments, *, remote: bool) -> Flow:
        requested_model = chosen.requested_model[: self.limits.name_max_chars]
        return Flow(self._clock.wall(), arguments, requested_model, chosen.decision, remote)

    def _note(self, flow: Flow) -> None:
        """Remember and count an answered Pick."""
        decision = flow.decision
        if decision.choice is None:
            self.reports.end(flow, "refused")
        oldest = self._history.add(flow)
        if oldest is not None:
            self._set_aside(oldest)
        self._metrics.count(PICKS, _OUTCOMES[decision.outcome])
        if limit := decision.limit:
            self._metrics.count(LIMIT_REFUSALS, flow.arguments.tenant, limit)

    def _set_aside(self, flow: Flow) -> None:
        """One that nobody can look at any more, and that runs on: there may be very many."""
        flow.decision = flow.decision.unexplained()
        ticket = self._tickets.find(flow.response_id)
        if ticket is not None and not ticket.dispatched:
            self._router.set_aside(flow.decision.reservation)
            ticket.set_aside()

    def _ticketed(self, flow: Flow, body: Pieces, patched: bytes | None, now: Seconds) -> Ticket:
        """Move a body to a ticket. What patching adds is counted, and is not a reason to refuse."""
        if patched is None:
            return self._tickets.open(body.pieces(), flow, now)
        ticket = self._tickets.open(tuple(cut(patched, self.limits.pull_chunk_max_bytes)), flow, now)
        self._account.charge(ticket.bytes_left)
        self._account.release(body.size)
        return ticket

    def _tell_dispatch(self, chosen: Chosen, pushed: bytes, arguments: PickArguments) -> None:
        if self._dispatched is None:
            return
        sent = self._router.sent(chosen.decision.reservation)
        if sent is not None:
            whole = pushed if chosen.patched is None else chosen.patched
            self._dispatched(sent, whole, chosen.path or arguments.request_path)

    # --- pulling ---------------------------------------------------------------------------------

    def unpulled(self, response_id: ResponseId) -> Ticket:
        """What waits to be pulled. Raises UnknownId."""
        return self._tickets.unpulled(response_id)

    def pulled(self, ticket: Ticket) -> None:
        """The reader took at once what waited, and that was the one pull."""
        self._tickets.pulled(ticket, self._clock.now())

    def claim(self, response_id: ResponseId, wake: Callable[[], None] | None = None) -> Ticket:
        """Begin the one pull. `wake` is called if it is cut from our side while its carrier waits for the reader."""
        return self._tickets.claim(response_id, wake, self._clock.now())

    def next_piece(self, ticket: Ticket) -> bytes | None:
        """The piece to send next; None after the last. Raises when the pull was cut."""
        return self._tickets.next_piece(ticket)

    def piece_sent(self, ticket: Ticket) -> None:
        """The reader took it."""
        self._tickets.piece_sent(ticket, self._clock.now())

    def end_pull(self, ticket: Ticket) -> None:
        """The pull's stream ended, however it ended."""
        self._tickets.end_pull(ticket, self._clock.now())

    # --- time ------------------------------------------------------------------------------------

    def deadline(self) -> Seconds | None:
        """When `expire` next has something to do."""
        deadlines = (self._bodies.deadline(), self._tickets.deadline(), self._held.deadline(self._clock.now()))
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def expire(self) -> int:
        """Reclaim what is due, some at once. Returns how much there was to reclaim."""
        now = self._clock.now()
        unpicked = self._bodies.expire(now)
        expired = self._tickets.expire(now)
        for ticket in expired.closed:
            self._router.expire(ticket.flow.decision.reservation, ticket.dispatched, now)
            self.reports.end(ticket.flow, "expired")
        counts = (("body", unpicked), ("unpulled", expired.unpulled), ("pull", expired.stalled))
        for what, count in (*counts, ("ticket", len(expired.closed))):
            if count:
                self._metrics.count(EXPIRED, what, amount=count)
        self._held.release(now)
        return unpicked + expired.unpulled + expired.stalled + len(expired.closed)

    def on_hold(self, announce: Callable[[Seconds], None]) -> None:
        """Have `announce` told when to `expire` for the sake of Picks that are held: that may be very soon."""
        self._held.announce = announce

    def on_dispatch(self, listener: OnDispatch) -> None:
        """Have `listener` told of each prompt that goes to an engine: the body as it is sent, and its path."""
        self._dispatched = listener

    # --- the whole -------------------------------------------------------------------------------

    def drain(self) -> None:
        """Take no new push from outside; what has begun goes on. A gateway in this process drains itself."""
        self.is_draining = True

    @property
    def is_idle(self) -> bool:
        """Nothing is under way: no body, no ticket, no pull, and nobody waits."""
        return not (len(self._held) or len(self._bodies) or len(self._tickets) or self._tickets.pulls)

    @property
    def buffered_bytes(self) -> int:
        """Bytes held in bodies, in every state."""
        return self._account.held

    @property
    def surplus_bytes(self) -> int:
        """Bytes that were held at once since the last `pack`, and are no more."""
        return self._account.peak - self._account.held

    def pack(self) -> None:
        """Many have gone: hold what is left in as little as it takes."""
        self._account.peak = self._account.held
        self._history.pack()
        self._bodies.pack()
        self._tickets.pack()
        self._router.pack()

    def publish(self) -> None:
        """Bring the metrics up to date, before they are read."""
        self.reports.publish()
        for tenant, usd, unpriced in self._router.accounts.take_unreported():
            self._metrics.count(TENANT_SPENT, tenant, amount=usd)
            self._metrics.count(TENANT_UNPRICED, tenant, amount=unpriced)
        self._metrics.gauge(BUFFERED_BYTES, self._account.held)
        self._metrics.gauge(LIVE_TICKETS, len(self._tickets))
        self._publish_marks()
        self._held.publish()

    def _publish_marks(self) -> None:
        """Which destinations are left alone."""
        alone, draining = [], []
        for row in self._router.snapshot(self._clock.now()):
            name = f"{row.pool}/{row.address}" if row.address else row.pool
            if row.circuit != "closed":
                alone.append(name)
            if row.draining:
                draining.append(name)
        self._metrics.mark(CIRCUIT_OPEN, alone)
        self._metrics.mark(DRAINING, draining)

    def note_refusal(self, error: KinferenceError) -> None:
        """Count a body that was refused for a limit, if that is why."""
        if error.limit:
            self._metrics.count(BODIES_REFUSED, error.limit)

    def flows(self, limit: int) -> tuple[Flow, ...]:
        """The last decisions, newest first."""
        return self._history.newest(limit)

    def _reclaim(self, wanted: int) -> None:
        """Reclaim what has expired, then cut the pulls that have been stalled longest, until enough is free."""
        while wanted > self._account.free and self.expire():
            pass
        while wanted > self._account.free and self._tickets.shed(self._clock.now()):
            self._metrics.count(EXPIRED, "stalled_pull")
