"""What the suite is told of the server under test: where it is, what it limits, and which names it knows."""

import ssl
from collections.abc import Callable
from dataclasses import dataclass, replace

from kinference.ids import Seconds

MIB = 1024 * 1024
LOADED_BYTES_MAX = 64 * MIB
"""More than this is not pushed to find a limit."""
WAITED_MAX: Seconds = 10.0
"""A timer of the server that takes longer is not waited for."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of the server, as its operator set them. The defaults are kinference's own."""

    body_max: int = 32 * MIB
    buffer_max: int = 1024 * MIB
    chunk_max: int = MIB
    push_idle: Seconds = 30.0
    body_ttl: Seconds = 120.0


@dataclass(frozen=True, slots=True)
class Names:
    """What the server serves, and whom. A case that needs a name which is "" is skipped."""

    model: str = ""
    tenant: str = "conformance"
    """May use the model."""
    rejected_tenant: str = ""
    """May not."""
    empty_tenant: bool | None = None
    """Whether the tenant "" may use the model; None when nobody said."""
    provider_model: str = ""
    """A model that a provider serves, known to the suite as not to be dispatched to."""
    pool: str = ""
    """NAMESPACE/NAME of a pool that serves the model."""


@dataclass(frozen=True, slots=True)
class Security:
    """How to connect."""

    tls: bool = False
    ca: bytes | None = None
    certificate: bytes | None = None
    key: bytes | None = None
    ssl_context: ssl.SSLContext | None = None
    """The same for connections that the suite frames itself."""
    token: str = ""
    """Sent as a bearer token with each call."""


@dataclass(frozen=True, slots=True)
class Target:
    """The server under test."""

    host: str
    port: int
    limits: Limits = Limits()
    names: Names = Names()
    security: Security = Security()

    def with_token(self, token: str) -> "Target":
        """The same, shown another token; none where it is ""."""
        return replace(self, security=replace(self.security, token=token))

    @property
    def address(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Need:
    """What a case asks of a target. `text` says it as a flag, for whoever wonders why it was skipped."""

    text: str
    is_met: Callable[[Target], bool]


TOKEN = Need("--token-file", lambda target: bool(target.security.token))
MODEL = Need("--model", lambda target: bool(target.names.model))
PROVIDER_MODEL = Need("--provider-model", lambda target: bool(target.names.provider_model))
POOL = Need("--pool", lambda target: bool(target.names.pool))
REJECTED_TENANT = Need("--rejected-tenant", lambda target: bool(target.names.rejected_tenant))
EMPTY_TENANT = Need("--empty-tenant", lambda target: target.names.empty_tenant is not None)
SMALL_BODY = Need("--body-max of 64MiB or less", lambda target: target.limits.body_max <= LOADED_BYTES_MAX)
SMALL_BUFFER = Need("--buffer-max of 64MiB or less", lambda target: target.limits.buffer_max <= LOADED_BYTES_MAX)
LARGE_BODY = Need("--body-max of 16MiB or more", lambda target: target.limits.body_max >= 16 * MIB)
SHORT_IDLE = Need("--push-idle under 10s", lambda target: target.limits.push_idle < WAITED_MAX)
SHORT_TTL = Need("--body-ttl under 10s", lambda target: target.limits.body_ttl < WAITED_MAX)
PATIENT = Need("--body-ttl and --push-idle of 5s or more", lambda target: _shortest_timer(target) >= WAITED_MAX / 2)


def missing(needs: tuple[Need, ...], target: Target) -> str:
    """What a target lacks, "" for nothing."""
    return " and ".join(need.text for need in needs if not need.is_met(target))


def _shortest_timer(target: Target) -> Seconds:
    return min(target.limits.body_ttl, target.limits.push_idle)
