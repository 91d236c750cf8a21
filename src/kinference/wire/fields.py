"""What the fields of a head say, by their names."""

from collections.abc import Mapping
from typing import TypeAlias

from kinference.ports import Headers

Table: TypeAlias = Mapping[bytes, bytes]
"""The first value of each field by its name."""


def header(headers: Headers, name: bytes) -> bytes | None:
    """The first value of a field, name in lower case; None when absent."""
    for field, value in headers:
        if field == name:
            return value
    return None


def table(headers: Headers) -> Table:
    """The fields for who asks more than once: two look-ups in the sequence cost more than making this."""
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        if name not in found:
            found[name] = value
    return found
