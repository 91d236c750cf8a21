"""What a simulated engine is told when it starts."""

from dataclasses import dataclass, field

from kinference.sim.faults import Fault
from kinference.sim.timing import Timing


@dataclass(frozen=True, slots=True)
class KvEventOptions:
    """Where KV events go; ZMQ endpoints, "" for none. A `*` in place of the port picks a free one."""

    endpoint: str = ""
    replay_endpoint: str = ""
    topic: str = ""
    positional: bool = False
    """Events as arrays, as engines before mid-2026 published them, instead of maps."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """One simulated engine. `models[0]` is its model, the others are further names for it."""

    models: tuple[str, ...]
    host: str = "127.0.0.1"
    port: int = 0
    timing: Timing = field(default_factory=Timing)
    speed: float = 1.0
    output_tokens: int = 128
    context_tokens_max: int = 131_072
    seed: int = 0
    kv_events: KvEventOptions = field(default_factory=KvEventOptions)
    fault: Fault | None = None

    def __post_init__(self) -> None:
        if not self.models or not all(self.models):
            raise ValueError("an engine needs a model name")
        if self.speed <= 0:
            raise ValueError("speed has to be greater than 0")
        if self.output_tokens <= 0:
            raise ValueError("output_tokens has to be greater than 0")

    @property
    def model_tokens_max(self) -> int:
        """The longest request, prompt and output together; a small KV cache bounds it further."""
        return min(self.context_tokens_max, self.timing.capacity_tokens)
