"""The routes that a sandbox knows at a moment, and which of them serves a protocol."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kinference.control.provider_types import ProviderType, type_named

SYSTEM_ROUTE = "sandbox-system"
UNKNOWN_TYPE = ProviderType("unknown", "", (), ())
"""A type from a later control plane: its credential is a bearer's."""


@dataclass(frozen=True, slots=True)
class SandboxRoute:
    """One endpoint with its credential, as a bundle or a file gives it."""

    name: str
    base_url: str
    protocols: tuple[str, ...]
    api_key: str = field(repr=False)
    model_id: str
    provider_type: str = ""
    timeout_secs: int = 0
    model_in_path: bool = False
    path_override: str | None = None

    @property
    def kind(self) -> ProviderType:
        return type_named(self.provider_type) or UNKNOWN_TYPE


class RouteTable:
    """What programs of the sandbox can reach: every route but the sandbox's own."""

    def __init__(self, routes: Iterable[SandboxRoute] = ()) -> None:
        self._routes: Sequence[SandboxRoute] = ()
        self.replace(routes)

    @property
    def is_empty(self) -> bool:
        return not self._routes

    def replace(self, routes: Iterable[SandboxRoute]) -> None:
        """Take other routes over; requests under way keep theirs."""
        self._routes = tuple(route for route in routes if route.name != SYSTEM_ROUTE)

    def serving(self, protocol: str) -> SandboxRoute | None:
        """The first route that speaks a protocol."""
        return next((route for route in self._routes if protocol in route.protocols), None)
