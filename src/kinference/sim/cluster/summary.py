"""What a run says about a policy: delays, pace, hits, balance, fairness."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from kinference.ids import Milliseconds, Seconds
from kinference.sim.cluster.job import Job
from kinference.sim.cluster.run import Played
from kinference.sim.timing import Timing

WARM_UP = 0.1
"""This share of the arrivals, the first ones, only warms the caches and is not counted."""
GOOD_TTFT_S = 2.0
GOOD_PROMPT_TOKENS_PER_S = 8_000.0
GOOD_GAP_MS = 60.0
CURVE_STEPS = 20


@dataclass(frozen=True, slots=True)
class Summary:
    """One run in numbers. Slow-down: the time to first token over that of the same prompt on an idle, cold engine."""

    requests: int
    failed: int
    ttft_s_mean: Seconds
    ttft_s_p50: Seconds
    ttft_s_p90: Seconds
    ttft_s_p99: Seconds
    slowdown_p50: float
    slowdown_p90: float
    slowdown_p99: float
    gap_ms_p50: Milliseconds
    gap_ms_p99: Milliseconds
    goodput: float
    """Share with a first token within 2 s and a second for each 8,000 tokens of prompt, and then 60 ms a token."""
    hit_rate: float
    """Share of the prompt tokens."""
    imbalance: float
    """Work of the busiest engine over the mean; 1 is even."""
    fairness: float
    """Jain's index of the tenants' mean slow-downs; 1 is even."""
    ttft_s_curve: tuple[Seconds, ...]
    """At every twentieth of the requests, from the quickest to the slowest."""
    work: tuple[float, ...]
    """Each engine's share of the work."""
    tenants: dict[str, float]
    """Each tenant's mean slow-down."""


def summarize(played: Played, engines: Sequence[Timing]) -> Summary:
    """The numbers of a run."""
    counted = played.jobs[int(len(played.jobs) * WARM_UP) :]
    served = [job for job in counted if job.finished_at is not None and job.first_at is not None]
    ttfts = sorted(map(ttft_s, served))
    slow = slowdowns(served, engines)
    work, tenants = _work(served, engines), _tenants(served, slow)
    slow.sort()
    return Summary(
        requests=len(counted),
        failed=len(counted) - len(served),
        ttft_s_mean=fmean(ttfts) if ttfts else 0.0,
        ttft_s_p50=percentile(ttfts, 0.5),
        ttft_s_p90=percentile(ttfts, 0.9),
        ttft_s_p99=percentile(ttfts, 0.99),
        slowdown_p50=percentile(slow, 0.5),
        slowdown_p90=percentile(slow, 0.9),
        slowdown_p99=percentile(slow, 0.99),
        gap_ms_p50=played.gaps.percentile_ms(0.5),
        gap_ms_p99=played.gaps.percentile_ms(0.99),
        goodput=sum(map(is_good, served)) / max(1, len(counted)),
        hit_rate=sum(job.cached for job in served) / max(1, sum(job.arrival.prompt_tokens for job in served)),
        imbalance=max(work) * len(work),
        fairness=_evenness(list(tenants.values())),
        ttft_s_curve=tuple(percentile(ttfts, step / CURVE_STEPS) for step in range(CURVE_STEPS + 1)),
        work=work,
        tenants=tenants,
    )


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value that this share of them does not exceed; 0 without any."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def ttft_s(job: Job) -> Seconds:
    """From its arrival to its first token."""
    assert job.first_at is not None
    return job.first_at - job.arrival.at


def is_good(job: Job) -> bool:
    """True when both its first token and the rest came in time."""
    assert job.first_at is not None
    assert job.finished_at is not None
    asked = job.arrival
    gap_ms = (job.finished_at - job.first_at) * 1e3 / max(1, asked.output_tokens - 1)
    return ttft_s(job) <= GOOD_TTFT_S + asked.prompt_tokens / GOOD_PROMPT_TOKENS_PER_S and gap_ms <= GOOD_GAP_MS


def _work(served: Sequence[Job], engines: Sequence[Timing]) -> tuple[float, ...]:
    work_s = [0.0] * len(engines)
    for job in served:
        computed = job.arrival.prompt_tokens - job.cached + job.arrival.output_tokens
        work_s[job.engine] += computed / engines[job.engine].prefill_tokens_per_s
    total = sum(work_s) or 1.0
    return tuple(one / total for one in work_s)


def slowdowns(served: Sequence[Job], engines: Sequence[Timing]) -> list[float]:
    """By how much longer the first token of each took than it had to on the fastest engine."""
    kinds = [(one.prefill_tokens_per_s, one.decode_ms / 1e3) for one in dict.fromkeys(engines)]
    return [
        ttft_s(job) / min([max(job.arrival.prompt_tokens / speed, least_s) for speed, least_s in kinds])
        for job in served
    ]


def _tenants(served: Sequence[Job], slow: Sequence[float]) -> dict[str, float]:
    tenants: defaultdict[str, list[float]] = defaultdict(list)
    for job, slowdown in zip(served, slow, strict=True):
        tenants[job.arrival.tenant].append(slowdown)
    return {tenant: fmean(values) for tenant, values in sorted(tenants.items())}


def _evenness(values: Sequence[float]) -> float:
    """Jain's index."""
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values)) if values else 1.0
