"""Who may call what on the ports that ask: the picker's, with the control plane beside it, and the admin's."""

import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import TypeAlias

from kinference.errors import KinferenceError
from kinference.ports import Headers
from kinference.vocabulary import Role
from kinference.wire.sandbox_tokens import SandboxTokens

AUTHORIZATION = ("authorization", b"authorization")
BEARER = b"bearer "

Fields: TypeAlias = Sequence[tuple[str, str | bytes]] | Headers
"""The metadata of a gRPC call, or the header fields of a request."""


class Unauthenticated(KinferenceError):
    """The caller showed no credential, or one that nobody knows."""


class Denied(KinferenceError):
    """The caller may not do this."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a credential stands for; the name is for the audit log."""

    name: str = ""
    role: Role | None = None
    """None where nobody is asked."""
    workspace: str = ""
    """The only one that it may use; "" is any."""


@dataclass(frozen=True, slots=True)
class Token:
    """A secret, and whom it stands for."""

    name: str
    role: Role
    secret: str = field(repr=False)
    workspace: str = ""

    @property
    def caller(self) -> Caller:
        return Caller(self.name, self.role, self.workspace)


@dataclass(frozen=True, slots=True)
class Certificate:
    """A glob over the names in callers' certificates, and who those are. They go by the name in the certificate."""

    names: str
    role: Role
    workspace: str = ""


class Access:
    """Checks the credential of calls. Without any that is known nothing is checked: something else guards the ports."""

    def __init__(
        self,
        tokens: Iterable[Token] = (),
        certificates: Sequence[Certificate] = (),
        sandbox_tokens: SandboxTokens | None = None,
    ) -> None:
        self.replace(tokens, certificates, sandbox_tokens)

    def replace(
        self,
        tokens: Iterable[Token] = (),
        certificates: Sequence[Certificate] = (),
        sandbox_tokens: SandboxTokens | None = None,
    ) -> None:
        """From now on these are the credentials, and no others."""
        self._digests = [(sha256(token.secret.encode()).digest(), token.caller) for token in tokens]
        self._certificates, self._sandbox_tokens = certificates, sandbox_tokens
        self.asks = bool(self._digests or certificates or sandbox_tokens)
        """Whether callers have to show something."""

    def check(self, fields: Fields, *roles: Role, names: Iterable[str] = ()) -> Caller:
        """Who calls; `names` are those of its certificate. Raises Unauthenticated, or Denied for any role but these."""
        if not self.asks:
            return Caller()
        caller = self._by_token(_bearer(fields)) or self._by_certificate(names)
        if caller is None or caller.role is None:
            raise Unauthenticated("this needs authorization: Bearer TOKEN, with a token that is known here")
        if caller.role not in roles:
            allowed = " or ".join(role.value for role in roles)
            raise Denied(f"a credential of the role {caller.role.value} does not open this, only one of {allowed}")
        return caller

    def _by_token(self, secret: bytes) -> Caller | None:
        """Every token is compared, in a time that tells nothing of which one was close."""
        digest, found = sha256(secret).digest(), None
        for known, caller in self._digests:
            if hmac.compare_digest(known, digest):
                found = caller
        signed = self._sandbox_tokens
        if found is not None or signed is None:
            return found
        sandbox = signed.read(secret)
        return None if sandbox is None else Caller(sandbox.name, Role.SANDBOX, sandbox.workspace)

    def _by_certificate(self, names: Iterable[str]) -> Caller | None:
        for name in names:
            for rule in self._certificates:
                if fnmatchcase(name, rule.names):
                    return Caller(name.rpartition("/")[2], rule.role, rule.workspace)
        return None


def _bearer(fields: Fields) -> bytes:
    """What the first `authorization` carries."""
    value = next((value for name, value in fields if name in AUTHORIZATION), b"")
    encoded = value if isinstance(value, bytes) else value.encode(errors="replace")
    return encoded[len(BEARER) :].strip() if encoded[: len(BEARER)].lower() == BEARER else b""
