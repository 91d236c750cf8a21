"""The command line: one file a verb, each with `add(subparsers)` and `run(args) -> int`."""

from kinference.cli.main import main

__all__ = ["main"]
