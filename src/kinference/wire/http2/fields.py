"""One header field, judged once: when it is read off the wire, not each time that a table is asked for it again."""

import re
from enum import IntEnum, auto
from typing import Final, TypeAlias


class Role(IntEnum):
    """What a field is in a list of fields (RFC 9113, sections 8.2 and 8.3)."""

    REGULAR = auto()
    LENGTH = auto()
    METHOD = auto()
    SCHEME = auto()
    AUTHORITY = auto()
    PATH = auto()
    FLAWED = auto()
    """No list may hold it."""


Field: TypeAlias = tuple[bytes, bytes, Role, int]
"""Name, value, role, and the size as the tables and limits of HTTP/2 count it."""
Fields: TypeAlias = tuple[Field, ...]

OVERHEAD: Final = 32
ROLES: Final = {
    b":method": Role.METHOD,
    b":scheme": Role.SCHEME,
    b":authority": Role.AUTHORITY,
    b":path": Role.PATH,
    b"content-length": Role.LENGTH,
    # about one connection, which HTTP/2 has in its frames:
    b"connection": Role.FLAWED,
    b"keep-alive": Role.FLAWED,
    b"proxy-connection": Role.FLAWED,
    b"transfer-encoding": Role.FLAWED,
    b"upgrade": Role.FLAWED,
}
LENGTH_DIGITS_MAX: Final = 19

REGULAR: Final = Role.REGULAR
FLAWED: Final = Role.FLAWED
NUL: Final = b"\0"[0]
CR: Final = b"\r"[0]
LF: Final = b"\n"[0]
"""Numbers: to look for a byte by its number is ten times as fast as by bytes of one."""
NAME: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
PSEUDO_VALUE: Final = re.compile(rb"(?:[^ \t](?:.*[^ \t])?)?", re.DOTALL)


def field(name: bytes, value: bytes) -> Field:
    """A field with its judgement."""
    return name, value, _role(name, value), len(name) + len(value) + OVERHEAD


def renewed(known: Field, value: bytes) -> Field:
    """A field of the same name with a value of its own."""
    name, _, role, _ = known
    if role is REGULAR and name != b"te" and NUL not in value and CR not in value and LF not in value:
        return name, value, REGULAR, len(name) + len(value) + OVERHEAD
    return field(name, value)


def _breaks_lines(value: bytes) -> bool:
    return NUL in value or CR in value or LF in value


def _role(name: bytes, value: bytes) -> Role:
    """White space around a value is let through, against section 8.2.1 and with gRPC's own rules: Envoy and nginx pass
    it on, and whoever reads the value can say better what is wrong with it than a broken stream can.
    """
    role = ROLES.get(name)
    if _breaks_lines(value):
        return FLAWED
    if role is None:
        is_fine = NAME.fullmatch(name) and (name != b"te" or value == b"trailers")
        return REGULAR if is_fine else FLAWED
    if role is Role.LENGTH and not (value.isdigit() and len(value) <= LENGTH_DIGITS_MAX):
        return Role.FLAWED
    return role if PSEUDO_VALUE.fullmatch(value) else Role.FLAWED
