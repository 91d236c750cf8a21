"""The cyclic garbage collector, told what kind of process this is."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_YOUNG_MAX = 10_000
"""New objects before the young are looked through. Nearly all of ours go by reference count, so looking costs more than
it finds; this many are looked through in about a millisecond."""
_MIDDLE_MAX = 3
"""How often the young are looked through before those that survived are, all at once: with Python's ten, a thousand
streams that open together held the event loop for a tenth of a second."""


def settle() -> None:
    """Call once everything that lives as long as the process is made: no collection looks at it again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_MAX, _MIDDLE_MAX, *gc.get_threshold()[2:])


@contextmanager
def at_rest() -> Iterator[None]:
    """For work on another thread that makes a great many objects and keeps most: looking through them again and again
    holds up the event loop, which shares the interpreter, and finds nothing.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
