"""Who may call what: users set and read routes, sandboxes fetch the bundle, and neither does the other's."""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256

from kinference.control.errors import Denied, Unauthenticated

BEARER = "bearer "


class Role(Enum):
    """What a token stands for."""

    USER = "user"
    SANDBOX = "sandbox"


@dataclass(frozen=True, slots=True)
class Token:
    """One credential of a caller; its name is for the audit log."""

    name: str
    role: Role
    secret: str = field(repr=False)


class Access:
    """Checks the `authorization` of calls. Without any token nothing is checked: something else guards the port."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = [(_digest(token.secret), token) for token in tokens]

    def check(self, metadata: Sequence[tuple[str, str | bytes]], role: Role) -> str:
        """The caller's name, "" where nobody is asked. Raises Unauthenticated or Denied."""
        if not self._tokens:
            return ""
        token = self._found(_bearer(metadata))
        if token is None:
            raise Unauthenticated(
                "this call needs the metadata authorization: Bearer TOKEN, with a token that is known"
            )
        if token.role is not role:
            raise Denied(f"a {token.role.value} may not make this call, only a {role.value}")
        return token.name

    def _found(self, secret: str) -> Token | None:
        """Every token is compared, in a time that tells nothing of which one was close."""
        digest, found = _digest(secret), None
        for known, token in self._tokens:
            if hmac.compare_digest(known, digest):
                found = token
        return found


def _bearer(metadata: Sequence[tuple[str, str | bytes]]) -> str:
    value = next((value for key, value in metadata if key == "authorization"), "")
    if not isinstance(value, str) or value[: len(BEARER)].lower() != BEARER:
        return ""
    return value[len(BEARER) :].strip()


def _digest(secret: str) -> bytes:
    return sha256(secret.encode()).digest()
