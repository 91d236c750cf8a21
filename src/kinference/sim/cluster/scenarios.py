"""Fleets and what happens to them, by name."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kinference.ids import Seconds
from kinference.sim.cluster.job import BLOCK_TOKENS
from kinference.sim.cluster.run import Outage
from kinference.sim.timing import Timing

KV_TOKENS = 1 << 20
ENGINE = Timing(kv_blocks=KV_TOKENS // BLOCK_TOKENS, block_tokens=BLOCK_TOKENS)
SLOW_ENGINE = replace(
    ENGINE,
    prefill_tokens_per_s=ENGINE.prefill_tokens_per_s / 2.5,
    decode_ms=2 * ENGINE.decode_ms,
    decode_ms_per_sequence=2 * ENGINE.decode_ms_per_sequence,
    kv_blocks=ENGINE.kv_blocks // 2,
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A kind of fleet. Its numbers are shares: of the engines, and of the time that requests come."""

    help: str
    slow_share: float = 0.0
    gone_from: float = 0.0
    gone_until: float = 0.0

    def engines(self, count: int) -> tuple[Timing, ...]:
        """So many engines, the slow ones last."""
        slow = round(count * self.slow_share)
        return (ENGINE,) * (count - slow) + (SLOW_ENGINE,) * slow

    def outages(self, count: int, lasts_s: Seconds) -> tuple[Outage, ...]:
        """One engine in eight, at least one, is gone for its time."""
        if not self.gone_until:
            return ()
        times = (self.gone_from * lasts_s, self.gone_until * lasts_s)
        return tuple(Outage(place, *times) for place in range(max(1, count // 8)))


SCENARIOS: Mapping[str, Scenario] = {
    "steady": Scenario("equal engines"),
    "mixed_gpus": Scenario("half of the engines have an older GPU", slow_share=0.5),
    "pod_dies": Scenario("an engine in eight dies and comes back cold", gone_from=0.4, gone_until=0.7),
    "pod_joins": Scenario("an engine in eight is added, cold, halfway", gone_until=0.5),
}
