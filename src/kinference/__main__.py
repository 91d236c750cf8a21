"""Where the process begins: `kinference ...` and `python -m kinference ...`."""

import os
import sys
from importlib import import_module

ALLOCATOR = "PYTHONMALLOC"
"""Python reads it before it runs a line, so that it cannot be set from within."""


def main() -> int:
    """Run the command line; a server starts itself anew first, as the same process, with C's allocator.

    Python's own gives a megabyte back when no object lives in it, and after a flood one or two do in most: a fifth of
    what a server takes would stay (bench/abandoned.py). Where the variable is set already, it stands.
    """
    if sys.argv[1:2] == ["serve"] and ALLOCATOR not in os.environ and has_glibc():
        anew = {**os.environ, ALLOCATOR: "malloc"}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], anew)  # noqa: S606 - it is this very program
    # Loading all that takes half a second, which need not be spent twice.
    status: int = import_module("kinference.cli").main()
    return status


def has_glibc() -> bool:
    """Whether C's allocator is the one that was measured; others are slow, or give nothing back."""
    try:
        return bool(os.confstr("CS_GNU_LIBC_VERSION"))
    except (ValueError, OSError):
        return False


if __name__ == "__main__":
    sys.exit(main())
