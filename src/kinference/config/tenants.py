"""The part of the configuration that says what tenants may use, and how much of it."""

from dataclasses import dataclass, field

from kinference.config.keys import about
from kinference.config.values import Count
from kinference.vocabulary import QosClass


@dataclass(frozen=True, slots=True)
class TenantLimits:
    """How much each of some tenants may use."""

    requests_per_minute: Count | None = field(default=None, metadata=about("Requests in any minute; absent: no limit."))
    tokens_per_minute: Count | None = field(
        default=None, metadata=about("Tokens in any minute, prompts and answers together; absent: no limit.")
    )
    concurrent: Count | None = field(default=None, metadata=about("Requests at once; absent: no limit."))
    usd_per_month: float | None = field(
        default=None, metadata=about("US dollars in a calendar month (UTC); absent: no limit.")
    )


@dataclass(frozen=True, slots=True)
class TenantPolicy:
    """What some tenants may use."""

    tenants: tuple[str, ...] = field(
        metadata=about('Names of the tenants; "" is the unnamed one, * is any that has a name.')
    )
    models: tuple[str, ...] | None = field(
        default=None, metadata=about("Models allowed (globs); absent: all, empty: none.")
    )
    classes: tuple[QosClass, ...] | None = field(
        default=None, metadata=about("Service classes allowed; absent: all, empty: none.")
    )
    destinations: tuple[str, ...] | None = field(
        default=None, metadata=about("Pools and backends allowed (globs); absent: all, empty: none.")
    )
    limits: TenantLimits | None = field(
        default=None, metadata=about("How much each of them may use; absent: as much as there is.")
    )
    usd_per_hour: float | None = field(
        default=None,
        metadata=about(
            "What an hour of waiting is worth to them: expected_latency weighs prices by it; absent: no price counts."
        ),
    )
    own_prefixes: bool = field(
        default=False,
        metadata=about(
            "Whether each of them shares no cached prefix with another tenant: engines get a cache_salt of its own."
        ),
    )
