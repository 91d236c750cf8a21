"""The engine of `sim/model.py` at a coarser grain: the same schedule and timing, in leaps over steps that are alike.

While nothing changes but that every running sequence gets its token, or the prompt at the head takes all the budget of
each step, steps are taken many at once. What a fleet's simulation needs to know falls on the ends of leaps: first
tokens, last tokens, and how long the steps between took.
"""

import heapq
from collections import deque
from dataclasses import dataclass, field
from itertools import count
from math import ceil

from kinference.ids import Seconds
from kinference.sim.cluster.gaps import Gaps
from kinference.sim.cluster.job import Job
from kinference.sim.kv_cache import KvCache
from kinference.sim.timing import Timing


@dataclass(slots=True)
class Leap:
    """Steps that are alike: so many of them, so long each, and what each gives to whom."""

    began_at: Seconds
    steps: int
    step_s: Seconds
    decodes: int
    chunks: list[tuple[Job, int]]

    @property
    def ends_at(self) -> Seconds:
        """When the last of its steps ends."""
        return self.began_at + self.steps * self.step_s


@dataclass(slots=True)
class Happened:
    """What the end of a leap brought."""

    first: list[Job] = field(default_factory=list)
    finished: list[Job] = field(default_factory=list)


class LeapingEngine:
    """One engine, told the time; `submit` at any moment, `end_leap` when `ends_at` has come."""

    def __init__(self, timing: Timing, gaps: Gaps) -> None:
        self.timing = timing
        self._gaps = gaps
        self.cache = KvCache(timing.kv_blocks)
        self.waiting: deque[Job] = deque()
        self.prefilling: list[Job] = []
        self.decoding: dict[int, Job] = {}
        self._calendar: list[tuple[int, int, Job]] = []
        """The step at which each decoding job ends or needs another block; entries of those who left are void."""
        self._order = count()
        self._step = 0
        self.context_tokens = 0
        self.leap: Leap | None = None
        self._times_slower = 1.0

    @property
    def ends_at(self) -> Seconds | None:
        """When the leap under way ends; None while idle."""
        return self.leap.ends_at if self.leap is not None else None

    @property
    def running(self) -> int:
        """Sequences in the batch."""
        return len(self.prefilling) + len(self.decoding)

    @property
    def kv_usage(self) -> float:
        """The share of the KV cache that requests hold."""
        return self.cache.used / self.cache.capacity

    def prefill_left(self) -> int:
        """Prompt tokens still to compute here, those that wait counted with what they would hit now."""
        return sum(job.total - job.computed for job in self.prefilling) + sum(
            job.total - self.hit_blocks(job) * self.timing.block_tokens for job in self.waiting
        )

    def hit_blocks(self, job: Job) -> int:
        """Leading blocks in the cache; the last token is always computed."""
        return self.cache.leading(job.arrival.blocks, (job.total - 1) // self.timing.block_tokens)

    def fits(self, job: Job) -> bool:
        """True when it could ever run here."""
        return job.arrival.prompt_tokens + job.arrival.output_tokens <= self.timing.capacity_tokens

    def submit(self, job: Job, now: Seconds) -> bool:
        """Queue a job. True when `ends_at` has changed by it."""
        self.waiting.append(job)
        leap = self.leap
        if leap is None:
            self._begin(now)
            return True
        if leap.chunks or len(self.waiting) > 1:
            return False  # there is no budget left for it in these steps, or somebody is blocked before it
        steps = max(1, ceil((now - leap.began_at) / leap.step_s))
        if steps >= leap.steps:
            return False
        leap.steps = steps
        return True

    def change_pace(self, times_slower: float, now: Seconds) -> None:
        """Each step takes so many times as long from now on, the rest of the leap under way too: `ends_at` changes."""
        leap, ratio = self.leap, times_slower / self._times_slower
        if leap is not None:
            leap.began_at = now - (now - leap.began_at) * ratio
            leap.step_s *= ratio
        self._times_slower = times_slower

    def fail(self) -> list[Job]:
        """The engine dies; returns everything that was in it."""
        lost = [*self.decoding.values(), *self.prefilling, *self.waiting]
        for job in lost:
            job.restart()
        self.waiting.clear()
        self.prefilling.clear()
        self.decoding.clear()
        self._calendar.clear()
        self.cache, self.leap, self.context_tokens = KvCache(self.timing.kv_blocks), None, 0
        return lost

    def end_leap(self) -> Happened:
        """Take what the leap brought, and begin the next one."""
        leap, happened = self.leap, Happened()
        assert leap is not None, "only a leap that began ends"
        now = leap.ends_at
        self._step += leap.steps
        if leap.decodes:
            self.context_tokens += leap.decodes * leap.steps
            self._gaps.add(leap.step_s, leap.decodes * leap.steps)
        for job, _ in leap.chunks:
            if job.computed == job.total:
                self.prefilling.remove(job)
                self._end_prompt(job, now, happened)
        if self._calendar and self._calendar[0][0] <= self._step:
            self._end_decodes(now, happened)
        self._begin(now)
        return happened

    def _end_prompt(self, job: Job, now: Seconds, happened: Happened) -> None:
        if not job.generated:
            job.first_at = now
            happened.first.append(job)
        job.generated += 1
        job.total += 1
        if job.generated >= job.arrival.output_tokens:
            self._finish(job, now, happened)
            return
        self.decoding[id(job)] = job
        job.joined_step = self._step
        job.ends_at_step = self._step + job.arrival.output_tokens - job.generated
        self.context_tokens += job.computed
        self._enter(job, self._room(job))

    def _room(self, job: Job) -> int:
        """Tokens that its blocks still take."""
        return (job.named + job.nameless) * self.timing.block_tokens - job.computed

    def _enter(self, job: Job, room: int) -> None:
        """Note when it ends, or runs out of room before."""
        job.due_step = min(job.ends_at_step, self._step + room)
        heapq.heappush(self._calendar, (job.due_step, next(self._order), job))

    def _due(self) -> list[Job]:
        """Who ends or needs a block at this step."""
        due = []
        while self._calendar and self._calendar[0][0] <= self._step:
            step, _, job = heapq.heappop(self._calendar)
            if id(job) in self.decoding and job.due_step == step:
                due.append(job)
        return due

    def _end_decodes(self, now: Seconds, happened: Happened) -> None:
        for job in self._due():
            if id(job) not in self.decoding:
                continue  # preempted for one before it
            if self._step >= job.ends_at_step:
                self._leave(job)
                self._finish(job, now, happened)
                continue
            while not self.cache.free and id(job) in self.decoding:
                self._preempt_youngest()
            if id(job) in self.decoding:
                self.cache.take(1)
                job.nameless += 1
                self._enter(job, self.timing.block_tokens)

    def _finish(self, job: Job, now: Seconds, happened: Happened) -> None:
        self._release(job)
        job.finished_at = now
        happened.finished.append(job)

    def _leave(self, job: Job) -> None:
        """Out of the batch, its counters brought up to date."""
        del self.decoding[id(job)]
        tokens = self._step - job.joined_step
        job.generated += tokens
        job.computed += tokens
        job.total += tokens
        self.context_tokens -= job.computed

    def _preempt_youngest(self) -> None:
        if self.prefilling:
            job = self.prefilling.pop()
        else:
            job = self.decoding[next(reversed(self.decoding))]
            self._leave(job)
        self._release(job)
        job.computed = 0
        self.waiting.appendleft(job)

    def _release(self, job: Job) -> None:
        self.cache.release(job.arrival.blocks[: job.named], job.nameless)
        job.named = job.nameless = 0

    def _begin(self, at: Seconds) -> None:
        decodes = len(self.decoding)
        budget = self.timing.batched_tokens_max - decodes
        chunks: list[tuple[Job, int]] = []
        for job in self.prefilling:
            budget -= self._chunk(job, budget, chunks)
        while self.waiting and budget and self.running < self.timing.sequences_max:
            taken = self._admit(self.waiting[0], budget, chunks)
            if not taken:
                break
            budget -= taken
        if not (decodes or chunks):
            self.leap = None
            return
        steps, prefill = self._steps(chunks, budget), 0
        for job, tokens in chunks:
            job.computed += tokens * steps
            prefill += tokens
            self._name(job)
        context = self.context_tokens + decodes * (steps - 1) / 2
        step_s = self.timing.step_s(prefill, decodes, int(context)) * self._times_slower
        self.leap = Leap(at, steps, step_s, decodes, chunks)

    def _steps(self, chunks: list[tuple[Job, int]], budget: int) -> int:
        """How many steps will be like this one."""
        steps = self._calendar[0][0] - self._step if self._calendar else 1 << 30
        if chunks:
            job, tokens = chunks[0]
            alone = len(chunks) == 1 and not budget
            steps = min(steps, (job.total - job.computed) // tokens) if alone else 1
        return max(1, steps)

    def _chunk(self, job: Job, budget: int, chunks: list[tuple[Job, int]]) -> int:
        tokens = min(job.total - job.computed, budget)
        if tokens:
            chunks.append((job, tokens))
        return tokens

    def _admit(self, job: Job, budget: int, chunks: list[tuple[Job, int]]) -> int:
        """Let it in with blocks for all its prompt. Returns the tokens it got, 0 when there is no room."""
        block_tokens, blocks = self.timing.block_tokens, job.arrival.blocks
        hit = self.hit_blocks(job)
        needed = -(-job.total // block_tokens) - hit
        free = self.cache.free
        if hit + needed > free and needed > free - self.cache.idle_among(blocks[:hit]):
            return 0
        self.waiting.popleft()
        self.cache.hold(blocks[:hit])
        self.cache.take(needed)
        job.named, job.nameless, job.computed = hit, needed, hit * block_tokens
        if not job.generated:
            job.cached = job.computed
        self.prefilling.append(job)
        return self._chunk(job, budget, chunks)

    def _name(self, job: Job) -> None:
        """Name the blocks that are full now, as far as the prompt has names for them."""
        full = job.computed // self.timing.block_tokens
        if full > job.named and (blocks := job.arrival.blocks[job.named : full]):
            self.cache.name(blocks)
            job.named += len(blocks)
            job.nameless -= len(blocks)
