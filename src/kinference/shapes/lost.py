"""What is said of what a translation could not carry over."""

from collections.abc import Iterable
from typing import Final

from kinference.shapes.scan import BadBody
from kinference.structs import Frozen

_HEADER_MAX: Final = 1024
_UNSAFE: Final = str.maketrans({",": "_", ";": "_", "=": "_"})
_NAME_MAX: Final = 64


class Untranslatable(BadBody):
    """A request that no destination of another API can serve as it was meant. The message names the field."""


class Lost(Frozen, frozen=True):
    """One thing that a translation did not carry over unchanged."""

    how: str
    field: str
    detail: str = ""

    @property
    def place(self) -> str:
        """Where in the request, for a message."""
        return f"{self.field}: {self.detail}" if self.detail else self.field

    def __str__(self) -> str:
        text = f"{self.how}={self.field}" + (f":{self.detail}" if self.detail else "")
        return text.encode("ascii", "replace").decode()


def header(losses: tuple[Lost, ...]) -> str:
    """All losses in one line of bounded length, for `x-kinference-warnings`."""
    return ";".join(map(str, losses))[:_HEADER_MAX]


def more(line: str, losses: Iterable[Lost]) -> str:
    """A line that `header` gave, with further losses in it."""
    return ";".join((*((line,) if line else ()), *map(str, losses)))[:_HEADER_MAX]


def noted(losses: str) -> str:
    """What a stream says of losses that its head could not tell yet."""
    return f"x-kinference-warnings: {losses}"


def safe(name: str) -> str:
    """A client's own name for something, fit to be shown in a header."""
    printable = name.encode("ascii", "replace").decode().translate(_UNSAFE)
    return "".join(char if char.isprintable() else "_" for char in printable)[:_NAME_MAX]
