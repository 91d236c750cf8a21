"""How a case says what it claims."""


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


def _shown(value: object) -> str:
    name = getattr(value, "name", None)
    shown = name if isinstance(name, str) else repr(value)
    return shown if len(shown) <= 120 else f"{shown[:120]}..."  # noqa: PLR2004 - a line of a table
