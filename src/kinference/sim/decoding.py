"""The sequences that decode, in lockstep: each step gives every one of them a token.

Nothing is touched token by token. A sequence's counters follow from the step in which it joined, and what will happen
to it (its block is full, it needs another, it is done) is written into a calendar of steps, so that a step costs as
much as what happens in it and not as much as the batch is large.
"""

from collections import defaultdict
from collections.abc import Iterator

from kinference.sim.events import SimRequest


class Sequence:
    """A request in the engine. `total` counts the tokens known so far, `computed` those whose KV is in its blocks.

    While it decodes, the three counters stand as they were when it joined the batch; leaving brings them up to date.
    """

    __slots__ = ("admitted", "computed", "generated", "joined_at", "named", "nameless", "request", "total")

    def __init__(self, request: SimRequest) -> None:
        self.request = request
        self.total = request.prompt_tokens
        self.computed = 0
        self.generated = 0
        self.named = 0
        self.nameless = 0
        self.joined_at = 0
        self.admitted = False


class _Calendar:
    """Sequences by the step at which something happens to them; entries of those who left meanwhile are void."""

    def __init__(self) -> None:
        self._entries: defaultdict[int, list[tuple[Sequence, int]]] = defaultdict(list)

    def enter(self, step: int, sequence: Sequence) -> None:
        self._entries[step].append((sequence, sequence.joined_at))

    def due(self, step: int, members: dict[int, Sequence]) -> Iterator[Sequence]:
        """Who is due at this step, and still a member when its turn comes."""
        for sequence, joined_at in self._entries.pop(step, ()):
            if sequence.joined_at == joined_at and sequence.request.id in members:
                yield sequence


class DecodeBatch:
    """Who decodes. The caller gives and names blocks; this says when."""

    def __init__(self, block_tokens: int) -> None:
        self._block_tokens = block_tokens
        self._step = 0
        self._members: dict[int, Sequence] = {}
        self._needs, self._fills, self._ends = _Calendar(), _Calendar(), _Calendar()
        self.context_tokens = 0
        """Tokens in the KV cache of all members together."""

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, request_id: int) -> bool:
        return request_id in self._members

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(self._members)

    def join(self, sequence: Sequence) -> None:
        """From the next step on it decodes; its last token is known and not yet computed."""
        assert sequence.total == sequence.computed + 1, "who joins has one token to compute"
        sequence.joined_at = self._step
        self._members[sequence.request.id] = sequence
        self.context_tokens += sequence.computed
        to_fill = -sequence.computed % self._block_tokens
        if to_fill == 0:
            self._needs.enter(self._step + 1, sequence)
        else:
            self._fills.enter(self._step + to_fill, sequence)
        self._ends.enter(self._step + sequence.request.output_tokens - sequence.generated, sequence)

    def leave(self, request_id: int) -> Sequence | None:
        """Take a sequence out; None when it is not here."""
        sequence = self._members.pop(request_id, None)
        if sequence is None:
            return None
        tokens = self._step - sequence.joined_at
        sequence.computed += tokens
        sequence.generated += tokens
        sequence.total += tokens
        self.context_tokens -= sequence.computed
        return sequence

    def youngest(self) -> int:
        """The id of the member that joined last."""
        return next(reversed(self._members))

    def needing(self) -> Iterator[Sequence]:
        """Before a step: who needs another block for it. Members may leave while this is read."""
        step = self._step + 1
        for sequence in self._needs.due(step, self._members):
            yield sequence
            if sequence.request.id in self._members:
                self._fills.enter(step + self._block_tokens - 1, sequence)

    def step(self) -> list[Sequence]:
        """Every member computes a token; returns whose block is full now."""
        self._step += 1
        self.context_tokens += len(self._members)
        full = list(self._fills.due(self._step, self._members))
        for sequence in full:
            self._needs.enter(self._step + 1, sequence)
        return full

    def ending(self) -> list[Sequence]:
        """After a step: who has said all."""
        return list(self._ends.due(self._step, self._members))
