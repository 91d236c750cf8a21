"""What the policies of others add up or multiply, as columns: counts and scores without a unit, not milliseconds."""

from dataclasses import dataclass

from kinference.core.cost import Case
from kinference.ids import Milliseconds

ENGINE_BLOCK_TOKENS = 16
NEARLY_FULL = 0.99


@dataclass(frozen=True, slots=True)
class PeakLatency:
    """The peak-sensitive average of the time to first token, times the requests there and this one."""

    name: str = "peak_latency"

    def column(self, case: Case) -> list[Milliseconds]:
        return [one.latency.ms * (1.0 + requests) for one, requests in zip(case.destinations, case.beside, strict=True)]


@dataclass(frozen=True, slots=True)
class WorkTimesBatch:
    """Prompt tokens to compute, ours and those ahead, times the requests there and this one."""

    name: str = "work_times_batch"

    def column(self, case: Case) -> list[Milliseconds]:
        return [
            (ahead + uncached) * (1.0 + requests)
            for ahead, uncached, requests in zip(case.ahead, case.uncached, case.beside, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class PotentialBlocks:
    """Blocks to compute, weighted, plus the blocks of all that would decode there."""

    prefill_weight: float = 1.0
    name: str = "potential_blocks"

    def column(self, case: Case) -> list[Milliseconds]:
        return [
            (self.prefill_weight * (ahead + uncached) + load.resident + uncached + hit) / ENGINE_BLOCK_TOKENS
            for ahead, uncached, hit, load in zip(case.ahead, case.uncached, case.hits, case.loads, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class TokensAndCacheUse:
    """The time that the tokens in flight take at the prompts' rate, and more the fuller the KV cache is."""

    full_ms: Milliseconds = 150.0
    name: str = "tokens_and_kv_use"

    def column(self, case: Case) -> list[Milliseconds]:
        used = [min(load.kv_usage_ratio, NEARLY_FULL) for load in case.loads]
        return [
            slope * max(load.resident, ahead) + self.full_ms * share / (1.0 - share)
            for slope, load, ahead, share in zip(case.slopes, case.loads, case.ahead, used, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class QueueShare:
    """Requests that wait there, scaled so that the longest queue of all is 1 and the shortest 0."""

    weight: float = 1.0
    name: str = "queue"

    def column(self, case: Case) -> list[Milliseconds]:
        queues = [load.prefilling for load in case.loads]
        least, span = min(queues), max(queues) - min(queues)
        return [self.weight * (queue - least) / span if span else 0.0 for queue in queues]


@dataclass(frozen=True, slots=True)
class CacheUse:
    """The share of the KV cache in use, as last scraped."""

    weight: float = 1.0
    name: str = "kv_use"

    def column(self, case: Case) -> list[Milliseconds]:
        return [self.weight * load.kv_usage_ratio for load in case.loads]


@dataclass(frozen=True, slots=True)
class PrefixMiss:
    """The share of the prompt that is not cached."""

    weight: float = 1.0
    name: str = "prefix_miss"

    def column(self, case: Case) -> list[Milliseconds]:
        return [
            self.weight * uncached / (uncached + hit) for uncached, hit in zip(case.uncached, case.hits, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class RecentlyCold:
    """For a prompt that nobody has cached: 0 for who took such a one longest ago, 1 for who took the last."""

    weight: float = 1.0
    name: str = "recently_cold"

    def column(self, case: Case) -> list[Milliseconds]:
        places = len(case.destinations)
        ranks = [0.0] * places
        if not any(case.hits):
            order = sorted(range(places), key=lambda place: case.destinations[place].cold_picked)
            for rank, place in enumerate(order):
                ranks[place] = self.weight * rank / max(1, places - 1)
        return ranks
