"""How fast arrivals have to come for a given load on a given fleet."""

from collections import OrderedDict
from collections.abc import Sequence
from itertools import takewhile

from msgspec.structs import replace

from kinference.ids import Seconds
from kinference.sim.cluster.job import BLOCK_TOKENS, Arrival
from kinference.sim.kv_cache import BlockHash
from kinference.sim.timing import Timing


def at_load(arrivals: Sequence[Arrival], engines: Sequence[Timing], load: float) -> list[Arrival]:
    """The same arrivals, sped up or slowed down so that they ask for this share of what the fleet can do.

    What they ask for is the engine time of the work that one cache as large as all engines' together would leave.
    So 1.0 is out of reach of any real policy: there the queues grow for as long as the run lasts.
    """
    asked_s = engine_seconds(arrivals, engines)
    speeds = [timing.prefill_tokens_per_s for timing in engines]
    able = sum(speeds) / max(speeds)
    lasts_s = max(arrivals[-1].at - arrivals[0].at, 1e-9)
    scale = asked_s / (able * load) / lasts_s
    origin = arrivals[0].at
    return [replace(arrival, at=(arrival.at - origin) * scale) for arrival in arrivals]


def engine_seconds(arrivals: Sequence[Arrival], engines: Sequence[Timing]) -> Seconds:
    """Seconds of the fleet's fastest engine, its weights' streaming hidden behind the prompts, as it is under load."""
    timing = max(engines, key=lambda one: one.prefill_tokens_per_s)
    cached = _cached_tokens(arrivals, sum(one.capacity_tokens for one in engines) // BLOCK_TOKENS)
    prefill = sum(arrival.prompt_tokens for arrival in arrivals) - cached
    decode_ms = sum(
        arrival.output_tokens
        * (timing.decode_ms_per_sequence + arrival.prompt_tokens / 1e3 * timing.decode_ms_per_1k_context)
        for arrival in arrivals
    )
    return prefill / timing.prefill_tokens_per_s + decode_ms / 1e3


def _cached_tokens(arrivals: Sequence[Arrival], capacity: int) -> int:
    """What a least-recently-used cache of so many blocks would hit."""
    cache: OrderedDict[BlockHash, None] = OrderedDict()
    cached = 0
    for arrival in arrivals:
        hits = takewhile(cache.__contains__, arrival.blocks)
        cached += sum(1 for _ in hits) * BLOCK_TOKENS
        for block in reversed(arrival.blocks):
            cache[block] = None
            cache.move_to_end(block)
        while len(cache) > capacity:
            cache.popitem(last=False)
    return cached
