"""Workloads and fleets drawn from wide ranges by a number, so that a policy can be judged by what nobody has chosen."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, count
from math import exp, log
from random import Random

from msgspec.structs import replace as with_fields

from kinference.ids import Seconds
from kinference.sim.cluster.demand import at_load, engine_seconds
from kinference.sim.cluster.job import BLOCK_TOKENS, Arrival
from kinference.sim.cluster.run import FleetOptions, Outage, Slowness
from kinference.sim.timing import Timing
from kinference.sim.workloads.sessions import ANSWER_S_PER_TOKEN
from kinference.sim.workloads.text import Text, about

CONTEXT_MAX = 48_000
"""The longest prompt; every engine's KV cache takes some of them."""
HANGS = 1e6
"""Times slower: nothing is computed in the time."""
PROMPT_S = 0.005
"""How late reports are where they are not late."""
REQUESTS, REQUESTS_PER_ENGINE = 1_200, 60


@dataclass(frozen=True, slots=True)
class Stream:
    """Requests of one kind: what they share, how sessions go on, how long prompts and answers are."""

    name: str
    share: float
    heads: int
    """Shared beginnings at a time."""
    head_tokens: int
    popularity: float
    """Zipf's exponent: 0 is alike."""
    sessions_per_head: float
    """After so many a head is gone and a new one in its place; 0: never."""
    turns: int
    first_tokens: int
    turn_tokens: int
    output_tokens: int
    spread: float
    pause_s: Seconds


@dataclass(frozen=True, slots=True)
class Drawn:
    """One workload and the fleet it runs on."""

    number: int
    streams: tuple[Stream, ...]
    burst_times: float
    """So many times as many come while a burst lasts."""
    burst_every_s: Seconds
    engines: tuple[Timing, ...]
    load: float
    report_delay_s: Seconds
    scrape_every_s: Seconds
    fault: str
    fault_share: float
    """Of the run's time."""
    times_slower: float

    @property
    def requests(self) -> int:
        """How many come."""
        return REQUESTS + REQUESTS_PER_ENGINE * len(self.engines)

    def __str__(self) -> str:
        kinds = len(set(self.engines))
        parts = [
            " + ".join(map(_told, self.streams)),
            f"bursts {self.burst_times:.0f}x" if self.burst_times > 1.0 else "",
            f"{len(self.engines)} engines" + (f" of {kinds} kinds" if kinds > 1 else ""),
            f"reports {self.report_delay_s * 1e3:.0f} ms late" if self.report_delay_s > PROMPT_S else "",
            f"one {self.fault}" if self.fault else "",
        ]
        return f"{self.number}: {', '.join(filter(None, parts))}, {self.load:.0%}"

    def arrivals(self) -> list[Arrival]:
        """Its requests, as fast as the load asks for."""
        first = self._come(1.5 * len(self.engines))
        speeds = [timing.prefill_tokens_per_s for timing in self.engines]
        able = sum(speeds) / max(speeds)
        rate = len(first) * able * self.load / engine_seconds(first, self.engines)
        return at_load(self._come(rate), self.engines, self.load)

    def fleet(self, policy: str, lasts_s: Seconds) -> FleetOptions:
        """The fleet under a policy, with what happens to it while requests come for so long."""
        options = FleetOptions(
            self.engines, policy, self.number, scrape_every_s=self.scrape_every_s, report_delay_s=self.report_delay_s
        )
        begins_at, ends_at = 0.35 * lasts_s, (0.35 + self.fault_share) * lasts_s
        if self.fault == "dead":
            return replace(options, outages=(Outage(0, begins_at, ends_at),))
        if self.fault:
            return replace(options, slownesses=(Slowness(0, begins_at, ends_at, self.times_slower),))
        return options

    def _come(self, rate: float) -> list[Arrival]:
        rng, names, arrivals = Random(self.number), count(1), list[Arrival]()
        for stream in self.streams:
            wanted = round(self.requests * stream.share)
            arrivals += _sessions(rng, stream, wanted, rate * stream.share, names)
        arrivals.sort(key=lambda arrival: arrival.at)
        return self._in_bursts(arrivals) if self.burst_times > 1.0 else arrivals

    def _in_bursts(self, arrivals: list[Arrival]) -> list[Arrival]:
        """The same requests in the same order, those of each period as unevenly as bursts are."""
        return [with_fields(arrival, at=self._when(arrival.at)) for arrival in arrivals]

    def _when(self, at: Seconds) -> Seconds:
        """A burst lasts a fifth of each period, and so many times as many come in it as in as much of the rest."""
        periods, rest_s = divmod(at, self.burst_every_s)
        part, burst = rest_s / self.burst_every_s, 0.2 * self.burst_times / (0.2 * self.burst_times + 0.8)
        within = 0.2 * part / burst if part < burst else 0.2 + 0.8 * (part - burst) / (1.0 - burst)
        return (periods + within) * self.burst_every_s


def draw(number: int) -> Drawn:
    """The workload and fleet of this number."""
    rng = Random(number)
    shares = [rng.random() + 0.2 for _ in range(rng.choice((1, 1, 2, 3)))]
    streams = tuple(_stream(rng, f"kind-{place}", share / sum(shares)) for place, share in enumerate(shares))
    is_bursty, is_late = _chance(rng, 0.4), _chance(rng, 0.3)
    fault = rng.choice(("", "", "", "slow", "hung", "dead"))
    return Drawn(
        number,
        streams,
        burst_times=_between(rng, 2.0, 10.0) if is_bursty else 1.0,
        burst_every_s=_between(rng, 5.0, 90.0),
        engines=_engines(rng),
        load=rng.uniform(0.4, 1.4),
        report_delay_s=_between(rng, 0.02, 0.8) if is_late else PROMPT_S,
        scrape_every_s=_between(rng, 0.3, 10.0),
        fault=fault,
        fault_share=rng.uniform(0.05, 0.15) if fault == "hung" else rng.uniform(0.1, 0.4),
        times_slower=HANGS if fault == "hung" else _between(rng, 2.0, 20.0),
    )


def _stream(rng: Random, name: str, share: float) -> Stream:
    is_single, comes_and_goes = _chance(rng, 0.4), _chance(rng, 0.35)
    return Stream(
        name,
        share,
        heads=round(_between(rng, 1.0, 400.0)),
        head_tokens=round(_between(rng, 60.0, 16_000.0)),
        popularity=rng.uniform(0.0, 1.3),
        sessions_per_head=_between(rng, 3.0, 100.0) if comes_and_goes else 0.0,
        turns=1 if is_single else round(_between(rng, 2.0, 25.0)),
        first_tokens=round(_between(rng, 30.0, 9_000.0)),
        turn_tokens=round(_between(rng, 40.0, 3_000.0)),
        output_tokens=round(_between(rng, 10.0, 700.0)),
        spread=rng.uniform(0.2, 1.2),
        pause_s=_between(rng, 0.5, 60.0),
    )


def _engines(rng: Random) -> tuple[Timing, ...]:
    """From 2 to 24 of one, two or three kinds."""
    number = round(_between(rng, 2.0, 24.0))
    kinds = [
        Timing(
            prefill_tokens_per_s=_between(rng, 5_000.0, 40_000.0),
            decode_ms=_between(rng, 5.0, 25.0),
            decode_ms_per_sequence=_between(rng, 0.05, 0.25),
            batched_tokens_max=rng.choice((1_024, 2_048, 4_096, 8_192)),
            sequences_max=rng.choice((64, 128, 256, 512)),
            kv_blocks=round(_between(rng, 150_000.0, 2_000_000.0)) // BLOCK_TOKENS,
            block_tokens=BLOCK_TOKENS,
        )
    ]
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
        times = _between(rng, 0.3, 1.0)
        kinds.append(
            replace(
                kinds[0],
                prefill_tokens_per_s=kinds[0].prefill_tokens_per_s * times,
                decode_ms=kinds[0].decode_ms / times,
                decode_ms_per_sequence=kinds[0].decode_ms_per_sequence / times,
            )
        )
    return tuple(kinds[place % len(kinds)] for place in range(number))


def _sessions(rng: Random, stream: Stream, wanted: int, rate: float, names: Iterator[int]) -> list[Arrival]:
    """Sessions that begin at random; those of before it all begins are under way then."""
    until = list(accumulate((place + 1) ** -stream.popularity for place in range(stream.heads)))
    new_head = partial(_head, rng, stream, names)
    heads = [new_head() for _ in until]
    lasts_s = stream.turns * (stream.pause_s + stream.output_tokens * ANSWER_S_PER_TOKEN)
    at, ends_at, arrivals = -min(lasts_s, 1e3), wanted / rate, list[Arrival]()
    while at < ends_at:
        place = rng.choices(range(stream.heads), cum_weights=until)[0]
        if stream.sessions_per_head and rng.random() * stream.sessions_per_head < 1.0:
            heads[place] = new_head()
        arrivals += _turns(rng, at, stream, heads[place], names)
        at += rng.expovariate(rate / stream.turns)
    arrivals.sort(key=lambda arrival: arrival.at)
    return [arrival for arrival in arrivals if arrival.at <= ends_at][: 2 * wanted]


def _head(rng: Random, stream: Stream, names: Iterator[int]) -> Text:
    return Text().then(about(rng, stream.head_tokens, 0.4, CONTEXT_MAX // 2), names)


def _turns(rng: Random, at: Seconds, stream: Stream, head: Text, names: Iterator[int]) -> Iterator[Arrival]:
    session, text = f"{stream.name}-{rng.getrandbits(48):012x}", head
    added = about(rng, stream.first_tokens, stream.spread, CONTEXT_MAX // 2)
    for _ in range(about(rng, stream.turns) if stream.turns > 1 else 1):
        text = text.then(added, names)
        if text.tokens > CONTEXT_MAX:
            return
        output = about(rng, stream.output_tokens, stream.spread, 4_000)
        if at >= 0.0:
            yield Arrival(at, text.tokens, output, text.blocks, tenant=stream.name, session=session)
        at += stream.pause_s * rng.lognormvariate(0.0, 0.6) + output * ANSWER_S_PER_TOKEN
        added = output + about(rng, stream.turn_tokens, stream.spread, CONTEXT_MAX // 2)


def _chance(rng: Random, share: float) -> bool:
    return rng.random() < share


def _between(rng: Random, least: float, most: float) -> float:
    """As likely to be near one end as near the other, by ratio."""
    return exp(rng.uniform(log(least), log(most)))


def _told(stream: Stream) -> str:
    goes = f", each for {stream.sessions_per_head:.0f} sessions" if stream.sessions_per_head else ""
    return (
        f"{stream.heads} heads of {stream.head_tokens:,}{goes}, {stream.turns} turns of "
        f"{stream.first_tokens:,}+{stream.turn_tokens:,}, answers of {stream.output_tokens}"
    )
