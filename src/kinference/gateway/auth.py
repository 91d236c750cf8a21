"""Who is calling: client keys, compared by their hashes and never repeated to anyone."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from kinference.ports import Headers
from kinference.vocabulary import QosClass

CREDENTIAL_FIELDS: Final[tuple[bytes, ...]] = (b"x-api-key", b"api-key", b"x-goog-api-key")
_BEARER: Final = b"bearer "


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf a request runs."""

    tenant: str = ""
    qos: QosClass = QosClass.INTERACTIVE


ANYONE: Final = Caller()
"""Who shows no credential, or one that nobody asked for."""


@dataclass(frozen=True, slots=True)
class ClientKey:
    """One key that clients may present, and whom it stands for."""

    secret: str = field(repr=False)
    tenant: str
    qos: QosClass = QosClass.INTERACTIVE


class Keyring:
    """All client keys, held as hashes: how long one takes to be found tells of its hash at most, which is of no use."""

    def __init__(self, keys: Iterable[ClientKey], *, allow_unauthenticated: bool) -> None:
        self._callers = {sha256(key.secret.encode()).digest(): Caller(key.tenant, key.qos) for key in keys}
        self._allow_unauthenticated = allow_unauthenticated

    def identify(self, headers: Headers) -> Caller | None:
        """The caller behind a request's credential; None when it may not come in.

        Where callers without a key are allowed, a key that nobody issued is still refused as soon as any key is
        configured. With none configured, SDKs that insist on sending one are let in.
        """
        presented = credentials(headers) if self._callers else ()
        if not presented:
            return ANYONE if self._allow_unauthenticated else None
        if len(set(presented)) > 1:
            return None
        return self._callers.get(sha256(presented[0]).digest())


def credentials(headers: Headers) -> list[bytes]:
    """Every credential that the client presented, in whichever field its SDK puts it; empty ones do not count."""
    found = [value for name, value in headers if name in CREDENTIAL_FIELDS]
    for name, value in headers:
        if name == b"authorization" and value[: len(_BEARER)].lower() == _BEARER:
            found.append(value[len(_BEARER) :].strip())
        elif name == b"authorization":
            found.append(value)
    return [value for value in found if value]
