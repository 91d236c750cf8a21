"""Gives freed memory back to the system. The allocator keeps it, and after a flood that is most of a server's size."""

import ctypes

_LIBRARY = ctypes.CDLL(None)
"""Of C. Loaded once: each leaves reference cycles behind."""


def trim(library: object = _LIBRARY) -> None:
    """Return every free page. Where the C library cannot be asked to, it is left to its own ways."""
    malloc_trim = getattr(library, "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)
