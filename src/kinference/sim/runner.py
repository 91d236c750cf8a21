"""Runs the model in real time, sped up: one driver task, and a queue of tokens for each request under way."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import count

from kinference.ids import Seconds
from kinference.ports import Clock
from kinference.sim.events import Admitted, Event, Finished, FirstToken, NextTokens, SimRequest
from kinference.sim.kv_cache import BlockHash
from kinference.sim.metrics import EngineMetrics
from kinference.sim.model import EngineModel
from kinference.sim.text import token_count


@dataclass(frozen=True, slots=True)
class Job:
    """What one request asks of the engine; `output` is what will be said, as tokens, known beforehand."""

    prompt: bytes
    output: bytes
    blocks: tuple[BlockHash, ...]
    salt: str = ""
    finish_reason: str = "length"


@dataclass(slots=True)
class _Life:
    """A job under way. `ready` counts tokens made and not yet handed out."""

    job: Job
    request: SimRequest
    submitted_at: Seconds
    first_token_at: Seconds = 0.0
    cached_tokens: int = 0
    ready: int = 0
    last_token_at: Seconds = 0.0
    is_finished: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class Progress:
    """So many more tokens than before; the last one of a request has `is_last`."""

    tokens: int
    cached_tokens: int
    is_last: bool


@dataclass(frozen=True, slots=True)
class Lived:
    """One request that was answered to its end, by the engine's own clock: simulated seconds since its start."""

    request: SimRequest
    submitted_at: Seconds
    first_token_at: Seconds
    finished_at: Seconds
    cached_tokens: int


LIVED_MAX = 10_000

Observer = Callable[[Sequence[Event], Callable[[int], Job]], None]
"""Told of every batch of events, with a way to look up the job behind a request's id."""


class Runner:
    """The engine in real time. `drive()` has to run, in a task of the caller's, for anything to come out."""

    def __init__(self, model: EngineModel, clock: Clock, speed: float, metrics: EngineMetrics) -> None:
        self.model = model
        self._clock, self._speed, self._metrics = clock, speed, metrics
        self._origin = clock.now()
        self._ids = count(1)
        self._lives: dict[int, _Life] = {}
        self._submitted = asyncio.Event()
        self._observers: list[Observer] = []
        self.lived: deque[Lived] = deque(maxlen=LIVED_MAX)
        """The last requests that were answered."""

    def observe(self, observer: Observer) -> None:
        """Tell somebody of every event from now on."""
        self._observers.append(observer)

    def now(self) -> Seconds:
        """Simulated seconds since the start."""
        return (self._clock.now() - self._origin) * self._speed

    async def drive(self) -> None:
        """Let the model's time pass with the clock's. Ends by being cancelled."""
        while True:
            at = self.model.next_event_at()
            if at is None:
                self._submitted.clear()
                await self._submitted.wait()
                continue
            await asyncio.sleep(max(0.0, (at - self.now()) / self._speed))
            self._catch_up(self.now())

    async def run(self, job: Job) -> AsyncGenerator[Progress, None]:
        """Have a job done; whoever stops listening before its end aborts it."""
        now = self.now()
        self._catch_up(now)
        request = SimRequest(next(self._ids), token_count(job.prompt), token_count(job.output), job.blocks)
        life = self._lives[request.id] = _Life(job, request, now)
        self.model.submit(request, life.submitted_at)
        self._submitted.set()
        try:
            while True:
                await life.changed.wait()
                life.changed.clear()
                tokens, life.ready = life.ready, 0
                is_last = life.is_finished
                if tokens or is_last:
                    yield Progress(tokens, life.cached_tokens, is_last)
                if is_last:
                    return
        finally:
            if not life.is_finished:
                self._abort(request.id, life)

    def _abort(self, request_id: int, life: _Life) -> None:
        self._catch_up(self.now())
        self.model.abort(request_id)
        self._lives.pop(request_id, None)
        if not life.is_finished:
            self._metrics.finished("abort")

    def _catch_up(self, now: Seconds) -> None:
        events = self.model.advance(now)
        if not events:
            return
        for observer in self._observers:
            observer(events, self._job)
        for event in events:
            self._deliver(event)

    def _job(self, request_id: int) -> Job:
        return self._lives[request_id].job

    def _deliver(self, event: Event) -> None:
        match event:
            case Admitted(at, request_id, cached_tokens):
                life = self._lives[request_id]
                life.cached_tokens = cached_tokens
                self._metrics.waited((at - life.submitted_at) / self._speed)
            case FirstToken(at, request_id):
                life = self._lives[request_id]
                life.first_token_at = at
                self._metrics.first_token((at - life.submitted_at) / self._speed)
                self._token(life, at)
            case NextTokens(at, request_ids):
                for request_id in request_ids:
                    life = self._lives[request_id]
                    self._metrics.next_token((at - life.last_token_at) / self._speed)
                    self._token(life, at)
            case Finished(at, request_id):
                life = self._lives.pop(request_id)
                life.is_finished = True
                life.changed.set()
                self.lived.append(Lived(life.request, life.submitted_at, life.first_token_at, at, life.cached_tokens))
                self._metrics.finished(life.job.finish_reason)
                self._metrics.lasted((at - life.submitted_at) / self._speed)
            case _:
                pass

    def _token(self, life: _Life, at: Seconds) -> None:
        life.ready += 1
        life.last_token_at = at
        life.changed.set()


async def run_to_end(runner: Runner, job: Job) -> int:
    """Have a job done and wait for all of it; returns how many prompt tokens were cached."""
    cached_tokens = 0
    async with aclosing(runner.run(job)) as steps:
        async for progress in steps:
            cached_tokens = progress.cached_tokens
    return cached_tokens
