"""What the gateway is given: the outside behind ports, and its limits."""

from dataclasses import dataclass, field

from kinference.gateway.auth import ClientKey
from kinference.gateway.backends import Directory
from kinference.gateway.departure import Departure
from kinference.gateway.engine_gaps import EngineGaps
from kinference.gateway.held_body import BodyLimits
from kinference.ids import Seconds
from kinference.observe.metrics import Metrics
from kinference.ports import Clock, Picker, Upstream, UpstreamTimeouts
from kinference.vocabulary import Loss
from kinference.wire.strangers import OwnNames


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """Who may come in, how much they may bring and how long things may take."""

    keys: tuple[ClientKey, ...] = ()
    allow_unauthenticated: bool = True
    own_names: OwnNames | None = None
    """Ours, where only this machine reaches us: web pages from elsewhere need a key then. None: none does."""
    body_bytes_max: int = 32 * 1024 * 1024
    upload_idle: Seconds = 30.0
    """How long a client's upload may stand still."""
    attempts_max: int = 3
    """Destinations tried for one request, as long as the client has had no byte of an answer."""
    keep_alive: Seconds = 15.0
    """How long a stream may be silent before the client is told that it is still alive."""
    loss: Loss = Loss.WARN
    """What becomes of a request that a translation would take something from."""
    timeouts: UpstreamTimeouts = field(default_factory=UpstreamTimeouts)

    @property
    def body_limits(self) -> BodyLimits:
        return BodyLimits(self.body_bytes_max, self.upload_idle)


@dataclass(frozen=True, slots=True)
class Outside:
    """Everything that the gateway talks to."""

    picker: Picker
    upstream: Upstream
    clock: Clock
    metrics: Metrics
    directory: Directory
    gaps: EngineGaps = field(default_factory=EngineGaps)
    """What was learned of the engines on the way."""
    departure: Departure = field(default_factory=Departure)
    """When this process ends."""
