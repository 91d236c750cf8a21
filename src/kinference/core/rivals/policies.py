"""The policies of others by their names, each with the source of its rule and its published defaults."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kinference.core.choose import Cheapest, Chooser, LesserOfTwo
from kinference.core.cost import Base, CostTerm, Prefill, QueueWait
from kinference.core.rivals.choosers import (
    BoundedRing,
    ExploitOrExplore,
    HotOrCold,
    MatchAmongUnloaded,
    MatchUnlessImbalanced,
    MatchUnlessShort,
    MostFree,
    SameForSession,
    StickyUntilSaturated,
)
from kinference.core.rivals.terms import (
    CacheUse,
    PeakLatency,
    PotentialBlocks,
    PrefixMiss,
    QueueShare,
    RecentlyCold,
    TokensAndCacheUse,
    WorkTimesBatch,
)
from kinference.core.scoring import Policy, Scoring


def _ruled(chooser: Chooser, *terms: CostTerm) -> Scoring:
    """All classes alike, and no guard of ours: it would not be theirs any more."""
    return Scoring(terms, terms, chooser, guards=False)


@dataclass(frozen=True, slots=True)
class PeakEwma:
    """The lesser of two by peak-sensitive latency times requests in flight (Finagle and linkerd2-proxy: decay 10 s)."""

    def scoring(self) -> Scoring:
        terms = (PeakLatency(),)
        return Scoring(terms, terms, LesserOfTwo(), by_prefix=False, guards=False)


@dataclass(frozen=True, slots=True)
class BoundedHash:
    """Consistent hashing of the prompt's head with bounded loads (Mirrokni et al. 2016; KubeAI's PrefixHash: 1.25)."""

    factor: float = field(default=1.25, metadata={"help": "the bound on a load, over the mean"})

    def scoring(self) -> Scoring:
        return _ruled(BoundedRing(self.factor))


@dataclass(frozen=True, slots=True)
class SglangCacheAware:
    """Longest match over a threshold, shortest queue while they are uneven (docs of SGLang's model gateway)."""

    match_ratio: float = field(default=0.3, metadata={"help": "share of the prompt that has to match"})
    absolute: float = field(default=64.0, metadata={"help": "uneven: the longest queue is longer by more than this"})
    relative: float = field(default=1.5, metadata={"help": "and more than this times the shortest"})

    def scoring(self) -> Scoring:
        return _ruled(MatchUnlessImbalanced(self.match_ratio, self.absolute, self.relative))


@dataclass(frozen=True, slots=True)
class Aibrix:
    """Best match among those not far over the mean, least requests while uneven (AIBrix's prefix-cache: 8, 1)."""

    absolute: float = field(default=8.0, metadata={"help": "uneven: requests between the most and the least loaded"})
    deviations: float = field(default=1.0, metadata={"help": "how many standard deviations over the mean may match"})

    def scoring(self) -> Scoring:
        return _ruled(MatchAmongUnloaded(self.absolute, self.deviations))


@dataclass(frozen=True, slots=True)
class LlmdWeighted:
    """2 x queue + 2 x KV use + 3 x prefix, each scaled to 1 (llm-d's scheduling profile)."""

    queue: float = field(default=2.0, metadata={"help": "weight of the queue scorer"})
    kv: float = field(default=2.0, metadata={"help": "weight of the KV-cache scorer"})
    prefix: float = field(default=3.0, metadata={"help": "weight of the prefix scorer"})

    def scoring(self) -> Scoring:
        return _ruled(Cheapest(), QueueShare(self.queue), CacheUse(self.kv), PrefixMiss(self.prefix))


@dataclass(frozen=True, slots=True)
class NoHitLru:
    """llm-d's weighted sum, prompts that nobody has cached to who took one longest ago (its no-hit-lru-scorer)."""

    cold: float = field(default=2.0, metadata={"help": "weight of the no-hit scorer"})

    def scoring(self) -> Scoring:
        return _ruled(Cheapest(), QueueShare(2.0), CacheUse(2.0), PrefixMiss(3.0), RecentlyCold(self.cold))


@dataclass(frozen=True, slots=True)
class LlmdSticky:
    """Warm destinations until their queue is too long, then least tokens to compute (llm-d, August 2026: 0.8, 14 s)."""

    match_ratio: float = field(default=0.8, metadata={"help": "share of the prompt that makes a destination warm"})
    patience_s: float = field(default=14.0, metadata={"help": "seconds of prompts ahead, over the least, to stay for"})

    def scoring(self) -> Scoring:
        return _ruled(StickyUntilSaturated(self.match_ratio, self.patience_s))


@dataclass(frozen=True, slots=True)
class LMetric:
    """argmin (prompt tokens to compute) x (batch size) (LMetric, arXiv 2603.15202; it has no parameter)."""

    def scoring(self) -> Scoring:
        return _ruled(Cheapest(), WorkTimesBatch())


@dataclass(frozen=True, slots=True)
class Dynamo:
    """argmin weight x prefill blocks + decode blocks (NVIDIA Dynamo's KV router: weight 1, temperature 0)."""

    overlap_weight: float = field(default=1.0, metadata={"help": "what a block to compute counts"})

    def scoring(self) -> Scoring:
        return _ruled(Cheapest(), PotentialBlocks(self.overlap_weight))


@dataclass(frozen=True, slots=True)
class Preble:
    """Exploit a match that is most of the prompt, else explore by cost (Preble's E2, arXiv 2407.00023).

    Its window of three minutes of past work is here the work under way, which the ledger knows exactly.
    """

    imbalance: float = field(default=2.0, metadata={"help": "a holder loaded over this many times the least is left"})

    def scoring(self) -> Scoring:
        return _ruled(ExploitOrExplore(self.imbalance), QueueWait(), Prefill())


@dataclass(frozen=True, slots=True)
class Mooncake:
    """argmin of the expected time to first token, queue and prefill (Mooncake's Conductor, FAST'25; no transfers)."""

    def scoring(self) -> Scoring:
        return _ruled(Cheapest(), Base(), QueueWait(), Prefill())


@dataclass(frozen=True, slots=True)
class Session:
    """One destination for each session, by hashing; least requests without one (production-stack's session router)."""

    def scoring(self) -> Scoring:
        return Scoring((), (), SameForSession(), by_prefix=False, guards=False)


@dataclass(frozen=True, slots=True)
class Prequal:
    """The least latency among those not hot by requests in flight (Prequal, NSDI'24, its hot-cold rule: 0.84).

    Probes tell the latency at the present load: here that is what is learned and what is ahead.
    """

    quantile: float = field(default=0.84, metadata={"help": "hot: more requests than this share of all have"})

    def scoring(self) -> Scoring:
        terms = (Base(), QueueWait())
        return Scoring(terms, terms, HotOrCold(self.quantile), by_prefix=False, guards=False)


@dataclass(frozen=True, slots=True)
class LeastLoad:
    """Tokens in flight over throughput, plus 0.15 k/(1 - k) s for KV use k (SGLang's model gateway: least load).

    The throughput is the learned one, where the original has 2,000 tokens a second until it is told.
    """

    full_ms: float = field(default=150.0, metadata={"help": "what a half full KV cache counts"})

    def scoring(self) -> Scoring:
        terms = (TokensAndCacheUse(self.full_ms),)
        return Scoring(terms, terms, Cheapest(), by_prefix=False, guards=False)


@dataclass(frozen=True, slots=True)
class KvAware:
    """The longest match unless over 2,000 tokens are missing, else least requests (vLLM production-stack: kvaware)."""

    missing: float = field(default=2_000.0, metadata={"help": "tokens to compute, up to which the match counts"})

    def scoring(self) -> Scoring:
        return _ruled(MatchUnlessShort(self.missing))


@dataclass(frozen=True, slots=True)
class Llumnix:
    """The most free KV cache for each request there, those that wait taken off (Llumnix, OSDI'24; no migration)."""

    def scoring(self) -> Scoring:
        return Scoring((), (), MostFree(), by_prefix=False, guards=False)


RIVALS: Mapping[str, Callable[..., Policy]] = {
    "session": Session,
    "peak_ewma": PeakEwma,
    "prequal": Prequal,
    "least_load": LeastLoad,
    "llumnix": Llumnix,
    "kv_aware": KvAware,
    "bounded_hash": BoundedHash,
    "sglang_cache_aware": SglangCacheAware,
    "aibrix": Aibrix,
    "llmd_weighted": LlmdWeighted,
    "llmd_sticky": LlmdSticky,
    "no_hit_lru": NoHitLru,
    "lmetric": LMetric,
    "dynamo": Dynamo,
    "preble": Preble,
    "mooncake": Mooncake,
}
