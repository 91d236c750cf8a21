"""Whom a route is for: every sandbox of a workspace, or one of them."""

import re
from dataclasses import dataclass

from kinference.config.values import DEFAULT_WORKSPACE
from kinference.errors import InvalidArgument

SANDBOX_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
SHOWN_MAX = 80


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """A workspace (a tenant's), and in it one sandbox by its name, or "" for all of them."""

    workspace: str = DEFAULT_WORKSPACE
    sandbox: str = ""

    def __post_init__(self) -> None:
        """Raises InvalidArgument for a sandbox that cannot be one."""
        if self.sandbox and SANDBOX_NAME.fullmatch(self.sandbox) is None:
            raise InvalidArgument(
                f"'{self.sandbox[:SHOWN_MAX]}' is no name of a sandbox; use letters, digits and . _ : -"
            )

    def key(self, route_name: str) -> str:
        """What a route of this scope is stored under; that of the default workspace goes by its name alone."""
        if self.sandbox:
            return f"{self.workspace}/{self.sandbox}/{route_name}"
        return route_name if self.workspace == DEFAULT_WORKSPACE else f"{self.workspace}/{route_name}"

    def covers(self, other: "Scope") -> bool:
        """Whether a route of this scope is for another scope too."""
        return self.workspace == other.workspace and self.sandbox in ("", other.sandbox)


EVERYONE = Scope()
"""Every sandbox of the default workspace."""


def scope_of_sandbox(workspace: str, name: str) -> Scope:
    """The scope of a sandbox that asks; one whose name no route can have been set for has its workspace's only."""
    return Scope(workspace or DEFAULT_WORKSPACE, name if SANDBOX_NAME.fullmatch(name) is not None else "")


def read_key(key: str) -> tuple[Scope, str]:
    """The scope and the name of a stored route."""
    scope, _, name = key.rpartition("/")
    workspace, _, sandbox = scope.partition("/")
    return Scope(workspace or DEFAULT_WORKSPACE, sandbox), name
