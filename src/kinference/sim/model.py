"""One engine as a pure, time-told model: continuous batching, chunked prefill, prefix cache, preemption.

The engine works in steps. When a step begins, the scheduler hands out its token budget: first to the sequences that
run (one token to each that decodes, a chunk to each still in its prompt), then, first come first served, to those
that wait. Blocks are taken, named and evicted at that moment; tokens come out when the step ends. If a running
sequence finds no block, the youngest one is preempted: it loses its blocks and goes to the head of the queue.

Nothing here reads a clock. `submit` and `abort` are told the time, `next_event_at` says when something will happen,
`advance` lets it happen; call `advance(now)` before `submit(..., now)`.
"""

from collections import deque
from dataclasses import dataclass

from kinference.ids import Seconds
from kinference.sim.events import (
    Admitted,
    BlocksRemoved,
    BlocksStored,
    Event,
    Finished,
    FirstToken,
    NextTokens,
    Preempted,
    SimRequest,
)
from kinference.sim.kv_cache import KvCache
from kinference.sim.timing import Timing


@dataclass(slots=True)
class Totals:
    """Counters since the start, as the engine's metrics page has them."""

    prompt_tokens: int = 0
    generated_tokens: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    preemptions: int = 0


class _Sequence:
    """A request in the engine. `total` counts the tokens known so far, `computed` those whose KV is in its blocks."""

    __slots__ = ("admitted", "computed", "generated", "named", "nameless", "request", "total")

    def __init__(self, request: SimRequest) -> None:
        self.request = request
        self.total = request.prompt_tokens
        self.computed = 0
        self.generated = 0
        self.named = 0
        self.nameless = 0
        self.admitted = False


@dataclass(slots=True)
class _Step:
    """What one step has been given so far."""

    at: Seconds
    budget: int
    work: list[_Sequence]
    prefill_tokens: int = 0
    decodes: int = 0
    context_tokens: int = 0

    def add(self, sequence: _Sequence, tokens: int) -> None:
        if sequence.total - sequence.computed == 1 and sequence.generated:
            self.decodes += 1
            self.context_tokens += sequence.computed
        else:
            self.prefill_tokens += tokens
        self.budget -= tokens
        sequence.computed += tokens
        self.work.append(sequence)


class EngineModel:
    """The engine. Deterministic: the same calls at the same times give the same events."""

    def __init__(self, timing: Timing) -> None:
        self.timing = timing
        self.totals = Totals()
        self.slowdown = 1.0  # steps that begin from now on take this many times as long
        self._cache = KvCache(timing.kv_blocks)
        self._waiting: deque[_Sequence] = deque()
        self._running: dict[int, _Sequence] = {}
        self._step: list[_Sequence] = []
        self._step_ends_at: Seconds | None = None
        self._events: list[Event] = []

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def kv_usage(self) -> float:
        """The share of the KV cache that requests hold, 0 to 1; blocks kept for later hits do not count."""
        return self._cache.used / self._cache.capacity

    def cached_tokens(self, request: SimRequest) -> int:
        """Tokens of this prompt that would be hit if it were admitted now."""
        return self._hit_blocks(request, request.prompt_tokens) * self.timing.block_tokens

    def submit(self, request: SimRequest, now: Seconds) -> None:
        """Queue a request; an idle engine begins at once."""
        tokens = request.prompt_tokens + request.output_tokens
        assert tokens <= self.timing.capacity_tokens, "the caller refuses what can never fit"
        self._waiting.append(_Sequence(request))
        if self._step_ends_at is None:
            self._begin_step(now)

    def abort(self, request_id: int) -> bool:
        """Drop a request wherever it is; False when it is not here any more."""
        sequence = self._running.pop(request_id, None)
        if sequence is not None:
            self._release(sequence)
            return True
        for sequence in self._waiting:
            if sequence.request.id == request_id:
                self._waiting.remove(sequence)
                return True
        return False

    def reset_prefix_cache(self) -> bool:
        """Forget all that is cached; refused while a request holds blocks."""
        return self._cache.reset()

    def next_event_at(self) -> Seconds | None:
        """When the step under way ends; None while idle."""
        return self._step_ends_at

    def advance(self, now: Seconds) -> list[Event]:
        """Everything that has happened up to `now`, in order."""
        while self._step_ends_at is not None and self._step_ends_at <= now:
            ended_at = self._step_ends_at
            self._end_step(ended_at)
            self._begin_step(ended_at)
        events, self._events = self._events, []
        return events

    def _begin_step(self, at: Seconds) -> None:
        step = _Step(at, self.timing.batched_tokens_max, [])
        if self._schedule_running(step):
            self._schedule_waiting(step)
        self._step = step.work
        if not step.work:
            self._step_ends_at = None
            return
        lasts_s = self.timing.step_s(step.prefill_tokens, step.decodes, step.context_tokens)
        self._step_ends_at = at + lasts_s * self.slowdown

    def _schedule_running(self, step: _Step) -> bool:
        """False when somebody had to be preempted, so that nobody new is let in during this step."""
        calm = True
        for sequence in list(self._running.values()):
            if not step.budget:
                break
            if sequence.request.id not in self._running:
                continue  # preempted a moment ago
            tokens = min(sequence.total - sequence.computed, step.budget)
            needed = self._blocks_needed(sequence, tokens)
            while needed > self._cache.free and sequence.request.id in self._running:
                self._preempt_youngest(step.at)
                calm = False
            if sequence.request.id in self._running:
                self._give_blocks(sequence, needed, step.at)
                step.add(sequence, tokens)
                self._name_full_blocks(sequence, step.at)
        return calm

    def _schedule_waiting(self, step: _Step) -> None:
        while self._waiting and step.budget and len(self._running) < self.timing.sequences_max:
            sequence = self._waiting[0]
            hit = self._hit_blocks(sequence.request, sequence.total)
            cached = hit * self.timing.block_tokens
            tokens = min(sequence.total - cached, step.budget)
            needed = self._blocks_needed(sequence, cached + tokens) - hit
            if not self._fits(sequence.request, hit, needed):
                return
            self._waiting.popleft()
            self._admit(sequence, hit, step.at)
            self._give_blocks(sequence, needed, step.at)
            step.add(sequence, tokens)
            self._name_full_blocks(sequence, step.at)

    def _end_step(self, at: Seconds) -> None:
        first: list[int] = []
        more: list[int] = []
        finished: list[_Sequence] = []
        for sequence in self._step:
            request = sequence.request
            if sequence.computed < sequence.total or request.id not in self._running:
                continue  # still in its prompt, or aborted meanwhile
            if not sequence.generated:
                self.totals.prompt_tokens += request.prompt_tokens
            if sequence.generated < request.output_tokens:
                sequence.generated += 1
                sequence.total += 1
                (more if sequence.generated > 1 else first).append(request.id)
            if sequence.generated == request.output_tokens:
                finished.append(sequence)
        self.totals.generated_tokens += len(first) + len(more)
        self._events += [FirstToken(at, request_id) for request_id in first]
        if more:
            self._events.append(NextTokens(at, tuple(more)))
        for sequence in finished:
            del self._running[sequence.request.id]
            self._release(sequence)
            self._events.append(Finished(at, sequence.request.id))

    def _hit_blocks(self, request: SimRequest, tokens: int) -> int:
        """Leading blocks in the cache; the last token is always computed, or there would be nothing to sample from."""
        return self._cache.leading(request.blocks, (tokens - 1) // self.timing.block_tokens)

    def _blocks_needed(self, sequence: _Sequence, tokens: int) -> int:
        """Blocks to add before `tokens` more can be computed."""
        held = sequence.named + sequence.nameless
        return -(-(sequence.computed + tokens) // self.timing.block_tokens) - held

    def _fits(self, request: SimRequest, hit: int, needed: int) -> bool:
        free = self._cache.free
        if hit + needed <= free:
            return True
        return needed <= free - self._cache.idle_among(request.blocks[:hit])

    def _admit(self, sequence: _Sequence, hit: int, at: Seconds) -> None:
        request = sequence.request
        for block in request.blocks[:hit]:
            self._cache.hold(block)
        sequence.named = hit
        sequence.computed = hit * self.timing.block_tokens
        self._running[request.id] = sequence
        if not sequence.admitted:
            sequence.admitted = True
            self.totals.prefix_queries += request.prompt_tokens
            self.totals.prefix_hits += sequence.computed
            self._events.append(Admitted(at, request.id, sequence.computed))

    def _give_blocks(self, sequence: _Sequence, count: int, at: Seconds) -> None:
        if count <= 0:
            return
        evicted = self._cache.take(count)
        sequence.nameless += count
        if evicted:
            self._events.append(BlocksRemoved(at, tuple(evicted)))

    def _name_full_blocks(self, sequence: _Sequence, at: Seconds) -> None:
        blocks = sequence.request.blocks
        full = min(sequence.computed // self.timing.block_tokens, len(blocks))
        if full <= sequence.named:
            return
        new = sum(1 for block in blocks[sequence.named : full] if self._cache.name(block))
        sequence.nameless -= full - sequence.named
        sequence.named = full
        if new:  # twins come first: whoever brought a block here brought all before it
            self._events.append(BlocksStored(at, sequence.request.id, full - new, new))

    def _preempt_youngest(self, at: Seconds) -> None:
        _, sequence = self._running.popitem()
        self._release(sequence)
        sequence.computed = 0
        self._waiting.appendleft(sequence)
        self.totals.preemptions += 1
        self._events.append(Preempted(at, sequence.request.id))

    def _release(self, sequence: _Sequence) -> None:
        self._cache.release(sequence.request.blocks[: sequence.named], sequence.nameless)
        sequence.named = sequence.nameless = 0
