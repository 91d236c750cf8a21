"""Single requests that share the heads of their prompts: system prompts, documents, and bursts of them."""

from collections.abc import Iterator, Sequence
from itertools import count
from random import Random

from kinference.sim.cluster.job import Arrival
from kinference.sim.workloads.text import Popularity, Text, about

PROMPTS = 24
DOCUMENTS = 400
BURST_EVERY_S = 60.0
BURST_S = 6.0
BURST_SHARE = 0.5


def system_prompts(rng: Random, requests: int, rate: float) -> list[Arrival]:
    """A few long system prompts, some far more used than others, each followed by a short question."""
    names = count(1)
    heads = [Text().then(about(rng, 4_000), names) for _ in range(PROMPTS)]
    times = _poisson(rng, rate)
    popularity = Popularity(len(heads))
    return [_asked(rng, next(times), heads, popularity, names) for _ in range(requests)]


def documents(rng: Random, requests: int, rate: float) -> list[Arrival]:
    """Retrieval: one system prompt, then one of many long documents, then a question."""
    names = count(1)
    system = Text().then(1_100, names)
    heads = [system.then(about(rng, 9_000), names) for _ in range(DOCUMENTS)]
    times = _poisson(rng, rate)
    popularity = Popularity(len(heads))
    return [_asked(rng, next(times), heads, popularity, names) for _ in range(requests)]


def bursts(rng: Random, requests: int, rate: float) -> list[Arrival]:
    """As system prompts, but half of all requests come within the same tenth of the time."""
    names = count(1)
    heads = [Text().then(about(rng, 4_000), names) for _ in range(PROMPTS)]
    lasts_s = requests / rate
    times = sorted(_bursty(rng, lasts_s) for _ in range(requests))
    popularity = Popularity(len(heads))
    return [_asked(rng, at, heads, popularity, names) for at in times]


def _asked(rng: Random, at: float, heads: Sequence[Text], popularity: Popularity, names: Iterator[int]) -> Arrival:
    which = popularity.draw(rng)
    text = heads[which].then(about(rng, 300), names)
    return Arrival(at, text.tokens, about(rng, 200), text.blocks, tenant=f"tenant-{which % 4}")


def _poisson(rng: Random, rate: float) -> Iterator[float]:
    at = 0.0
    while True:
        yield at
        at += rng.expovariate(rate)


def _bursty(rng: Random, lasts_s: float) -> float:
    if rng.random() >= BURST_SHARE:
        return rng.random() * lasts_s
    bursts_in_all = max(1, int(lasts_s / BURST_EVERY_S))
    return min(lasts_s, rng.randrange(bursts_in_all) * BURST_EVERY_S + rng.random() * BURST_S)
