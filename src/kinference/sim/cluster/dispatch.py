"""Who says which engine a job goes to: the decision core under test, or an oracle that sees inside the engines."""

from collections.abc import Sequence
from random import Random
from typing import Final, Protocol

from kinference.core.admission import Admission
from kinference.core.decision import Decision, EndpointChoice
from kinference.core.fleet import EndpointSpec, Fleet, Observation
from kinference.core.pick import Router
from kinference.core.policy import RoutingRules
from kinference.core.request import Request
from kinference.core.waiting import AdmissionRules
from kinference.core.weigh import Prompt
from kinference.ids import Address, ObjectRef, ReservationId, Seconds
from kinference.sim.cluster.chains import Chains
from kinference.sim.cluster.engine import LeapingEngine
from kinference.sim.cluster.job import Job
from kinference.vocabulary import AbortReason, Api

MODEL: Final = "m"
POOL: Final = ObjectRef("simulated", "pool")
UNAVAILABLE: Final = 503
TOO_LONG: Final = 400
HELD: Final = -1


class Dispatcher(Protocol):
    """Sends jobs to engines, and is told what a router would be told, when it would be."""

    @property
    def holds(self) -> bool:
        """Whether any job waits to be released."""
        ...

    def send(self, job: Job, now: Seconds) -> int | None:
        """The engine for a job, HELD to let it wait, None to refuse it."""
        ...

    def release(self, now: Seconds) -> list[tuple[Job, int | None]]:
        """Jobs that waited and need not any longer, each with its engine or None."""
        ...

    def due(self, now: Seconds) -> Seconds | None:
        """When to ask for them next, if nothing happens before; None while none waits."""
        ...

    def first(self, job: Job, reservation: ReservationId, now: Seconds) -> None:
        """The first token's report came in."""
        ...

    def done(self, job: Job, reservation: ReservationId, now: Seconds) -> None:
        """The final report came in."""
        ...

    def lost(self, job: Job, reservation: ReservationId, now: Seconds) -> None:
        """The engine refused or dropped it."""
        ...

    def refused(self, job: Job, reservation: ReservationId, now: Seconds) -> None:
        """The engine could never run it: it is longer than the KV cache."""
        ...

    def seen(self, place: int, life: int, now: Seconds) -> None:
        """An engine was probed and scraped; `life` counts its restarts, 0 means that nobody answered."""
        ...


class CoreDispatcher:
    """The very core that `kinference serve` runs, over a fleet told as discovery and scrapes would tell it."""

    def __init__(
        self, engines: Sequence[LeapingEngine], rules: RoutingRules, admission: AdmissionRules, seed: int
    ) -> None:
        self._engines = engines
        self._fleet = Fleet()
        self._addresses = [Address(f"10.0.{place // 250}.{place % 250}:8000") for place in range(len(engines))]
        self._places = {address: place for place, address in enumerate(self._addresses)}
        self._fleet.set_pool(
            POOL,
            [
                EndpointSpec(POOL, address, models=(MODEL,), context_tokens=engine.timing.capacity_tokens)
                for address, engine in zip(self._addresses, engines, strict=True)
            ],
        )
        self._router = Router(self._fleet, rules, Random(seed))
        self._admission = Admission(self._router, admission)
        self._chains = Chains(MODEL)
        self._held: dict[int, Job] = {}

    @property
    def holds(self) -> bool:
        return bool(self._held)

    def send(self, job: Job, now: Seconds) -> int | None:
        known = Prompt({MODEL: self._chains.hashes(job.arrival.blocks)})
        admitted = self._admission.admit(_request(job), now, known)
        if isinstance(admitted, Decision):
            return self._place(job, admitted)
        self._held[admitted.number] = job
        return HELD

    def release(self, now: Seconds) -> list[tuple[Job, int | None]]:
        return [
            (job, self._place(job, one.decision))
            for one in self._admission.release(now)
            if (job := self._held.pop(one.waiting.number))
        ]

    def due(self, now: Seconds) -> Seconds | None:
        return self._admission.deadline(now)

    def _place(self, job: Job, decision: Decision) -> int | None:
        job.reservation = decision.reservation
        return self._places[decision.choice.address] if isinstance(decision.choice, EndpointChoice) else None

    def first(self, job: Job, reservation: ReservationId, now: Seconds) -> None:
        if job.first_at is not None:  # else its engine has died since, which was told at once
            self._router.first_token(reservation, (job.first_at - job.sent_at) * 1e3, 200, now)

    def done(self, job: Job, reservation: ReservationId, now: Seconds) -> None:
        asked = job.arrival
        self._router.final_token(reservation, asked.prompt_tokens, asked.output_tokens, job.cached, now)

    def lost(self, job: Job, reservation: ReservationId, now: Seconds) -> None:  # noqa: ARG002 - the protocol's
        self._router.first_token(reservation, 0.0, UNAVAILABLE, now)
        self._router.abort(reservation, AbortReason.UNSPECIFIED, now)

    def refused(self, job: Job, reservation: ReservationId, now: Seconds) -> None:  # noqa: ARG002 - the protocol's
        self._router.first_token(reservation, 0.0, TOO_LONG, now)
        self._router.abort(reservation, AbortReason.UNSPECIFIED, now)

    def seen(self, place: int, life: int, now: Seconds) -> None:
        address, engine = self._addresses[place], self._engines[place]
        self._fleet.set_ready(POOL, address, ready=life > 0)
        if life:
            timing = engine.timing
            self._fleet.observe(
                POOL,
                address,
                Observation(
                    now,
                    len(engine.waiting),
                    engine.running,
                    engine.kv_usage,
                    timing.kv_blocks,
                    timing.block_tokens,
                    started_at=float(life),
                ),
            )


class Clairvoyant:
    """The least harm by what is true: real caches, real queues, real lengths. No policy sees this much.

    It still decides each job when it comes, so it is a measure of what better knowledge is worth, not of every
    schedule there could be.
    """

    def __init__(self, engines: Sequence[LeapingEngine]) -> None:
        self._engines = engines
        self._alive = [True] * len(engines)

    @property
    def holds(self) -> bool:
        return False

    def send(self, job: Job, now: Seconds) -> int | None:
        able = [place for place, is_alive in enumerate(self._alive) if is_alive and self._engines[place].fits(job)]
        return min(able, key=lambda place: self._cost(self._engines[place], job, now)) if able else None

    def release(self, now: Seconds) -> list[tuple[Job, int | None]]:  # noqa: ARG002 - the protocol's
        return []

    def due(self, now: Seconds) -> Seconds | None:  # noqa: ARG002 - the protocol's
        return None

    def first(self, job: Job, reservation: ReservationId, now: Seconds) -> None:
        """It needs no report."""

    def done(self, job: Job, reservation: ReservationId, now: Seconds) -> None:
        """It needs no report."""

    def lost(self, job: Job, reservation: ReservationId, now: Seconds) -> None:
        """It needs no report."""

    def refused(self, job: Job, reservation: ReservationId, now: Seconds) -> None:
        """It needs no report."""

    def seen(self, place: int, life: int, now: Seconds) -> None:  # noqa: ARG002 - the protocol's
        self._alive[place] = life > 0

    def _cost(self, engine: LeapingEngine, job: Job, now: Seconds) -> float:
        timing = engine.timing
        work_s = (job.total - engine.hit_blocks(job) * timing.block_tokens) / timing.prefill_tokens_per_s
        queue_s = engine.prefill_left() / timing.prefill_tokens_per_s
        rest_s = engine.leap.step_s if engine.leap is not None and engine.leap.ends_at > now else 0.0
        beside = engine.running + len(engine.waiting)
        slower_s = 2 * timing.decode_ms_per_sequence / 1e3 * job.arrival.output_tokens
        return rest_s + queue_s + work_s + 0.3 * beside * (work_s + slower_s) + self._slot_wait(engine, job)

    def _slot_wait(self, engine: LeapingEngine, job: Job) -> Seconds:
        """A full cache keeps it out until somebody ends."""
        needed = -(-job.total // engine.timing.block_tokens) - engine.hit_blocks(job)
        waits = sum(-(-one.total // engine.timing.block_tokens) for one in engine.waiting)
        missing = needed + waits - engine.cache.free
        return 0.0 if missing <= 0 else missing * engine.timing.block_tokens / engine.timing.prefill_tokens_per_s


def _request(job: Job) -> Request:
    """The job as a request whose tokens are a byte each; its blocks are hashed apart, each once."""
    asked = job.arrival
    return Request(
        MODEL,
        Api.OPENAI_CHAT,
        (),
        asked.prompt_tokens,
        streaming=True,
        qos=asked.qos,
        tenant=asked.tenant,
        session=asked.session,
    )
