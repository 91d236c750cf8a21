"""Who may call what on the ports that ask for bearer tokens: the picker's, with the control plane, and the admin's."""

import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TypeAlias

from kinference.errors import KinferenceError
from kinference.ports import Headers
from kinference.vocabulary import Role

AUTHORIZATION = ("authorization", b"authorization")
BEARER = b"bearer "

Fields: TypeAlias = Sequence[tuple[str, str | bytes]] | Headers
"""The metadata of a gRPC call, or the header fields of a request."""


class Unauthenticated(KinferenceError):
    """The caller showed no credential, or one that nobody knows."""


class Denied(KinferenceError):
    """The caller is known and may not do this."""


@dataclass(frozen=True, slots=True)
class Token:
    """One credential of a caller; its name is for the audit log."""

    name: str
    role: Role
    secret: str = field(repr=False)


class Access:
    """Checks the `authorization` of calls. Without any token nothing is checked: something else guards the ports."""

    def __init__(self, tokens: Iterable[Token] = ()) -> None:
        self._tokens: Sequence[tuple[bytes, Token]] = ()
        self.replace(tokens)

    def replace(self, tokens: Iterable[Token]) -> None:
        """From now on these are the tokens, and no others."""
        self._tokens = [(sha256(token.secret.encode()).digest(), token) for token in tokens]

    @property
    def asks(self) -> bool:
        """Whether callers have to show a token."""
        return bool(self._tokens)

    def check(self, fields: Fields, *roles: Role) -> str:
        """The caller's name, "" where nobody is asked. Raises Unauthenticated, or Denied for any role but these."""
        if not self._tokens:
            return ""
        token = self._found(_bearer(fields))
        if token is None:
            raise Unauthenticated("this needs authorization: Bearer TOKEN, with a token that is known here")
        if token.role not in roles:
            allowed = " or ".join(role.value for role in roles)
            raise Denied(f"a token of the role {token.role.value} does not open this, only one of {allowed}")
        return token.name

    def _found(self, secret: bytes) -> Token | None:
        """Every token is compared, in a time that tells nothing of which one was close."""
        digest, found = sha256(secret).digest(), None
        for known, token in self._tokens:
            if hmac.compare_digest(known, digest):
                found = token
        return found


def _bearer(fields: Fields) -> bytes:
    """What the first `authorization` carries."""
    value = next((value for name, value in fields if name in AUTHORIZATION), b"")
    encoded = value if isinstance(value, bytes) else value.encode(errors="replace")
    return encoded[len(BEARER) :].strip() if encoded[: len(BEARER)].lower() == BEARER else b""
