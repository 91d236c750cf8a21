"""Kinds of command-line values that several verbs take."""

import argparse
from typing import TypeAlias

Verbs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - the library gives it no public name


def positive(text: str) -> float:
    """A number greater than 0."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not greater than 0")
    return value


def at_least_one(text: str) -> int:
    """A whole number from 1 up."""
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= 9 and int(text)):  # noqa: PLR2004 - digits, bounded
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
    return int(text)
