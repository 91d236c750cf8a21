"""The rules of routing: which model name means which targets, and who may use what."""

from dataclasses import dataclass, field
from enum import Enum

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
