"""How a request goes onto the wire to a destination."""

from functools import lru_cache
from typing import Final

from kinference.errors import UpstreamUnreachable
from kinference.ports import UpstreamRequest
from kinference.wire.http1.answers import breaks_lines

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_JOIN_BYTES_MAX: Final = 16 * 1024
"""Bodies up to here leave in one buffer with the head; larger ones are not copied."""
_OURS: Final = frozenset({b"content-length", b"transfer-encoding", b"connection"})
_HOSTS_MAX: Final = 1024
"""Origins whose `host` is not made anew for each request."""
_BODILESS: Final = frozenset({"GET", "HEAD", "OPTIONS", "DELETE"})


def pieces_of(request: UpstreamRequest) -> list[bytes]:
    """The request as buffers to write one after the other."""
    method, target, body = request.method, request.target, request.body
    length = sum(map(len, body))
    lines = [f"{method} {target} HTTP/1.1".encode("latin-1"), b"host: " + _host(request.origin)]
    lines += [name + b": " + value for name, value in request.headers if name not in _OURS]
    if length or method not in _BODILESS:
        lines.append(b"content-length: %d" % length)
    if breaks_lines(lines) or " " in target or " " in method:
        raise UpstreamUnreachable(f"{request.origin} cannot be sent a target or a field with a line break in it")
    if length <= _JOIN_BYTES_MAX:
        return [b"\r\n".join([*lines, b"", b"".join(body)])]
    return [b"\r\n".join([*lines, b"", b""]), *body]


@lru_cache(_HOSTS_MAX)
def _host(origin: str) -> bytes:
    scheme, _, host = origin.partition("://")
    if scheme == "unix":
        return b"localhost"
    default = f":{DEFAULT_PORTS.get(scheme)}"
    return host.removesuffix(default).encode("idna" if not host.isascii() else "ascii")
