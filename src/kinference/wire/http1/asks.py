"""How a request goes onto the wire to a destination."""

from functools import lru_cache

from kinference.errors import UpstreamUnreachable
from kinference.ports import UpstreamRequest
from kinference.wire.http1.answers import breaks_lines

DEFAULT_PORTS = {"http": 80, "https": 443}
_JOIN_BYTES_MAX = 16 * 1024
"""Bodies up to here leave in one buffer with the head; larger ones are not copied."""
_OURS = frozenset({b"content-length", b"transfer-encoding", b"connection"})
_HOSTS_MAX = 1024
"""Origins whose `host` is not made anew for each request."""
_BODILESS = frozenset({"GET", "HEAD", "OPTIONS", "DELETE"})


def pieces_of(request: UpstreamRequest) -> list[bytes]:
    """The request as buffers to write one after the other."""
    length = sum(map(len, request.body))
    fields = [name + b": " + value for name, value in request.headers if name not in _OURS]
    line = f"{request.method} {request.target} HTTP/1.1"
    lines = [line.encode("latin-1"), b"host: " + _host(request.origin), *fields]
    if length or request.method not in _BODILESS:
        lines.append(b"content-length: %d" % length)
    if breaks_lines(lines) or " " in request.target or " " in request.method:
        raise UpstreamUnreachable(f"{request.origin} cannot be sent a target or a field with a line break in it")
    if length <= _JOIN_BYTES_MAX:
        return [b"\r\n".join([*lines, b"", b"".join(request.body)])]
    return [b"\r\n".join([*lines, b"", b""]), *request.body]


@lru_cache(_HOSTS_MAX)
def _host(origin: str) -> bytes:
    scheme, _, host = origin.partition("://")
    if scheme == "unix":
        return b"localhost"
    default = f":{DEFAULT_PORTS.get(scheme)}"
    return host.removesuffix(default).encode("idna" if not host.isascii() else "ascii")
