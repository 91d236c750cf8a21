"""Pure: what the demonstration counts, per endpoint and in all."""

from dataclasses import dataclass, field

import msgspec


class Answer(msgspec.Struct, frozen=True):
    """One answered request as its client saw it; the traffic process prints one a line, as JSON."""

    endpoint: str
    ttft_ms: float
    prompt_tokens: int
    cached_tokens: int
    error: str = ""


@dataclass(slots=True)
class Tally:
    """Counts of one endpoint, or of a whole run."""

    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    ttfts_ms: list[float] = field(default_factory=list)

    def add(self, answer: Answer) -> None:
        """Count one good answer."""
        self.requests += 1
        self.prompt_tokens += answer.prompt_tokens
        self.cached_tokens += answer.cached_tokens
        self.ttfts_ms.append(answer.ttft_ms)

    @property
    def hit_rate(self) -> float:
        """Share of prompt tokens that the engine had in its prefix cache."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    def ttft_ms(self, quantile: float) -> float:
        """A quantile of time to first token, by nearest rank; 0 before the first answer."""
        if not self.ttfts_ms:
            return 0.0
        ordered = sorted(self.ttfts_ms)
        return ordered[min(len(ordered) - 1, int(quantile * len(ordered)))]

    @property
    def ttft_ms_mean(self) -> float:
        return sum(self.ttfts_ms) / len(self.ttfts_ms) if self.ttfts_ms else 0.0


@dataclass(slots=True)
class Scoreboard:
    """One run under one policy."""

    policy: str
    requests: int
    endpoints: dict[str, Tally] = field(default_factory=dict)
    total: Tally = field(default_factory=Tally)
    errors: list[str] = field(default_factory=list)

    def add(self, answer: Answer) -> None:
        """Count one answer, good or bad."""
        if answer.error:
            self.errors.append(answer.error)
            return
        self.total.add(answer)
        self.endpoints.setdefault(answer.endpoint, Tally()).add(answer)

    @property
    def done(self) -> int:
        return self.total.requests + len(self.errors)
