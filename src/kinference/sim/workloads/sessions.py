"""Sessions: each request's prompt is the last one with its answer and something more."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from random import Random

from kinference.sim.cluster.job import Arrival
from kinference.sim.workloads.text import Text, about

HEADS = 6
ANSWER_S_PER_TOKEN = 0.02
"""A turn is taken after the last one was answered."""


@dataclass(frozen=True, slots=True)
class Habits:
    """How sessions of one kind go on; lengths and pauses are typical ones."""

    tenant: str
    head_tokens: int
    """Shared by all sessions of one application."""
    turns: int
    first_tokens: int
    turn_tokens: int
    output_tokens: int
    pause_s: float
    context_max: int = 48_000


CHATS = Habits("chats", 900, turns=6, first_tokens=600, turn_tokens=250, output_tokens=350, pause_s=25.0)
AGENTS = Habits("agents", 6_000, turns=20, first_tokens=1_500, turn_tokens=1_200, output_tokens=150, pause_s=3.0)
PASTED = Habits("pasted", 500, turns=3, first_tokens=14_000, turn_tokens=300, output_tokens=450, pause_s=40.0)


def chats(rng: Random, requests: int, rate: float) -> list[Arrival]:
    """People who talk: short turns, pauses to read and think."""
    return _sessions(rng, requests, rate, CHATS, count(1))


def agents(rng: Random, requests: int, rate: float) -> list[Arrival]:
    """Agents: a long shared head of tools, tool results appended call after call, hardly a pause."""
    return _sessions(rng, requests, rate, AGENTS, count(1))


def tenants(rng: Random, requests: int, rate: float) -> list[Arrival]:
    """Three tenants on one fleet: chats, agents, and people who paste whole documents."""
    names, mixed = count(1), []
    for habits, share in ((CHATS, 0.5), (AGENTS, 0.35), (PASTED, 0.15)):
        mixed += _sessions(rng, int(requests * share), rate * share, habits, names)
    return sorted(mixed, key=lambda arrival: arrival.at)


def _sessions(rng: Random, requests: int, rate: float, habits: Habits, names: Iterator[int]) -> list[Arrival]:
    """Sessions that begin at random all through the time; those of before it are under way when it begins."""
    heads = [Text().then(about(rng, habits.head_tokens, 0.3), names) for _ in range(HEADS)]
    arrivals: list[Arrival] = []
    begins_at, ends_at = -habits.turns * habits.pause_s, 1.5 * requests / rate
    while begins_at < ends_at:
        arrivals += _turns(rng, begins_at, habits, rng.choice(heads), names)
        begins_at += rng.expovariate(rate / habits.turns)
    arrivals.sort(key=lambda arrival: arrival.at)
    return arrivals[:requests]


def _turns(rng: Random, at: float, habits: Habits, head: Text, names: Iterator[int]) -> Iterator[Arrival]:
    """One session's turns, those before time begins left out."""
    session, text = f"{habits.tenant}-{rng.getrandbits(48):012x}", head
    added = about(rng, habits.first_tokens)
    for _ in range(about(rng, habits.turns)):
        text = text.then(added, names)
        if text.tokens > habits.context_max:
            return
        output = about(rng, habits.output_tokens)
        if at >= 0.0:
            yield Arrival(at, text.tokens, output, text.blocks, tenant=habits.tenant, session=session)
        at += habits.pause_s * rng.lognormvariate(0.0, 0.6) + output * ANSWER_S_PER_TOKEN
        added = output + about(rng, habits.turn_tokens)
