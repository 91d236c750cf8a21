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
from kinference.sim.decoding import DecodeBatch, Sequence
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


@dataclass(slots=True)
class _Step:
    """What the step under way has been given: chunks of prompts, and a token to everybody who decodes."""

    budget: int
    decodes: int
    context_tokens: int
    prompts: list[Sequence]
    prefill_tokens: int = 0

    def add(self, sequence: Sequence, tokens: int) -> None:
        self.prefill_tokens += tokens
        self.budget -= tokens
        sequence.computed += tokens
        self.prompts.append(sequence)


class EngineModel:
    """The engine. Deterministic: the same calls at the same times give the same events."""

    def __init__(self, timing: Timing) -> None:
        self.timing = timing
        self.totals = Totals()
        self.slowdown = 1.0  # steps that begin from now on take this many times as long
        self._cache = KvCache(timing.kv_blocks)
        self._waiting: deque[Sequence] = deque()
        self._prefilling: dict[int, Sequence] = {}
        self._decoding = DecodeBatch(timing.block_tokens)
        self._step = _Step(0, 0, 0, [])
        self._step_ends_at: Seconds | None = None
        self._events: list[Event] = []

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def running(self) -> int:
        return len(self._prefilling) + len(self._decoding)

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
        self._waiting.append(Sequence(request))
        if self._step_ends_at is None:
            self._begin_step(now)

    def abort(self, request_id: int) -> bool:
        """Drop a request wherever it is; False when it is not here any more."""
        running = self._prefilling.pop(request_id, None) or self._decoding.leave(request_id)
        if running is not None:
            self._release(running)
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
        preempted = self.totals.preemptions
        step = self._step = self._schedule_decodes(at)
        self._schedule_prompts(step, at)
        if self.totals.preemptions == preempted:  # while the cache is too small for those inside, nobody is let in
            self._schedule_waiting(step, at)
        if not (step.decodes or step.prompts):
            self._step_ends_at = None
            return
        lasts_s = self.timing.step_s(step.prefill_tokens, step.decodes, step.context_tokens)
        self._step_ends_at = at + lasts_s * self.slowdown

    def _schedule_decodes(self, at: Seconds) -> _Step:
        for sequence in self._decoding.needing():
            while not self._cache.free and sequence.request.id in self._decoding:
                self._preempt_youngest(at)
            if sequence.request.id in self._decoding:
                self._give_blocks(sequence, 1, at)
        decodes, context_tokens = len(self._decoding), self._decoding.context_tokens
        for sequence in self._decoding.step() if decodes else ():
            self._name_blocks(sequence, sequence.named + 1, at)
        return _Step(self.timing.batched_tokens_max - decodes, decodes, context_tokens, [])

    def _schedule_prompts(self, step: _Step, at: Seconds) -> None:
        for request_id, sequence in list(self._prefilling.items()):
            tokens = min(sequence.total - sequence.computed, step.budget)
            if not tokens:
                return
            needed = self._blocks_for(sequence.computed + tokens) - sequence.named - sequence.nameless
            while needed > self._cache.free and request_id in self._prefilling:
                self._preempt_youngest(at)
            if request_id in self._prefilling:
                self._give_chunk(step, sequence, tokens, needed, at)

    def _schedule_waiting(self, step: _Step, at: Seconds) -> None:
        while self._waiting and step.budget and self.running < self.timing.sequences_max:
            sequence = self._waiting[0]
            hit = self._hit_blocks(sequence.request, sequence.total)
            cached = hit * self.timing.block_tokens
            tokens = min(sequence.total - cached, step.budget)
            needed = self._blocks_for(cached + tokens) - hit
            if not self._fits(sequence.request, hit, needed):
                return
            self._waiting.popleft()
            self._admit(sequence, hit, at)
            self._give_chunk(step, sequence, tokens, needed, at)

    def _end_step(self, at: Seconds) -> None:
        step = self._step
        said = list(self._decoding.ids)  # whoever was aborted meanwhile is gone, and nobody has joined
        finished = [sequence.request.id for sequence in self._decoding.ending()]
        for request_id in finished:
            sequence = self._decoding.leave(request_id)
            assert sequence is not None, "who ends was a member"
            self._release(sequence)
        self.totals.generated_tokens += len(said)
        for sequence in step.prompts:
            if sequence.computed < sequence.total or sequence.request.id not in self._prefilling:
                continue  # more of its prompt to come, or aborted meanwhile
            del self._prefilling[sequence.request.id]
            self._end_prompt(sequence, at, said, finished)
        if said:
            self._events.append(NextTokens(at, tuple(said)))
        self._events += [Finished(at, request_id) for request_id in finished]

    def _end_prompt(self, sequence: Sequence, at: Seconds, said: list[int], finished: list[int]) -> None:
        """The prompt is computed, or computed again after a preemption, and with it comes the next token."""
        request = sequence.request
        if not sequence.generated:
            self.totals.prompt_tokens += request.prompt_tokens
        if request.output_tokens:
            if sequence.generated:
                said.append(request.id)
            else:
                self._events.append(FirstToken(at, request.id))
            self.totals.generated_tokens += 1
            sequence.generated += 1
            sequence.total += 1
        if sequence.generated < request.output_tokens:
            self._decoding.join(sequence)
            return
        self._release(sequence)
        finished.append(request.id)

    def _hit_blocks(self, request: SimRequest, tokens: int) -> int:
        """Leading blocks in the cache; the last token is always computed, or there would be nothing to sample from."""
        return self._cache.leading(request.blocks, (tokens - 1) // self.timing.block_tokens)

    def _blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.timing.block_tokens)

    def _fits(self, request: SimRequest, hit: int, needed: int) -> bool:
        free = self._cache.free
        if hit + needed <= free:
            return True
        return needed <= free - self._cache.idle_among(request.blocks[:hit])

    def _admit(self, sequence: Sequence, hit: int, at: Seconds) -> None:
        request = sequence.request
        self._cache.hold(request.blocks[:hit])
        sequence.named = hit
        sequence.computed = hit * self.timing.block_tokens
        self._prefilling[request.id] = sequence
        if not sequence.admitted:
            sequence.admitted = True
            self.totals.prefix_queries += request.prompt_tokens
            self.totals.prefix_hits += sequence.computed
            self._events.append(Admitted(at, request.id, sequence.computed))

    def _give_chunk(self, step: _Step, sequence: Sequence, tokens: int, blocks: int, at: Seconds) -> None:
        self._give_blocks(sequence, blocks, at)
        step.add(sequence, tokens)
        self._name_blocks(sequence, sequence.computed // self.timing.block_tokens, at)

    def _give_blocks(self, sequence: Sequence, count: int, at: Seconds) -> None:
        evicted = self._cache.take(count)
        sequence.nameless += count
        if evicted:
            self._events.append(BlocksRemoved(at, tuple(evicted)))

    def _name_blocks(self, sequence: Sequence, full: int, at: Seconds) -> None:
        """Name the blocks that are full, `full` of them all told, as far as the request has names for them."""
        blocks = sequence.request.blocks[sequence.named : full]
        if not blocks:
            return
        new = self._cache.name(blocks)
        sequence.named += len(blocks)
        sequence.nameless -= len(blocks)
        if new:
            self._events.append(BlocksStored(at, sequence.request.id, sequence.named - new, new))

    def _preempt_youngest(self, at: Seconds) -> None:
        """Whoever was let in last; those still in their prompt came after those who decode."""
        if self._prefilling:
            _, sequence = self._prefilling.popitem()
        else:
            left = self._decoding.leave(self._decoding.youngest())
            assert left is not None, "the youngest is a member"
            sequence = left
        self._release(sequence)
        sequence.computed = 0
        self._waiting.appendleft(sequence)
        self.totals.preemptions += 1
        self._events.append(Preempted(at, sequence.request.id))

    def _release(self, sequence: Sequence) -> None:
        self._cache.release(sequence.request.blocks[: sequence.named], sequence.nameless)
        sequence.named = sequence.nameless = 0
