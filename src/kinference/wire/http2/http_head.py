"""What an HTTP/2 request means to a handler: the head that HTTP/1.1 would have brought, held to the same rules."""

import re
from typing import Final

from kinference.ports import Headers
from kinference.structs import Frozen
from kinference.wire.http2.frames import ErrorCode, StreamFault
from kinference.wire.http2.requests import Request

METHOD: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32}")
TARGET: Final = re.compile(rb"\*|/[\x21\x22\x24-\x7e]*")
"""Without white space and control bytes, which would end it in a request line, and without a fragment."""
CONTROL: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
AUTHORITY_FORBIDDEN: Final = re.compile(rb"[\s/?#@]")


class HttpHead(Frozen, frozen=True):
    """Everything of a request before its body."""

    method: str
    path: str
    query: str
    headers: Headers
    refusal: int = 0
    """The status that it is answered with unheard."""


def read_head(request: Request, fields_max: int) -> HttpHead:
    """Read a request. Raises StreamFault for what no HTTP/1.1 request could say."""
    if not METHOD.fullmatch(request.method):
        raise _malformed("the method is no token")
    if request.method == b"CONNECT":
        return HttpHead("CONNECT", "", "", (), refusal=400)
    if not TARGET.fullmatch(request.path):
        raise _malformed("the path is none")
    path, _, query = request.path.decode("ascii").partition("?")
    method, headers = request.method.decode("ascii"), _headers(request)
    refusal = 0
    if len(headers) > fields_max:
        refusal = 431
    elif path == "*" and method != "OPTIONS":
        refusal = 400
    return HttpHead(method, path, query, headers, refusal)


def _headers(request: Request) -> Headers:
    """The fields in order, the authority as the host, and what was cut of the cookies joined (RFC 9113, 8.2.3)."""
    headers: list[tuple[bytes, bytes]] = []
    cookies: list[bytes] = []
    host = request.authority
    for name, received, _, _ in request.fields:
        value = received.strip(b" \t")
        if CONTROL.search(value):
            raise _malformed("a control byte in a field")
        if name == b"cookie":
            cookies.append(value)
        elif name != b"host":
            headers.append((name, value))
        elif host and value != host:
            raise _malformed("two hosts that differ")
        else:
            host = value
    if not host or AUTHORITY_FORBIDDEN.search(host):
        raise _malformed("no host, or none that could be one")
    if cookies:
        headers.append((b"cookie", b"; ".join(cookies)))
    return [(b"host", host), *headers]


def _malformed(what: str) -> StreamFault:
    return StreamFault(ErrorCode.PROTOCOL_ERROR, f"malformed: {what}")
