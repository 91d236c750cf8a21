"""The rules of routing as they are written: which model name means which targets, and who may use what."""

from dataclasses import dataclass, field
from enum import Enum

from kinference.core.limits import Limits
from kinference.ids import ObjectRef
from kinference.vocabulary import QosClass


class TargetKind(Enum):
    POOL = "pool"
    BACKEND = "backend"


@dataclass(frozen=True, slots=True)
class Target:
    """Where a model name may go. `model` is the name to ask for there, "" for the client's own."""

    kind: TargetKind
    ref: ObjectRef
    model: str = ""
    weight: int = 1
    priority: int = 0
    """Lower goes first; a higher number is a fallback for when none of the lower can serve."""


@dataclass(frozen=True, slots=True)
class ModelRule:
    """A line of the routing table: an exact model name or a glob, and its targets."""

    pattern: str
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class TenantRule:
    """What some tenants may do. None means no restriction; an empty tuple allows nothing."""

    tenants: tuple[str, ...]
    """Exact names; "" only by name; `*` is any named tenant."""
    models: tuple[str, ...] | None = None
    classes: tuple[QosClass, ...] | None = None
    destinations: tuple[str, ...] | None = None
    """Names of pools and backends (globs)."""
    limits: Limits | None = None
    usd_per_hour: float | None = None
    """What an hour of waiting is worth to them; None: what a destination costs does not count."""
    own_prefixes: bool = False
    """Whether engines share no cached prefix between each of them and any other tenant."""

    @property
    def minds_money(self) -> bool:
        """Whether a destination must have a price to be of use to them."""
        return self.usd_per_hour is not None or (self.limits is not None and self.limits.usd_per_month is not None)


class UnmatchedTenant(Enum):
    ALLOW = "allow"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class RoutingRules:
    """All of them, replaced as one on reload."""

    models: tuple[ModelRule, ...] = ()
    tenants: tuple[TenantRule, ...] = ()
    unmatched_tenant: UnmatchedTenant = UnmatchedTenant.ALLOW
    policy: str = "expected_latency"
    parameters: dict[str, float] = field(default_factory=dict)
