"""Gives freed memory back to the system. The allocator keeps it, and after a flood that is most of a server's size."""

import ctypes
from collections.abc import Callable

_MALLOC_TRIM: Callable[[int], object] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
"""Of the C library, where it has it. Found once, before any flood: what finding it makes stays."""


def trim(malloc_trim: Callable[[int], object] | None = _MALLOC_TRIM) -> None:
    """Return every free page. Where the C library cannot be asked to, it is left to its own ways."""
    if malloc_trim is not None:
        malloc_trim(0)
