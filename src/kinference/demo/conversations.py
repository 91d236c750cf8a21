"""Pure: the demonstration's traffic, multi-turn chats of a few agents that share their system prompts."""

from dataclasses import dataclass
from random import Random

BYTES_PER_WORD = 8
WORDS = (
    "battery", "carbon", "deliver", "elastic", "factory", "gravity", "harbour", "iceberg", "justice", "kitchen",
    "lantern", "machine", "network", "orchard", "pattern", "quality", "railway", "silicon", "thunder", "utility",
    "village", "weather", "explain", "compare", "measure", "predict",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Workload:
    """Its size. Words are `BYTES_PER_WORD` bytes, about two tokens of the simulated engine."""

    agents: int = 4
    sessions_per_agent: int = 4
    turns: int = 6
    system_words: int = 1_000
    question_words: int = 800
    answer_tokens: int = 12
    think_s: float = 4.0
    """Mean pause of a person between an answer and the next question, in simulated seconds."""

    @property
    def sessions(self) -> int:
        return self.agents * self.sessions_per_agent

    @property
    def requests(self) -> int:
        return self.sessions * self.turns


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation: what it will ask, and how long its person thinks before each question (seconds)."""

    name: str
    system: str
    questions: tuple[str, ...]
    pauses: tuple[float, ...]


def conversations(workload: Workload, rng: Random) -> tuple[Session, ...]:
    """Every session of a workload; the same seed gives the same bytes."""
    systems = [f"You are agent {agent}. " + _text(workload.system_words, rng) for agent in range(workload.agents)]
    sessions = [_session(number, systems, workload, rng) for number in range(workload.sessions)]
    rng.shuffle(sessions)
    return tuple(sessions)


def _session(number: int, systems: list[str], workload: Workload, rng: Random) -> Session:
    first = rng.uniform(0, 3 * workload.think_s)
    later = (rng.expovariate(1 / workload.think_s) for _ in range(workload.turns - 1))
    return Session(
        name=f"session-{number}",
        system=systems[number % len(systems)],
        questions=tuple(_text(workload.question_words, rng) for _ in range(workload.turns)),
        pauses=(first, *later),
    )


def _text(words: int, rng: Random) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(words))
