"""What a list of fields must be to count as a request or as trailers (RFC 9113, section 8)."""

from typing import Final

from kinference.structs import Frozen
from kinference.wire.http2.fields import Field, Fields, Role
from kinference.wire.http2.frames import ErrorCode, StreamFault

REGULAR: Final = Role.REGULAR
LENGTH: Final = Role.LENGTH
FLAWED: Final = Role.FLAWED
METHOD: Final = Role.METHOD
SCHEME: Final = Role.SCHEME
AUTHORITY: Final = Role.AUTHORITY
PATH: Final = Role.PATH
"""By names of their own: reaching the member of an enumeration costs ten times as much."""


class Request(Frozen, frozen=True):
    """A request's head: the four fields that HTTP/2 sets apart, and the others in order."""

    method: bytes
    scheme: bytes
    authority: bytes
    path: bytes
    fields: Fields
    content_length: int | None


def read_request(fields: Fields) -> Request:
    """Read a list that opens a stream. Raises StreamFault when it is malformed."""
    pseudo: dict[Role, bytes] = {}
    regular: list[Field] = []
    content_length: int | None = None
    for field in fields:
        role = field[2]
        if role is REGULAR:
            regular.append(field)
        elif role is LENGTH:
            content_length = _agreed(content_length, field[1])
            regular.append(field)
        elif role is FLAWED or role in pseudo or regular:
            raise _malformed("a field that no request may have, or have there")
        else:
            pseudo[role] = field[1]
    method, path = pseudo.get(METHOD, b""), pseudo.get(PATH, b"")
    if method == b"CONNECT":
        is_complete = pseudo.keys() == {METHOD, AUTHORITY}
    else:
        is_complete = bool(method) and (path[:1] == b"/" or path == b"*") and SCHEME in pseudo
    if not is_complete:
        raise _malformed("a request without its method, scheme or path, or CONNECT with more than an authority")
    scheme, authority = pseudo.get(SCHEME, b""), pseudo.get(AUTHORITY, b"")
    return Request(method, scheme, authority, path, tuple(regular), content_length)


def check_trailers(fields: Fields) -> None:
    """Check a list that ends a stream. Raises StreamFault when it is malformed."""
    if any(role is not REGULAR for _, _, role, _ in fields):
        raise _malformed("a field that no trailers may have")


def _agreed(known: int | None, digits: bytes) -> int:
    length = int(digits)
    if known is not None and known != length:
        raise _malformed("two lengths that differ")
    return length


def _malformed(what: str) -> StreamFault:
    return StreamFault(ErrorCode.PROTOCOL_ERROR, f"malformed: {what}")
