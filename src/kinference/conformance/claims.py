"""How a case says what it claims."""

from collections.abc import Sequence


class Unexpected(Exception):
    """The server did something else. The message says what was expected and what came."""


def expect(holds: object, what: str) -> None:
    """The claim itself."""
    if not holds:
        raise Unexpected(what)


def expect_equal(actual: object, expected: object, what: str) -> None:
    """The claim that two things are the same; `what` names them."""
    if actual != expected:
        raise Unexpected(f"{what}: expected {_shown(expected)}, got {_shown(actual)}")


def expect_scattered(ids: Sequence[int]) -> None:
    """The claim that ids are drawn at random from 64 bits: twenty that lie within 48 of each other are not."""
    expect(0 not in ids, "0 was given as an id")
    expect_equal(len(set(ids)), len(ids), "ids that differ")
    span = (max(ids) - min(ids)).bit_length()
    expect(span > 48, f"{len(ids)} ids lie within 2^{span} of each other")  # noqa: PLR2004 - see above


def _shown(value: object) -> str:
    name = getattr(value, "name", None)
    shown = name if isinstance(name, str) else repr(value)
    return shown if len(shown) <= 120 else f"{shown[:120]}..."  # noqa: PLR2004 - a line of a table
