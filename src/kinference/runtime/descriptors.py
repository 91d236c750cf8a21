"""File descriptors: one for each connection, in either direction. Many systems start a process with a thousand."""

import resource
from contextlib import suppress

from kinference.config.schema import Limits

_MOST = 1_048_576
"""Where a system sets no bound of its own."""
_OF_OUR_OWN = 256
"""Listeners, files, the store, the endpoints' pages."""


def raise_limit() -> int:
    """Take as many as the system lets us have without asking anybody; returns how many that are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(ValueError, OSError):  # some systems refuse what they promised
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def shortage(descriptors: int, limits: Limits) -> str:
    """What to say where they are too few for the clients of one port alone; "" where they are not."""
    if descriptors == resource.RLIM_INFINITY or descriptors >= limits.connections_max + _OF_OUR_OWN:
        return ""
    fitting = max((descriptors - _OF_OUR_OWN) // 2, 1)  # beside each client's, one to the destination that serves it
    return (
        f"limits.connections_max: {limits.connections_max} connections need more file descriptors than the "
        f"{descriptors} that there are; allow more (ulimit -Hn, LimitNOFILE), or set it to {fitting}, so that who "
        "comes beyond is told"
    )
