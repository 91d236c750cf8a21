"""Keys of `routing.admission`: what happens while every engine is busy."""

from dataclasses import dataclass, field

from kinference.config.keys import about
from kinference.config.values import Count, Duration


@dataclass(frozen=True, slots=True)
class Waits:
    """How long requests of one class wait while every engine is busy."""

    objective: Duration = field(
        metadata=about("Wait that is in order; the shorter, the sooner long prompts go before short ones.")
    )
    wait_max: Duration = field(metadata=about("Longest wait; then the request is refused."))


@dataclass(frozen=True, slots=True)
class Admission:
    """What happens while every engine is busy: requests are held here, where their order can still be chosen."""

    enabled: bool = field(default=True, metadata=about("Whether to hold requests; false: every one is sent at once."))
    start_within: Duration = field(
        default=Duration(0.125), metadata=about("An engine that can begin with a prompt so soon is not busy.")
    )
    waiting_max: Count = field(
        default=Count(4096), metadata=about("Requests held at once; beyond, deferrable ones are refused, then batch.")
    )
    interactive: Waits = field(
        default=Waits(Duration(2.0), Duration(60.0)),
        metadata=about("Waits of class INTERACTIVE; absent: objective and wait_max are 2s and 1m."),
    )
    batch: Waits = field(
        default=Waits(Duration(30.0), Duration(600.0)),
        metadata=about("Waits of class BATCH; absent: objective and wait_max are 30s and 10m."),
    )
    deferrable: Waits = field(
        default=Waits(Duration(300.0), Duration(3600.0)),
        metadata=about("Waits of class DEFERRABLE; absent: objective and wait_max are 5m and 1h."),
    )
