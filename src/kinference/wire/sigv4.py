"""Signatures of requests to AWS, version 4: over the method, the path, the query, some fields and the body."""

import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final
from urllib.parse import quote

from kinference.ports import Headers
from kinference.shapes.hosts import region_of

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


@dataclass(frozen=True, slots=True)
class AwsKeys:
    """Credentials of an AWS account, long-lived or, with a session token, for a while."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)
    region: str = ""
    """Where they are used; "" is what the destination's host says."""


@dataclass(frozen=True, slots=True)
class Signable:
    """A request as it will be sent. `target` is its path and query, percent-encoded."""

    method: str
    origin: str
    target: str
    body: Sequence[bytes]


def signature(request: Signable, keys: AwsKeys, service: str, now: float) -> Headers:
    """The fields that prove who sends it; `now` is the time of day in seconds since 1970."""
    scheme, _, host = request.origin.partition("://")
    host = host.removesuffix(_DEFAULT_PORTS.get(scheme, ":"))
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    signed = {"host": host, "x-amz-date": stamp}
    if keys.session_token:
        signed["x-amz-security-token"] = keys.session_token
    scope = f"{stamp[:8]}/{keys.region or region_of(host)}/{service}/aws4_request"
    names = ";".join(signed)
    text = "\n".join((_ALGORITHM, stamp, scope, _hex(_canonical(request, signed, names).encode())))
    proof = hmac.new(_key(keys.secret_access_key, scope), text.encode(), sha256).hexdigest()
    told = f"{_ALGORITHM} Credential={keys.access_key_id}/{scope}, SignedHeaders={names}, Signature={proof}"
    sent = {name: value for name, value in signed.items() if name != "host"}
    return [*((name.encode(), value.encode()) for name, value in sent.items()), (b"authorization", told.encode())]


def _canonical(request: Signable, signed: dict[str, str], names: str) -> str:
    path, _, query = request.target.partition("?")
    fields = "".join(f"{name}:{' '.join(value.split())}\n" for name, value in signed.items())
    parts = sorted(part if "=" in part else f"{part}=" for part in query.split("&") if part)
    return "\n".join((request.method, quote(path, safe="/~"), "&".join(parts), fields, names, _digest(request.body)))


def _key(secret: str, scope: str) -> bytes:
    key = b"AWS4" + secret.encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), sha256).digest()
    return key


def _digest(body: Iterable[bytes]) -> str:
    digest = sha256()
    for piece in body:
        digest.update(piece)
    return digest.hexdigest()


def _hex(text: bytes) -> str:
    return sha256(text).hexdigest()
