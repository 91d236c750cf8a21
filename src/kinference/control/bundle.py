"""The bundle: every route that can be resolved, in a fixed order, under a revision that changes when it does."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import msgspec

from kinference.control.providers import Resolved


@dataclass(frozen=True, slots=True)
class BundledRoute:
    """A route with all that its consumer needs to call it."""

    name: str
    base_url: str
    protocols: tuple[str, ...]
    api_key: str = field(repr=False)
    model_id: str
    provider_type: str
    timeout_secs: int
    model_in_path: bool
    path_override: str | None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A route that could not be resolved, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """What consumers poll."""

    routes: tuple[BundledRoute, ...]
    left_out: tuple[LeftOut, ...] = ()

    @property
    def revision(self) -> str:
        """The same on every replica and after each restart; a rotated key changes it, a new timestamp does not."""
        return revision_of(self.routes)


def bundled(name: str, resolved: Resolved, timeout_secs: int) -> BundledRoute:
    """Put a resolved route under its name."""
    return BundledRoute(
        name=name,
        base_url=resolved.base_url,
        protocols=resolved.protocols,
        api_key=resolved.api_key,
        model_id=resolved.model_id,
        provider_type=resolved.provider_type,
        timeout_secs=timeout_secs,
        model_in_path=resolved.model_in_path,
        path_override=resolved.path_override,
    )


def revision_of(routes: Sequence[BundledRoute]) -> str:
    """16 hex digits over all that a consumer sees, order included."""
    return blake2b(msgspec.json.encode(routes), digest_size=8, person=b"bundle").hexdigest()
