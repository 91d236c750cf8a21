"""Fleets and what happens to them, by name."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from kinference.ids import Seconds
from kinference.sim.cluster.job import BLOCK_TOKENS
from kinference.sim.cluster.run import FleetOptions, Outage, Slowness
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


HANGS: Final = 1e6
"""So many times as slow is an engine that does not answer."""


class Trouble(Enum):
    """What becomes of an engine in eight for a while."""

    GONE = auto()
    HANGS = auto()
    """It accepts and does not answer, and goes on then."""
    UNTOLD = auto()
    """Its metrics hang, and it does not."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A kind of fleet. Its numbers are shares: of the engines, and of the time that requests come."""

    help: str
    slow_share: float = 0.0
    trouble: Trouble | None = None
    trouble_from: float = 0.4
    trouble_until: float = 0.7

    def engines(self, count: int) -> tuple[Timing, ...]:
        """So many engines, the slow ones last."""
        slow = round(count * self.slow_share)
        return (ENGINE,) * (count - slow) + (SLOW_ENGINE,) * slow

    def fleet(self, count: int, lasts_s: Seconds, policy: str, seed: int) -> FleetOptions:
        """So many engines under a policy, one in eight of them, at least one, in trouble for its time."""
        begins_at, ends_at = self.trouble_from * lasts_s, self.trouble_until * lasts_s
        troubled = [Outage(place, begins_at, ends_at) for place in range(max(1, count // 8))]
        hung = [Slowness(one.engine, begins_at, ends_at, HANGS) for one in troubled]
        return FleetOptions(
            self.engines(count),
            policy,
            seed,
            outages=tuple(troubled) if self.trouble is Trouble.GONE else (),
            slownesses=tuple(hung) if self.trouble is Trouble.HANGS else (),
            untold=tuple(troubled) if self.trouble is Trouble.UNTOLD else (),
        )


SCENARIOS: Mapping[str, Scenario] = {
    "steady": Scenario("equal engines"),
    "mixed_gpus": Scenario("half of the engines have an older GPU", slow_share=0.5),
    "pod_dies": Scenario("an engine in eight dies and comes back cold", trouble=Trouble.GONE),
    "pod_joins": Scenario("an engine in eight is added, cold, halfway", 0.0, Trouble.GONE, 0.0, 0.5),
    "pod_hangs": Scenario("an engine in eight accepts and does not answer for a while", 0.0, Trouble.HANGS, 0.4, 0.5),
    "metrics_hang": Scenario("the metrics of an engine in eight hang for a while", trouble=Trouble.UNTOLD),
}
