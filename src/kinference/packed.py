"""What is held for long, made one object of C's heap.

Python's own allocator takes what is small, and gives a megabyte back only when nothing lives in it any more: what many
small objects took stays taken while one in some thousand of them, or anything made in between, stays.
"""

from pickle import dumps, loads
from typing import Any, Final

LARGE: Final = 512
"""Bytes beyond which an object comes from C's heap."""


def packed(value: object) -> bytes:
    """The value in one object, which is never a small one."""
    return dumps(value, protocol=5).ljust(LARGE)


def unpacked(data: bytes) -> Any:  # noqa: ANN401 - whatever was packed
    """The value again. What follows it is not looked at."""
    return loads(data)  # noqa: S301 - packed here, and never anywhere but in this process
